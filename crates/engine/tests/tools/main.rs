//! Tools as a model and a host see them.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod deferred_tools;
mod live_output;
mod monitor;
mod task_list;
mod timers;
mod web_search;
mod worktree;
