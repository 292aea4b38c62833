//! Limits and settings of a turn: structured output, budget, fallback models, thinking, compaction, faults of the model;
//! interrupts and prompts during a turn.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod budget;
mod compaction;
mod cost;
mod fallback_model;
mod interrupt;
mod model_faults;
mod steering;
mod structured_output;
mod thinking;
