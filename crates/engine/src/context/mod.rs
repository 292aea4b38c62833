//! Context of the model besides the conversation itself.
//!
//! Modules: [`system_prompt`], [`environment`] (directory, date, platform), [`instructions`] (CLAUDE.md files),
//! [`mentions`] (`@path` in a text), [`stale_files`] (files changed since they were read), [`plan_mode`] (plan mode
//! reminders), [`prompt_sanitizer`] (dropped from a prompt), [`usage`](mod@usage) (what fills the
//! context), [`token_estimate`], [`compaction_policy`] (when to compact).

pub mod compaction_policy;
pub mod environment;
pub mod instructions;
pub mod mentions;
pub mod plan_mode;
pub mod prompt_sanitizer;
pub mod stale_files;
pub mod system_prompt;
pub mod token_estimate;
pub mod usage;

pub use plan_mode::PlanModeState;
