//! Compaction: the older part of a conversation is replaced by a summary.
//!
//! [`summary`] asks the model for the summary and replaces the history; [`auto_compact`] does so when the context is full;
//! `render_history` renders a history as text when it is too long to be summarized in full. When to compact is
//! decided in [`compaction_policy`](crate::context::compaction_policy).

pub mod auto_compact;
mod render_history;
pub mod summary;
