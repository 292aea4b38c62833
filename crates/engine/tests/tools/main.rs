//! Tools as a model and a host see them.

#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

mod deferred_tools;
mod monitor;
mod task_list;
mod web_search;
mod worktree;
