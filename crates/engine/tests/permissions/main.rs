//! Permissions as a host sees them: every field of the permission requests, and the permission modes.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod modes;
mod plan_mode;
mod requests;
