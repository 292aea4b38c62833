//! What programs do, by name and arguments: the files they read and write, whether they only read, what they remove.

pub(crate) mod accepted_edits;
pub(crate) mod allowed_options;
pub(crate) mod argv;
pub(crate) mod builtins;
pub(crate) mod directories;
pub(crate) mod effects;
pub(crate) mod find;
pub(crate) mod git;
pub(crate) mod jq;
pub(crate) mod operands;
pub(crate) mod read_only;
pub(crate) mod read_only_with_flags;
mod risky_arguments;
pub(crate) mod sed;
