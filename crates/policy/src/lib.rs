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

mod cached_fs;
pub mod call;
mod command;
pub mod command_pattern;
pub mod decide;
pub mod decision;
mod dir_walk;
pub mod domain;
pub mod file_access;
#[cfg(test)]
mod fixture;
mod folded_path;
pub mod fs;
pub mod mode;
pub mod parameter_rule;
pub mod path_pattern;
pub mod paths;
pub mod protected;
mod resolved_file;
pub mod rule;
pub mod ruleset;
pub mod shell;
mod suggest;
mod target;
pub mod tool_kind;
pub mod update;
pub mod work_dirs;

pub use call::{Call, CallContext, GitInspector, GitProgram, PreToolDecision, SandboxFacts, ToolFacts};
pub use decide::{decide, decide_and_resolve, may_be_denied};
pub use decision::{Danger, Decision, PermissionQuestion, Reason};
pub use file_access::ReadFilter;
pub use resolved_file::{ResolvedDecision, ResolvedFile};
pub use rule::{Rule, RuleError};
pub use ruleset::{LoadReport, RuleLayer, RuleSet, RuleSource, RuleWarning, SourcedRule};
pub use tool_kind::ToolKind;
pub use update::{PermissionSet, UpdateContext, UpdateError, apply_update};
pub use work_dirs::WorkDirs;
