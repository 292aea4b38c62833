//! Agents: the main one, and subagents: the same turn with another branch of the log, a prompt of its own and no more rights than its parent.
//!
//! Rooms: [`home`] (making an agent), [`definition`] (kinds of subagent), [`spawn`] (running one).

pub mod definition;
pub mod home;
pub mod spawn;

pub use definition::Definition;
pub use home::{Agents, Home};
pub use spawn::{Errand, Report};
