//! MCP servers of a kind's own: they are started when an agent of this kind begins, work for it alone, and are gone when
//! it has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::options::McpServerConfig;

use super::{Agents, Definition};
use crate::agent::Agent;
use crate::mcp::{Origin, Roster, Servers, Supply};
use crate::permission::Rights;

/// How long an agent waits for its servers. One that comes later is there from the next model call on.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long they may take to end.
const FAREWELL: Duration = Duration::from_secs(3);

/// How long they may take when the agent was told to stop.
const HURRY: Duration = Duration::from_millis(300);

/// How a session starts servers for single agents. Cheap to clone.
#[derive(Clone)]
pub struct Hiring(Arc<dyn Fn(Servers) -> Roster + Send + Sync>);

impl Hiring {
    /// Starts servers in this way.
    pub fn new(start: impl Fn(Servers) -> Roster + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    /// A place for the servers of an agent of this kind, if the kind has some. Nothing is started yet.
    pub(super) fn place(&self, definition: &Definition, rights: &Rights) -> Option<Supply> {
        if own(definition).0.is_empty() {
            return None;
        }
        let supply = Supply::new(rights.clone(), None);
        supply.connect((self.0)(Servers::default()));
        Some(supply)
    }
}

impl Agents {
    /// Starts the servers of an agent that begins, and waits for them for a while. What does not start is told to the
    /// host; the agent begins without it.
    pub(super) async fn hire(&self, agent: &mut Agent, definition: &Definition, stop: &CancellationToken) {
        let wanted = own(definition).0;
        let roster = agent.bench.toolbox.own_servers().and_then(Supply::roster).cloned();
        let Some(roster) = roster.filter(|_| !wanted.is_empty()) else { return };
        roster.add(servers(&wanted, |name| self.home.workspace.variable(name)));
        stop.run_until_cancelled(roster.ready(PATIENCE)).await;
        let lost = roster.status().into_iter().filter(|server| wanted.contains_key(&server.name));
        for (name, why) in lost.filter_map(|server| Some((server.name, server.error?))) {
            let told = format!("The agent {} begins without its MCP server {name}: {why}", definition.name);
            self.home.outbox.warn(told).await;
        }
        agent.refit();
    }
}

/// Ends the servers of an agent that has ended.
pub(super) async fn dismiss(agent: &Agent, stop: &CancellationToken) {
    if let Some(roster) = agent.bench.toolbox.own_servers().and_then(Supply::roster) {
        let limit = if stop.is_cancelled() { HURRY } else { FAREWELL };
        // What does not end in time is ended when it is dropped.
        let _ = tokio::time::timeout(limit, roster.close()).await;
    }
}

/// Servers as they are started.
pub(crate) fn servers(
    wanted: &BTreeMap<String, McpServerConfig>,
    variable: impl Fn(&str) -> Option<String>,
) -> Servers {
    let mut servers = Servers::default();
    servers.add(Origin::Dynamic, wanted, &variable);
    servers
}

/// The servers of a kind's own, and what is wrong with those that cannot be read.
pub(crate) fn own(definition: &Definition) -> (BTreeMap<String, McpServerConfig>, Vec<String>) {
    let (mut servers, mut flaws) = (BTreeMap::new(), Vec::new());
    for given in &definition.mcp_servers {
        match given {
            Value::String(_) => {}
            Value::Object(entries) => {
                for (name, config) in entries {
                    match serde_json::from_value(config.clone()) {
                        Ok(config) => drop(servers.insert(name.clone(), config)),
                        Err(why) => flaws.push(format!("its MCP server {name} cannot be read: {why}")),
                    }
                }
            }
            other => flaws.push(format!("{other} in mcpServers is neither a name nor a server")),
        }
    }
    (servers, flaws)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_the_sessions_and_the_rest_is_its_own() {
        let given =
            [json!("docs"), json!({"db": {"command": "db-server"}, "bad": {"type": "pigeon"}}), json!(5)];
        let definition = Definition { mcp_servers: given.to_vec(), ..Definition::default() };
        let (servers, flaws) = own(&definition);
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["db"]);
        assert!(flaws.len() == 2 && flaws[0].contains("bad") && flaws[1].contains('5'), "{flaws:?}");
        assert_eq!(definition.servers(), ["docs"]);
    }
}
