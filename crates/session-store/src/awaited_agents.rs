//! Entries that record which background agents have not reported to the main agent. The last one before the end of the
//! conversation counts.

use serde::{Deserialize, Serialize};
use serde_json::json;

/// Type of the entry.
pub(crate) const AWAITED_AGENTS: &str = "awaited-agents";

/// A background agent whose report is awaited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedAgent {
    pub agent_id: String,
    /// The call that started or continued it.
    pub tool_use_id: String,
}

/// Renders an entry with all awaited agents of a session.
pub(crate) fn render_entry(agents: &[AwaitedAgent], session: &str) -> String {
    json!({"type": AWAITED_AGENTS, "agents": agents, "sessionId": session}).to_string()
}

/// Parses an entry; invalid data yields no agents.
pub(crate) fn parse_entry(bytes: &[u8]) -> Vec<AwaitedAgent> {
    #[derive(Deserialize)]
    struct Entry {
        agents: Vec<AwaitedAgent>,
    }
    serde_json::from_slice::<Entry>(bytes).map(|entry| entry.agents).unwrap_or_default()
}
