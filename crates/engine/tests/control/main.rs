//! Control requests of the host.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod hooks_listing;
mod page;
mod repo_root;
mod session_state;
mod side_question;
