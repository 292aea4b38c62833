//! What a host can turn while a session runs. Written only by `control` and commands; a turn reads a snapshot at each step.

use std::sync::Arc;

use tokio::sync::watch;
use whimbrel_models::{Effort, Thinking};

/// The settings that can change in the middle of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knobs {
    /// The model, by its full name.
    pub model: String,
    /// What was asked of thinking; none means the model's own default.
    pub thinking: Option<Thinking>,
    /// How hard the model tries.
    pub effort: Option<Effort>,
    /// How the model is to go about a plan, in place of our own words.
    pub plan_mode_instructions: Option<Arc<str>>,
}

/// The writing end.
pub type KnobsWriter = watch::Sender<Knobs>;

/// The reading end.
pub type KnobsReader = watch::Receiver<Knobs>;
