//! What keeps a turn within bounds: the shape of its answer, its budget, other models, the room that it has.

mod budget;
mod compaction;
mod structured_output;
mod host_queries;
mod thinking;
mod fallback_model;
