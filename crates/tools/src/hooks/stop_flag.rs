//! Stop flag of an agent: any hook can set it at any event, and the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stop flag. Cheap to clone; clones share the flag.
#[derive(Debug, Clone, Default)]
pub(super) struct StopFlag(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    value: AtomicBool,
    /// Flag of the agent that waits for this one.
    parent: Option<StopFlag>,
}

impl StopFlag {
    /// Flag of a subagent: setting it also stops the agents that wait for the subagent.
    pub(super) fn child(&self) -> Self {
        Self(Arc::new(Flag { value: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    pub(super) fn set(&self) {
        self.0.value.store(true, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.set();
        }
    }

    /// Clears the flag for a new turn.
    pub(super) fn clear(&self) {
        self.0.value.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.value.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_stops_its_parent_but_not_its_siblings() {
        let main = StopFlag::default();
        let (one, other) = (main.child(), main.child());
        one.set();
        assert_eq!([&main, &one, &other].map(StopFlag::is_set), [true, true, false]);
        main.clear();
        assert_eq!([&main, &one].map(StopFlag::is_set), [false, true]);
    }
}
