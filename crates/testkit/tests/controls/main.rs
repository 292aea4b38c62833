//! Limits and settings of a turn: structured output, budget, fallback models, thinking, compaction.

mod budget;
mod compaction;
mod fallback_model;
mod host_queries;
mod structured_output;
mod thinking;
