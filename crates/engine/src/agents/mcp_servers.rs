//! MCP servers owned by one agent: configured in its definition, started with the agent and stopped when it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_mcp::{ServerConfigs, ServerOrigin, ServerRegistry};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::PermissionState;
use whimbrel_wire::options::McpServerConfig;

use super::{AgentSpawner, ResolvedDefinition};
use crate::agent::Agent;

/// Limit on an agent's wait for its servers. The tools of a later server are available from the next model call on.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

/// Time for servers to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The same when the agent was stopped.
const FORCED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(300);

/// Starts servers for single agents of a session. Cheap to clone.
#[derive(Clone)]
pub struct ServerStarter(Arc<dyn Fn(ServerConfigs) -> ServerRegistry + Send + Sync>);

impl ServerStarter {
    pub fn new(start: impl Fn(ServerConfigs) -> ServerRegistry + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    /// Creates an empty tool cache for an agent whose definition has its own servers; starts nothing yet.
    pub(super) fn create_tool_cache(
        &self,
        definition: &ResolvedDefinition,
        permissions: &PermissionState,
    ) -> Option<ToolCache> {
        if definition.mcp_servers.own.is_empty() {
            return None;
        }
        let tool_cache = ToolCache::new(permissions.clone(), None);
        tool_cache.set_registry((self.0)(ServerConfigs::default()));
        Some(tool_cache)
    }
}

impl AgentSpawner {
    /// Starts the servers of an agent and waits for them. Servers that fail or are missing are reported to the host;
    /// the agent starts without them.
    pub(super) async fn start_servers(
        &self,
        agent: &mut Agent,
        definition: &ResolvedDefinition,
        stop: &CancellationToken,
    ) {
        for warning in definition.missing_server_warnings(self.context.extensions.mcp_tools.registry()) {
            self.context.frame_sender.warn(warning).await;
        }
        let configs = &definition.mcp_servers.own;
        let registry = agent.own_servers.clone();
        let Some(registry) = registry.filter(|_| !configs.is_empty()) else { return };
        registry.add(resolve_configs(configs, |name| self.context.environment.workspace.variable(name)));
        stop.run_until_cancelled(registry.wait_ready(STARTUP_TIMEOUT)).await;
        let failed = registry.status().into_iter().filter(|server| configs.contains_key(&server.name));
        for (name, reason) in failed.filter_map(|server| Some((server.name, server.error?))) {
            let warning =
                format!("The agent {} starts without its MCP server {name}: {reason}", definition.name);
            self.context.frame_sender.warn(warning).await;
        }
        agent.refresh_tools();
    }
}

impl ResolvedDefinition {
    /// Warnings about referenced servers that the session does not have.
    pub(crate) fn missing_server_warnings(&self, session: Option<&ServerRegistry>) -> Vec<String> {
        let known = session
            .filter(|_| !self.mcp_servers.referenced.is_empty())
            .map(ServerRegistry::init_servers)
            .unwrap_or_default();
        let missing = self
            .mcp_servers
            .referenced
            .iter()
            .filter(|name| known.iter().all(|server| server.name != **name));
        let warning = missing.map(|name| {
            format!(
                "The agent {} starts without the MCP server {name}: the session has no server of that name.",
                self.name
            )
        });
        warning.collect()
    }
}

/// Stops the servers of an agent that has ended.
pub(super) async fn stop_servers(agent: &Agent, stop: &CancellationToken) {
    if let Some(registry) = &agent.own_servers {
        let limit = if stop.is_cancelled() { FORCED_SHUTDOWN_TIMEOUT } else { SHUTDOWN_TIMEOUT };
        // A server that does not end in time is killed on drop.
        let _ = tokio::time::timeout(limit, registry.close()).await;
    }
}

/// Resolves server configurations, with environment variables expanded.
pub(crate) fn resolve_configs(
    configs: &BTreeMap<String, McpServerConfig>,
    variable: impl Fn(&str) -> Option<String>,
) -> ServerConfigs {
    let mut servers = ServerConfigs::default();
    servers.add_configs(ServerOrigin::Dynamic, configs, &variable);
    servers
}

/// The MCP servers of a definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSpecs {
    /// Servers of the session whose tools it gets, by name; empty means all.
    pub referenced: Vec<String>,
    /// Its own servers.
    pub own: BTreeMap<String, McpServerConfig>,
    /// Warnings about entries that could not be parsed.
    pub warnings: Vec<String>,
}

impl ServerSpecs {
    /// Parses the entries of a definition: names, or names with configurations.
    pub fn parse(given: Vec<Value>) -> Self {
        let mut specs = Self::default();
        for given in given {
            match given {
                Value::String(name) => specs.referenced.push(name),
                Value::Object(entries) => {
                    for (name, config) in entries {
                        match serde_json::from_value(config) {
                            Ok(config) => drop(specs.own.insert(name, config)),
                            Err(reason) => {
                                specs.warnings.push(format!("its MCP server {name} is invalid: {reason}"));
                            }
                        }
                    }
                }
                other => specs
                    .warnings
                    .push(format!("{other} in mcpServers is neither a name nor a server configuration")),
            }
        }
        specs
    }

    /// Removes its own servers; returns whether there were any.
    pub(super) fn remove_own(&mut self) -> bool {
        let removed = !self.own.is_empty() || !self.warnings.is_empty();
        self.own.clear();
        self.warnings.clear();
        removed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_refer_to_session_servers_and_objects_are_own() {
        let given =
            [json!("docs"), json!({"db": {"command": "db-server"}, "bad": {"type": "pigeon"}}), json!(5)];
        let mut specs = ServerSpecs::parse(given.to_vec());
        assert_eq!(
            (specs.referenced.as_slice(), specs.own.keys().count()),
            (["docs".to_owned()].as_slice(), 1)
        );
        let warnings = &specs.warnings;
        assert!(
            warnings.len() == 2 && warnings[0].contains("bad") && warnings[1].contains('5'),
            "{warnings:?}"
        );
        assert!(specs.remove_own() && !specs.remove_own());
        assert_eq!(specs, ServerSpecs { referenced: vec!["docs".into()], ..ServerSpecs::default() });
    }
}
