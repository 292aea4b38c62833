//! Subagents: the same turn with another branch of the log, a prompt of its own and no more rights than its parent.
//!
//! Rooms: [`definition`] (kinds of subagent), [`spawn`] (running one).

pub mod definition;
pub mod spawn;

pub use definition::Definition;
pub use spawn::{Agents, Errand, Report};
