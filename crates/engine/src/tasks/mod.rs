//! Background work of a session.

use tokio::sync::mpsc;

/// A handle on the background work of a session. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    news: mpsc::UnboundedSender<TaskEvent>,
}

/// Something happened to background work.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {}

impl Tasks {
    /// An empty table that reports to `news`.
    pub fn new(news: mpsc::UnboundedSender<TaskEvent>) -> Self {
        Self { news }
    }
}
