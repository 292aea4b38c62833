//! Denied tool calls of a turn, including those of subagents.

use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_wire::message::Denial;

/// A list shared by the agents of a session. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DenialLog(Arc<Mutex<Vec<Denial>>>);

impl DenialLog {
    pub fn record(&self, denial: Denial) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(denial);
    }

    /// Returns the list and clears it.
    pub fn take_all(&self) -> Vec<Denial> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
