//! Permission rules: their text, their patterns and the compiled rule set.

mod broad_allow_rule;
pub mod command_pattern;
pub mod domain;
pub mod parameter_rule;
pub mod path_pattern;
pub mod rule;
pub mod rule_set;
pub mod tool_name;
