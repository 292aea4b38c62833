//! Loss and last error of a connection, shared by everything that depends on it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::error::McpError;

/// State of one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionState {
    lost: CancellationToken,
    last_error: Arc<Mutex<Option<McpError>>>,
}

impl ConnectionState {
    /// Records the latest error. The connection may still be open.
    pub(crate) fn record_error(&self, error: McpError) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn last_error(&self) -> Option<McpError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Marks the connection as lost.
    pub(crate) fn mark_lost(&self) {
        self.lost.cancel();
    }

    pub(crate) async fn wait_lost(&self) {
        self.lost.cancelled().await;
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Error of a lost connection.
    pub(crate) fn loss_error(&self) -> McpError {
        self.last_error().unwrap_or_else(|| McpError::Disconnected("it closed the connection.".into()))
    }
}
