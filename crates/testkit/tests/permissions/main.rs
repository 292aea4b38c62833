//! Permissions as a host sees them: what it is asked, field by field, and the modes that a session can be in.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod modes;
mod permission_requests;
