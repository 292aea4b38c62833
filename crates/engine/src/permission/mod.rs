//! Whether a tool call may be made: the judging, without any asking.
//!
//! Rooms: [`decide`] (pure: a call in, a decision out).

pub mod decide;

pub use decide::{Decision, Question, decide};
