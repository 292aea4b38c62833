//! The state that a host sees: running, waiting for the host, or idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use whimbrel_wire::system::{SessionState, SessionStateChanged};

use crate::outbox::Outbox;

/// Tells the host about the state, if it asked to know. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateSign {
    outbox: Outbox,
    wanted: Wanted,
    waiting: Arc<AtomicUsize>,
}

/// Whether the host wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// No.
    Never,
    /// Yes, the SDK for itself: it hides the frames from its caller.
    BySdk,
    /// Yes, the caller.
    ByCaller,
}

impl StateSign {
    /// A sign that speaks through `outbox`.
    pub fn new(outbox: Outbox, wanted: Wanted) -> Self {
        Self { outbox, wanted, waiting: Arc::default() }
    }

    /// A turn runs.
    pub async fn running(&self) {
        self.show(SessionState::Running).await;
    }

    /// Nothing runs and nothing is queued.
    pub async fn idle(&self) {
        self.show(SessionState::Idle).await;
    }

    /// The session waits for the host until [`Waiting::over`] is called.
    pub async fn requires_action(&self) -> Waiting {
        let first = self.waiting.fetch_add(1, Ordering::Relaxed) == 0;
        let waiting = Waiting(self.clone());
        if first {
            self.show(SessionState::RequiresAction).await;
        }
        waiting
    }

    async fn show(&self, state: SessionState) {
        let sdk_host_only = match self.wanted {
            Wanted::Never => return,
            Wanted::BySdk => Some(true),
            Wanted::ByCaller => None,
        };
        self.outbox.notify(SessionStateChanged { state, sdk_host_only }).await;
    }
}

/// The session waits for the host. An interrupted turn just drops it.
#[derive(Debug)]
pub struct Waiting(StateSign);

impl Waiting {
    /// The host has answered.
    pub async fn over(self) {
        let sign = self.0.clone();
        drop(self);
        if sign.waiting.load(Ordering::Relaxed) == 0 {
            sign.running().await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
