//! Whether a tool call may be made: rules, modes, paths and bash, judged by one pure function, [`decide()`].
//!
//! Nothing here runs, waits or asks. The disk is seen only through [`fs::FsView`], and only if a call names a path.
//!
//! | room | what it holds |
//! |---|---|
//! | `rule`, `ruleset` | reading rules, and all that are in force, compiled |
//! | `command_pattern`, `path_pattern`, `folded`, `domain`, `params` | what rules are compared with |
//! | `paths`, `dirs`, `protected`, `fs`, `below`, `seen`, `unseen` | where paths lead, what the disk says, what lies below a directory, how much of it is looked at, what nobody sees |
//! | `shell` | the facts about a bash command, from its text alone |
//! | `call`, `decision`, `place` | what is judged, the answer with its reason, and the file it is about |
//! | `decide`, `subject`, `bash`, `files` | the steps, and what they ask of commands and files |
//! | `mode`, `update`, `suggest` | changing the rules: what is allowed, what is offered |

mod command;
mod dir_walk;
pub mod call;
pub mod command_pattern;
pub mod decide;
pub mod decision;
pub mod work_dirs;
pub mod domain;
pub mod file_access;
mod folded_path;
pub mod fs;
pub mod mode;
pub mod parameter_rule;
pub mod path_pattern;
pub mod paths;
mod resolved_file;
pub mod protected;
pub mod rule;
pub mod ruleset;
mod cached_fs;
pub mod shell;
mod target;
mod suggest;
#[cfg(test)]
mod fixture;
pub mod tool_kind;
mod invisible;
pub mod update;

pub use call::{Call, CallContext, GitProgram, PreToolDecision, GitInspector, SandboxFacts, ToolFacts};
pub use decide::{decide, may_be_denied, decide_and_resolve};
pub use decision::{Danger, Decision, PermissionQuestion, Reason};
pub use work_dirs::WorkDirs;
pub use file_access::ReadFilter;
pub use resolved_file::{ResolvedDecision, ResolvedFile};
pub use rule::{Rule, RuleError};
pub use ruleset::{RuleLayer, LoadReport, SourcedRule, RuleSet, RuleSource, RuleWarning};
pub use tool_kind::ToolKind;
pub use invisible::is_invisible;
pub use update::{UpdateContext, PermissionSet, UpdateError, apply_update};
