//! MCP servers as a session has them: declared, waited for, called, judged, changed, lost and found again.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod asking;
mod hosted;
mod kinds;
mod lives;
mod logins;
mod rig;
mod using;
