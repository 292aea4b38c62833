//! Sessions that go on: resume, continue, fork, rewind, mirror, and their errors.

#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

mod fixture;
mod restored_state;
mod resume;
