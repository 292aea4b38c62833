//! Plan lock: keeps an agent in plan mode until its plan is approved, whatever the mode of the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Plan lock. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct PlanLock {
    approved: Arc<AtomicBool>,
}

impl PlanLock {
    pub fn is_held(&self) -> bool {
        !self.approved.load(Ordering::Acquire)
    }

    pub fn approve(&self) {
        self.approved.store(true, Ordering::Release);
    }
}
