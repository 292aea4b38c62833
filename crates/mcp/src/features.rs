//! Tools, prompts and instructions of all servers together.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::options::McpServerConfig;

use super::in_process::InProcessServer;
use super::limits::request_timeouts;
use super::listing::{ListedTool, ServerFeatures};
use super::names;
use super::prompts::{self, PromptCommand};
use super::registry::ServerRegistry;
use super::server_lifecycle::{ServerHandle, ServerPhase};
use super::server_tool::{InProcessFunction, ServerTool, ToolBackend, ToolOwner};
use super::slot::{ServerSlot, SlotState};
use super::tool_policy::{ToolPolicy, tool_policy};

impl ServerRegistry {
    /// Tools of all servers, in a stable order. Tools of a reconnecting server stay, those of a failed one are removed.
    pub fn tools(&self) -> Vec<ServerTool> {
        let mut tools = Vec::new();
        let mut taken = HashSet::new();
        let limits = self.inner().deps.limits;
        let all = self.all_slots();
        let source = |name: &str| all.iter().find(|(other, _)| other == name).map(|(_, slot)| slot.source());
        for (server, prefix, features) in self.connected_features() {
            let source = source(&server.name).unwrap_or_default();
            let owner = ToolOwner { name: Arc::clone(&server.name), prefix: prefix.clone(), source };
            for listed in &features.tools {
                let name = names::tool_name(&prefix, &listed.name, &mut taken);
                let Some(listed) = apply_tool_policy(listed.clone(), &server.config) else { continue };
                let backend = ToolBackend::Remote {
                    server: Arc::downgrade(&server),
                    details_reader: self.details_reader(&server.config),
                };
                let always_load = always_load(&server.config);
                tools.push(ServerTool { name, owner: owner.clone(), listed, always_load, backend, limits });
            }
        }
        for (server, prefix, config, in_process) in self.in_process_servers() {
            let owner = ToolOwner { name: server.into(), prefix: prefix.clone(), source: "sdk" };
            let timeout = request_timeouts(&config, limits).total;
            for tool in in_process.tools() {
                let name = names::tool_name(&prefix, &tool.name, &mut taken);
                let Some(listed) = apply_tool_policy(ListedTool::from_in_process(tool), &config) else {
                    continue;
                };
                let backend = ToolBackend::InProcess(InProcessFunction {
                    function: Arc::clone(&tool.function),
                    timeout,
                    host: self.inner().deps.host.clone(),
                    notify: self.inner().deps.notify.clone(),
                });
                tools.push(ServerTool {
                    name,
                    owner: owner.clone(),
                    listed,
                    always_load: None,
                    backend,
                    limits,
                });
            }
        }
        tools
    }

    /// The host, if it runs this server and reads the details of calls.
    fn details_reader(&self, config: &McpServerConfig) -> Option<HostRequests> {
        let host = self.inner().deps.host.as_ref().filter(|host| host.sends_details())?;
        matches!(config, McpServerConfig::Sdk(_)).then(|| host.clone())
    }

    /// Returns whether a connected server has resources.
    pub fn has_resources(&self) -> bool {
        self.connected_features().iter().any(|(_, _, features)| features.has_resources)
    }

    /// Instructions for the model, by server name.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let to_entry = |(server, _, features): (Arc<ServerHandle>, String, Arc<ServerFeatures>)| {
            let text = features.instructions.clone().filter(|text| !text.trim().is_empty())?;
            Some((server.name.to_string(), text))
        };
        let in_process_entries = self.in_process_servers().into_iter();
        let in_process_entries = in_process_entries
            .filter_map(|(name, _, _, server)| Some((name, server.instructions()?.to_owned())));
        self.connected_features().into_iter().filter_map(to_entry).chain(in_process_entries).collect()
    }

    /// Servers in this process: name, tool prefix, config.
    pub(super) fn in_process_servers(&self) -> Vec<(String, String, McpServerConfig, InProcessServer)> {
        let all = self.all_slots();
        let prefixes = names::tool_prefixes(all.iter().map(|(name, _)| name.as_str()));
        let to_entry = |(name, slot): (String, ServerSlot)| match (slot.state, slot.entry.config) {
            (SlotState::InProcess(server), Ok(config)) => {
                let prefix = prefixes.get(&name)?.clone();
                Some((name, prefix, config, server))
            }
            _ => None,
        };
        all.into_iter().filter_map(to_entry).collect()
    }

    /// Prompts of all servers, as slash commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let mut taken = HashSet::new();
        let mut commands = Vec::new();
        for (server, prefix, features) in self.connected_features() {
            for prompt in &features.prompts {
                commands.push(PromptCommand {
                    name: names::tool_name(&prefix, &prompt.name, &mut taken),
                    server: server.name.to_string(),
                    prompt: prompt.name.clone(),
                    description: prompt.description.clone().unwrap_or_default(),
                    arguments: prompts::argument_names(prompt.arguments.as_ref()),
                });
            }
        }
        commands
    }

    /// Returns true if the command has the prefix of a server that is still starting.
    pub fn may_add_prompt(&self, command: &str) -> bool {
        let all = self.all_slots();
        let prefixes = names::tool_prefixes(all.iter().map(|(name, _)| name.as_str()));
        let starting = self
            .enabled_servers()
            .into_iter()
            .filter(|server| matches!(server.state().phase, ServerPhase::Starting));
        let mut prefixes = starting.filter_map(|server| prefixes.get(&*server.name).cloned());
        prefixes.any(|prefix| command.starts_with(&format!("mcp__{prefix}__")))
    }

    /// Prefix of a server in the names of its tools.
    pub fn tool_prefix(&self, server: &str) -> Option<String> {
        let all = self.all_slots();
        names::tool_prefixes(all.iter().map(|(name, _)| name.as_str())).remove(server)
    }

    pub fn connect_timeout(&self) -> Duration {
        self.inner().deps.limits.connect_timeout
    }

    pub fn max_output_bytes(&self) -> usize {
        self.inner().deps.limits.max_output_bytes
    }

    /// Connected and reconnecting servers with their tool prefix and features.
    pub(super) fn connected_features(&self) -> Vec<(Arc<ServerHandle>, String, Arc<ServerFeatures>)> {
        let all = self.all_slots();
        let prefixes = names::tool_prefixes(all.iter().map(|(name, _)| name.as_str()));
        let to_entry = |server: Arc<ServerHandle>| {
            let state = server.state();
            match state.phase {
                ServerPhase::Connected(_) | ServerPhase::Reconnecting(_) => {
                    let prefix = prefixes.get(&*server.name)?.clone();
                    Some((server, prefix, state.features))
                }
                ServerPhase::Starting | ServerPhase::Failed(_) => None,
            }
        };
        self.enabled_servers().into_iter().filter_map(to_entry).collect()
    }

    /// Finds a server by its name or by its tool prefix.
    pub(super) fn find_server(&self, name: &str) -> Result<Arc<ServerHandle>, String> {
        let servers = self.enabled_servers();
        let available = || match servers.iter().map(|server| server.name.to_string()).collect::<Vec<_>>() {
            names if names.is_empty() => "No server is enabled".to_owned(),
            names => format!("Available: {}", names.join(", ")),
        };
        let exact = servers.iter().find(|server| *server.name == *name);
        exact
            .or_else(|| servers.iter().find(|server| names::normalize(&server.name) == name))
            .cloned()
            .ok_or_else(|| format!("Server not found: {name}. {}.", available()))
    }
}

/// Applies the per-tool policy of the server's entry; `None` hides the tool.
fn apply_tool_policy(listed: ListedTool, config: &McpServerConfig) -> Option<ListedTool> {
    match tool_policy(config, &listed.name) {
        ToolPolicy::Default => Some(listed),
        ToolPolicy::Ask => Some(ListedTool { interactive: true, ..listed }),
        ToolPolicy::Deny => None,
    }
}

/// `alwaysLoad` of the server's entry.
fn always_load(config: &McpServerConfig) -> Option<bool> {
    match config {
        McpServerConfig::Stdio(server) => server.always_load,
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.always_load,
        McpServerConfig::Sdk(_) => None,
    }
}
