//! Continued sessions: resume, continue, fork, rewind, mirror, and their errors.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod clear;
mod fixture;
mod pending_calls;
mod queued_messages;
mod recorded_usage;
mod restored_state;
mod resume;
mod resumed_cost;
mod rewind;
