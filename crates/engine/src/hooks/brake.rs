//! The brake of an agent: any hook can pull it, at any event, and the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A brake. Cheap to clone; a clone is the same brake.
#[derive(Debug, Clone, Default)]
pub(super) struct Brake(Arc<Lever>);

#[derive(Debug, Default)]
struct Lever {
    pulled: AtomicBool,
    /// The brake of the agent that waits for this one.
    above: Option<Brake>,
}

impl Brake {
    /// The brake of a subagent: pulled, it stops whoever waits for the subagent too.
    pub(super) fn below(&self) -> Self {
        Self(Arc::new(Lever { pulled: AtomicBool::new(false), above: Some(self.clone()) }))
    }

    /// Ends the turn.
    pub(super) fn pull(&self) {
        self.0.pulled.store(true, Ordering::Relaxed);
        if let Some(above) = &self.0.above {
            above.pull();
        }
    }

    /// A new turn begins.
    pub(super) fn release(&self) {
        self.0.pulled.store(false, Ordering::Relaxed);
    }

    /// Whether the turn is to end.
    pub(super) fn is_pulled(&self) -> bool {
        self.0.pulled.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_stops_whoever_waits_for_it_and_nobody_beside_it() {
        let main = Brake::default();
        let (one, other) = (main.below(), main.below());
        one.pull();
        assert_eq!([&main, &one, &other].map(Brake::is_pulled), [true, true, false]);
        main.release();
        assert_eq!([&main, &one].map(Brake::is_pulled), [false, true]);
    }
}
