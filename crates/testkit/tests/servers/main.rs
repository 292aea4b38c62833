//! MCP servers as a session has them: declared, waited for, called, judged, changed, lost and found again.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod elicitation;
mod sdk_servers;
mod agent_servers;
mod reconnect;
mod oauth;
mod fixture;
mod session_servers;
