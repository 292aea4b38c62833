//! How the servers of a session are, as hosts are told.

use serde_json::Value;
use whimbrel_wire::control::{McpConnection, McpServerStatus};
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::system::InitServer;

use super::fault::Fault;
use super::listing::Listed;
use super::roster::Roster;
use super::server::Phase;
use super::slot::{Life, Slot};

impl Roster {
    /// The servers as `mcp_status` tells them.
    pub fn status(&self) -> Vec<McpServerStatus> {
        self.all().into_iter().map(|(name, slot)| status(name, &slot)).collect()
    }

    /// The servers as the first notice of a session lists them.
    pub fn for_init(&self) -> Vec<InitServer> {
        let listed = |(name, slot): (String, Slot)| InitServer {
            name,
            status: word(&connection(&slot.life)).into(),
            source: Some(slot.source().into()),
        };
        self.all().into_iter().map(listed).collect()
    }

    /// What was left out of what servers offer, and why.
    pub fn notes(&self) -> Vec<String> {
        let of = |server: std::sync::Arc<super::server::Server>| {
            let offer = server.state().offer;
            offer.notes.iter().map(|note| format!("MCP server {}: {note}", server.name)).collect::<Vec<_>>()
        };
        self.servers().into_iter().flat_map(of).collect()
    }
}

fn status(name: String, slot: &Slot) -> McpServerStatus {
    let status = connection(&slot.life);
    let (mut info, mut tools) = (None, None);
    if let Life::Here(server) = &slot.life {
        info = Some(server.info().clone());
        tools = Some(server.tools().iter().map(|tool| tool.listed().info()).collect());
    }
    if let (Life::On(server, _), McpConnection::Connected) = (&slot.life, &status) {
        let offer = server.state().offer;
        info = Some(offer.info.clone());
        tools = Some(offer.tools.iter().map(Listed::info).collect());
    }
    McpServerStatus {
        name,
        status,
        server_info: info,
        error: problem(&slot.life),
        config: slot.entry.config.as_ref().ok().map(shown),
        scope: Some(slot.entry.origin.scope().into()),
        source: Some(slot.source().into()),
        tools,
    }
}

fn connection(life: &Life) -> McpConnection {
    match life {
        Life::Here(_) => McpConnection::Connected,
        Life::Off => McpConnection::Disabled,
        Life::Bad(_) => McpConnection::Failed,
        Life::On(server, _) => match server.state().phase {
            Phase::Starting | Phase::Lost(_) => McpConnection::Pending,
            Phase::Connected(_) => McpConnection::Connected,
            Phase::Failed(Fault::NeedsAuth(_)) => McpConnection::NeedsAuth,
            Phase::Failed(_) => McpConnection::Failed,
        },
    }
}

fn problem(life: &Life) -> Option<String> {
    match life {
        Life::Here(_) | Life::Off => None,
        Life::Bad(problem) => Some(problem.clone()),
        Life::On(server, _) => match server.state().phase {
            Phase::Starting | Phase::Connected(_) => None,
            Phase::Lost(fault) => Some(format!("{fault} It is being looked for.")),
            Phase::Failed(fault) => Some(fault.to_string()),
        },
    }
}

fn word(status: &McpConnection) -> &str {
    match status {
        McpConnection::Connected => "connected",
        McpConnection::Failed => "failed",
        McpConnection::NeedsAuth => "needs-auth",
        McpConnection::Pending => "pending",
        McpConnection::Disabled => "disabled",
        McpConnection::Other(word) => word,
    }
}

impl Slot {
    /// Where the server comes from, in a word.
    pub(super) fn source(&self) -> &'static str {
        match &self.entry.config {
            Ok(McpServerConfig::Sdk(_)) => "sdk",
            Ok(_) | Err(_) => self.entry.origin.scope(),
        }
    }
}

/// An entry without what may be secret in it.
fn shown(config: &McpServerConfig) -> Value {
    let mut config = config.clone();
    match &mut config {
        McpServerConfig::Stdio(server) => server.env.clear(),
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.headers.clear(),
        McpServerConfig::Sdk(_) => {}
    }
    serde_json::to_value(config).unwrap_or_default()
}
