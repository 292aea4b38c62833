//! MCP servers of a session: configuration, startup, calls, permissions, changes, failure and reconnection.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod agent_servers;
mod elicitation;
mod fixture;
mod oauth;
mod permissions;
mod reconnect;
mod sdk_servers;
mod session_servers;
