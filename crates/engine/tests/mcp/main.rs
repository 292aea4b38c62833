//! MCP servers of a session: configuration, startup, calls, permissions, changes, failure and reconnection.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod agent_servers;
mod elicitation;
mod fixture;
mod oauth;
mod reconnect;
mod sdk_servers;
mod session_servers;
