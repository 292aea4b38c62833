//! The agent.

pub mod tasks;
pub mod tools;
pub mod workspace;
