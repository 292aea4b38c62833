//! A promise to change nothing before a plan is approved: as long as it holds, an agent is in plan mode, whatever mode its
//! session is in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Such a promise. Cheap to clone; the clones are one.
#[derive(Debug, Clone, Default)]
pub struct PlanLock {
    approved: Arc<AtomicBool>,
}

impl PlanLock {
    /// Whether it still holds.
    pub fn is_held(&self) -> bool {
        !self.approved.load(Ordering::Acquire)
    }

    /// The plan is approved.
    pub fn approve(&self) {
        self.approved.store(true, Ordering::Release);
    }
}
