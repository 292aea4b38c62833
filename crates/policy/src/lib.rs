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

mod bash;
mod below;
pub mod call;
pub mod command_pattern;
pub mod decide;
pub mod decision;
pub mod dirs;
pub mod domain;
pub mod files;
mod folded;
pub mod fs;
pub mod mode;
pub mod params;
pub mod path_pattern;
pub mod paths;
mod place;
pub mod protected;
pub mod rule;
pub mod ruleset;
mod seen;
pub mod shell;
mod subject;
mod suggest;
#[cfg(test)]
mod testing;
pub mod tools;
mod unseen;
pub mod update;

pub use call::{Call, Facts, GitProgram, HookVerdict, Repositories, SandboxFacts, ToolFacts};
pub use decide::{decide, is_limited, judge};
pub use decision::{Danger, Decision, Question, Reason};
pub use dirs::WorkDirs;
pub use files::ReadFilter;
pub use place::{Judged, Place};
pub use rule::{Rule, RuleError};
pub use ruleset::{Layer, Loaded, RuleRef, RuleSet, Source, Warning};
pub use tools::ToolKind;
pub use unseen::is_unseen;
pub use update::{Bounds, Standing, UpdateProblem, apply};
