//! Whether a tool call may be made: the judging, without any asking.
//!
//! Rooms: [`decide`](mod@decide) (pure: a call in, a decision out), [`paths`] (where a path really leads).

pub mod decide;
pub mod paths;

pub use decide::{Decision, Question, decide};
