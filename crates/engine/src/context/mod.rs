//! Context of the model besides the conversation itself, and compaction.
//!
//! Modules: [`system_prompt`], [`environment`] (directory, date, platform), [`instructions`] (CLAUDE.md files),
//! [`mentions`] (`@path` in a text), [`mentioned_files`] (attaches the files a prompt mentions), [`stale_files`]
//! (files changed since they were read), [`plan_mode`] (plan mode notices), [`sanitize`](mod@sanitize) (drops invalid
//! blocks of a prompt), [`usage`](mod@usage) (what fills the context), [`compact`](mod@compact) (replaces the history
//! by a summary), [`auto_compact`] (when to compact), [`render_history`](mod@render_history) (history as text, when
//! it is too long to be summarised as it is).

pub mod auto_compact;
pub mod compact;
pub mod environment;
pub mod instructions;
pub mod mentioned_files;
pub mod mentions;
pub mod plan_mode;
pub mod render_history;
pub mod sanitize;
pub mod stale_files;
pub mod system_prompt;
pub mod usage;

pub use plan_mode::PlanModeState;
