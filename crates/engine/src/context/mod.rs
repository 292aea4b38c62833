//! What the model is told beside the conversation itself.
//!
//! Rooms: [`prompt`] (the system prompt), [`surroundings`] (where and when we work), [`changes`] (files that somebody
//! else changed meanwhile), [`compact`](mod@compact) (a summary in place of the conversation), [`planning`] (plan mode).

pub mod changes;
pub mod compact;
pub mod planning;
pub mod prompt;
pub mod surroundings;

pub use planning::Planning;
