//! What the model is told beside the conversation itself.
//!
//! Rooms: [`prompt`] (the system prompt), [`surroundings`] (where and when we work), [`changes`] (files that somebody
//! else changed meanwhile), [`compact`](mod@compact) (a summary in place of the conversation), [`room`] (when that is due), [`retell`](mod@retell) (a
//! conversation that is too long to be summarised as it is).

pub mod changes;
pub mod compact;
pub mod prompt;
pub mod retell;
pub mod room;
pub mod surroundings;
