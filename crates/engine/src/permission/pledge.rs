//! A promise to change nothing before a plan is approved: as long as it holds, an agent is in plan mode, whatever mode its
//! session is in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Such a promise. Cheap to clone; the clones are one.
#[derive(Debug, Clone, Default)]
pub struct Pledge {
    redeemed: Arc<AtomicBool>,
}

impl Pledge {
    /// Whether it still holds.
    pub fn holds(&self) -> bool {
        !self.redeemed.load(Ordering::Acquire)
    }

    /// The plan is approved.
    pub fn redeem(&self) {
        self.redeemed.store(true, Ordering::Release);
    }
}
