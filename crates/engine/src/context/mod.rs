//! What the model is told beside the conversation itself.
//!
//! Rooms: [`prompt`] (the system prompt), [`environment`] (where and when we work), [`memory`] (instruction files),
//! [`mentions`] (paths that a text names), [`attach`] (files that a prompt names), [`changes`] (files that somebody else
//! changed meanwhile), [`usage`](mod@usage) (what fills the context), [`compact`](mod@compact) (a summary in place of the
//! conversation), [`room`] (when that is due), [`retell`] (a conversation that is too long to be summarised as it is),
//! [`planning`] (plan mode), [`vet`](mod@vet) (what a prompt may hold).

pub mod mentioned_files;
pub mod stale_files;
pub mod compact;
pub mod instructions;
pub mod mentions;
pub mod plan_mode;
pub mod system_prompt;
pub mod render_history;
pub mod auto_compact;
pub mod environment;
pub mod usage;
pub mod sanitize;

pub use plan_mode::PlanModeState;
