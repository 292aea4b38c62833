//! What becomes of a connection, known to all who depend on it: whether it is lost, and why.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::mcp::fault::Fault;

/// The fate of one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fate {
    lost: CancellationToken,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl Fate {
    /// Notes what went wrong last. The connection may still live.
    pub(crate) fn note(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// What went wrong last.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection is over.
    pub(crate) fn lose(&self) {
        self.lost.cancel();
    }

    /// Waits until it is over.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether it is over.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Why it is over.
    pub(crate) fn reason(&self) -> Fault {
        self.fault().unwrap_or_else(|| Fault::Gone("it has closed the connection.".into()))
    }
}
