//! What the model is told before the conversation begins.
//!
//! Rooms: [`prompt`] (the system prompt), [`surroundings`] (where and when we work), [`changes`] (files that somebody
//! else changed meanwhile).

pub mod changes;
pub mod prompt;
pub mod surroundings;
