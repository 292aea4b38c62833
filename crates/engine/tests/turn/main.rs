//! Limits and settings of a turn: structured output, budget, fallback models, thinking, compaction, faults of the model.

#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

mod budget;
mod compaction;
mod cost;
mod fallback_model;
mod model_faults;
mod structured_output;
mod thinking;
