//! Permissions as a host sees them: permission requests, permission modes, and rules that cannot be read.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod modes;
mod plan_mode;
mod requests;
mod unreadable_rules;
