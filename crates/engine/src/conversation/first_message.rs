//! Whether the host has seen anything of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag of one turn, readable while the turn owns the conversation. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FirstMessage(Arc<AtomicBool>);

impl FirstMessage {
    /// Returns whether a message of the turn, or the start of the model's answer, was sent.
    pub fn was_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn mark_sent(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
