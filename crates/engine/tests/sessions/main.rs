//! Continued sessions: resume, continue, fork, rewind, mirror, and their errors.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod fixture;
mod restored_state;
mod resume;
