//! Permission decisions on tool calls: rules, modes, paths and shell commands, combined in one pure function,
//! [`decide()`].
//!
//! Nothing here runs a program, waits or sends a request. The disk is read only through [`fs::FsView`], and only if a
//! call names a path.
//!
//! | modules | content |
//! |---|---|
//! | `rules` | permission rules, their patterns, and the compiled set of all rules in force |
//! | `paths`, `work_dirs` | path resolution and comparison, protected paths, working directories |
//! | `fs`, `dir_walk` | view of the disk, and walks below a directory |
//! | `git_settings` | git settings that run programs |
//! | `shell` | analysis of a shell command from its text alone |
//! | `call`, `decision_input`, `decision` | input and result of a decision |
//! | `decide`, `decision_order` | the decision and its ordered steps |
//! | `target`, `command`, `file_access`, `tool_kind` | target of a call: a command, a file, a host |
//! | `sandbox` | whether a command runs in the sandbox |
//! | `mode`, `update`, `suggest` | permission modes, permission updates, suggested updates |
//!
//! "Restricting rule" means a deny or an ask rule.

pub mod call;
mod command;
pub mod decide;
pub mod decision;
mod decision_input;
mod decision_order;
mod dir_walk;
pub mod file_access;
#[cfg(test)]
mod fixture;
pub mod fs;
pub mod git_settings;
pub mod mode;
pub mod paths;
pub mod rules;
pub mod sandbox;
pub mod shell;
mod suggest;
mod target;
pub mod tool_kind;
pub mod update;
pub mod work_dirs;

pub use crate::rules::rule::{Rule, RuleError};
pub use crate::rules::rule_set::{LoadReport, RuleLayer, RuleSet, RuleSource, RuleWarning, SourcedRule};
pub use call::{Call, CallContext, GitInspector, GitProgram, PreToolDecision, ToolProperties};
pub use decide::{decide, decide_and_resolve, may_be_denied};
pub use decision::{AskDetails, CheckedCall, Decision, Reason, ResolvedDecision, SafetyRisk};
pub use file_access::ReadFilter;
pub use paths::ResolvedFile;
pub use sandbox::{FileProtection, SandboxRules, SandboxState};
pub use tool_kind::ToolKind;
pub use update::{PermissionSet, UpdateContext, UpdateError, apply_update};
pub use work_dirs::WorkDirs;
