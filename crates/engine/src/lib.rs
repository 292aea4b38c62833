//! The agent.

pub mod clock;
pub mod files;
pub mod ids;
pub mod tasks;
pub mod tools;
pub mod workspace;
