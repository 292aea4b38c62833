//! What becomes of a connection, known to all who depend on it: whether it is lost, and why.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::mcp::error::McpError;

/// The fate of one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionState {
    lost: CancellationToken,
    last_error: Arc<Mutex<Option<McpError>>>,
}

impl ConnectionState {
    /// Notes what went wrong last. The connection may still live.
    pub(crate) fn record_error(&self, fault: McpError) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// What went wrong last.
    pub(crate) fn last_error(&self) -> Option<McpError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection is over.
    pub(crate) fn mark_lost(&self) {
        self.lost.cancel();
    }

    /// Waits until it is over.
    pub(crate) async fn wait_lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether it is over.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Why it is over.
    pub(crate) fn loss_error(&self) -> McpError {
        self.last_error().unwrap_or_else(|| McpError::Disconnected("it has closed the connection.".into()))
    }
}
