//! Server status for the host.

use serde_json::Value;
use whimbrel_wire::control::{McpConnection, McpServerStatus};
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::system::InitServer;

use super::error::McpError;
use super::listing::ListedTool;
use super::registry::ServerRegistry;
use super::server_lifecycle::ServerPhase;
use super::slot::{ServerSlot, SlotState};

impl ServerRegistry {
    /// Servers for the `mcp_status` response.
    pub fn status(&self) -> Vec<McpServerStatus> {
        self.all_slots().into_iter().map(|(name, slot)| status(name, &slot)).collect()
    }

    /// Servers for the `init` frame.
    pub fn init_servers(&self) -> Vec<InitServer> {
        let to_init_server = |(name, slot): (String, ServerSlot)| InitServer {
            name,
            status: connection_status(&slot.state).as_str().into(),
            source: Some(slot.source().into()),
        };
        self.all_slots().into_iter().map(to_init_server).collect()
    }

    /// Items that were left out of servers' lists, and why.
    pub fn notes(&self) -> Vec<String> {
        let to_notes = |server: std::sync::Arc<super::server_lifecycle::ServerHandle>| {
            let features = server.state().features;
            features
                .notes
                .iter()
                .map(|note| format!("MCP server {}: {note}", server.name))
                .collect::<Vec<_>>()
        };
        self.enabled_servers().into_iter().flat_map(to_notes).collect()
    }
}

fn status(name: String, slot: &ServerSlot) -> McpServerStatus {
    let status = connection_status(&slot.state);
    let (mut info, mut tools) = (None, None);
    if let SlotState::InProcess(server) = &slot.state {
        info = Some(server.info().clone());
        tools = Some(server.tools().iter().map(|tool| ListedTool::from_in_process(tool).info()).collect());
    }
    if let (SlotState::Enabled(server, _), McpConnection::Connected) = (&slot.state, &status) {
        let features = server.state().features;
        info = Some(features.info.clone());
        tools = Some(features.tools.iter().map(ListedTool::info).collect());
    }
    McpServerStatus {
        name,
        status,
        server_info: info,
        error: error_text(&slot.state),
        config: slot.entry.config.as_ref().ok().map(redact_config),
        scope: Some(slot.entry.origin.as_str().into()),
        source: Some(slot.source().into()),
        tools,
    }
}

fn connection_status(state: &SlotState) -> McpConnection {
    match state {
        SlotState::InProcess(_) => McpConnection::Connected,
        SlotState::Disabled => McpConnection::Disabled,
        SlotState::Invalid(_) => McpConnection::Failed,
        SlotState::Enabled(server, _) => match server.state().phase {
            ServerPhase::Starting | ServerPhase::Reconnecting(_) => McpConnection::Pending,
            ServerPhase::Connected(_) => McpConnection::Connected,
            ServerPhase::Failed(McpError::NeedsAuth(_)) => McpConnection::NeedsAuth,
            ServerPhase::Failed(_) => McpConnection::Failed,
        },
    }
}

fn error_text(state: &SlotState) -> Option<String> {
    match state {
        SlotState::InProcess(_) | SlotState::Disabled => None,
        SlotState::Invalid(error) => Some(error.clone()),
        SlotState::Enabled(server, _) => match server.state().phase {
            ServerPhase::Starting | ServerPhase::Connected(_) => None,
            ServerPhase::Reconnecting(error) => Some(format!("{error} Reconnecting.")),
            ServerPhase::Failed(error) => Some(error.to_string()),
        },
    }
}

impl ServerSlot {
    /// Source of the server for the host.
    pub(super) fn source(&self) -> &'static str {
        match &self.entry.config {
            Ok(McpServerConfig::Sdk(_)) => "sdk",
            Ok(_) | Err(_) => self.entry.origin.as_str(),
        }
    }
}

/// Config as JSON without environment and headers, which may hold secrets.
fn redact_config(config: &McpServerConfig) -> Value {
    let mut config = config.clone();
    match &mut config {
        McpServerConfig::Stdio(server) => server.env.clear(),
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.headers.clear(),
        McpServerConfig::Sdk(_) => {}
    }
    serde_json::to_value(config).unwrap_or_default()
}
