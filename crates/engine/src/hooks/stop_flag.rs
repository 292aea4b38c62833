//! The brake of an agent: any hook can pull it, at any event, and the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A brake. Cheap to clone; a clone is the same brake.
#[derive(Debug, Clone, Default)]
pub(super) struct StopFlag(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    value: AtomicBool,
    /// The brake of the agent that waits for this one.
    parent: Option<StopFlag>,
}

impl StopFlag {
    /// The brake of a subagent: pulled, it stops whoever waits for the subagent too.
    pub(super) fn child(&self) -> Self {
        Self(Arc::new(Flag { value: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Ends the turn.
    pub(super) fn set(&self) {
        self.0.value.store(true, Ordering::Relaxed);
        if let Some(above) = &self.0.parent {
            above.set();
        }
    }

    /// A new turn begins.
    pub(super) fn clear(&self) {
        self.0.value.store(false, Ordering::Relaxed);
    }

    /// Whether the turn is to end.
    pub(super) fn is_set(&self) -> bool {
        self.0.value.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_stops_whoever_waits_for_it_and_nobody_beside_it() {
        let main = StopFlag::default();
        let (one, other) = (main.child(), main.child());
        one.set();
        assert_eq!([&main, &one, &other].map(StopFlag::is_set), [true, true, false]);
        main.clear();
        assert_eq!([&main, &one].map(StopFlag::is_set), [false, true]);
    }
}
