//! Whether a tool call may be made.

pub mod command_pattern;
pub mod domain;
pub mod fs;
pub mod params;
pub mod path_pattern;
pub mod paths;
pub mod protected;
pub mod rule;
pub mod shell;
pub mod dirs;
pub mod ruleset;
pub mod tools;
pub mod call;
pub mod decision;
