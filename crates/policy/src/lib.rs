//! Permission decisions on tool calls: rules, modes, paths and shell commands, combined in one pure function,
//! [`decide()`].
//!
//! Nothing here runs a program, waits or asks. The disk is read only through [`fs::FsView`], and only if a call names
//! a path.
//!
//! | modules | content |
//! |---|---|
//! | `rule`, `ruleset` | parsing of rules; the compiled set of all rules in force |
//! | `command_pattern`, `path_pattern`, `domain`, `parameter_rule` | what rules are matched against |
//! | `paths`, `folded_path`, `work_dirs`, `protected`, `invisible` | path resolution and comparison |
//! | `fs`, `cached_fs`, `dir_walk` | view of the disk, its cache and read budget, walks below a directory |
//! | `shell` | analysis of a shell command from its text alone |
//! | `call`, `decision`, `resolved_file` | input and result of a decision, and the file it is about |
//! | `decide`, `target`, `command`, `file_access` | the decision steps, and their checks of commands and files |
//! | `mode`, `update`, `suggest` | order of modes, permission updates, suggested updates |
//!
//! "Restricting rule" means a deny or an ask rule.

pub mod call;
mod command;
pub mod decide;
pub mod decision;
mod decision_input;
mod dir_walk;
pub mod file_access;
#[cfg(test)]
mod fixture;
pub mod fs;
pub mod mode;
pub mod paths;
mod resolved_file;
pub mod rules;
pub mod shell;
mod steps;
mod suggest;
mod target;
pub mod tool_kind;
pub mod update;
pub mod work_dirs;

pub use crate::rules::rule::{Rule, RuleError};
pub use crate::rules::rule_set::{LoadReport, RuleLayer, RuleSet, RuleSource, RuleWarning, SourcedRule};
pub use call::{Call, CallContext, GitInspector, GitProgram, PreToolDecision, SandboxFacts, ToolFacts};
pub use decide::{decide, decide_and_resolve, may_be_denied};
pub use decision::{Danger, Decision, PermissionQuestion, Reason};
pub use file_access::ReadFilter;
pub use resolved_file::{ResolvedDecision, ResolvedFile};
pub use tool_kind::ToolKind;
pub use update::{PermissionSet, UpdateContext, UpdateError, apply_update};
pub use work_dirs::WorkDirs;
