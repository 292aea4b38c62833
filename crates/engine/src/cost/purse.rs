//! The budget of a session: what may be spent, and what is set aside for calls that are under way.
//!
//! One call may cross the limit, because nobody knows what a reply costs before it is there; many at once may not. So every
//! call sets an estimate aside before it begins. Where that leaves nothing, the next one waits until a call is settled.

use std::sync::Arc;

use tokio::sync::watch;

/// The budget, shared by the whole tree of agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Purse {
    limit: f64,
    content: Arc<watch::Sender<Content>>,
}

/// What counts against the limit besides what is known to be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Content {
    /// For calls under way.
    set_aside: f64,
    /// For replies whose cost the provider did not tell.
    supposed: f64,
}

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Empty {
    /// The budget, in dollars.
    pub limit: f64,
}

/// What was set aside for one call; given back when it is dropped.
#[derive(Debug)]
pub struct SetAside {
    purse: Purse,
    /// How much, in dollars.
    pub dollars: f64,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Go,
    Wait,
    Never,
}

/// Decides: nothing is left, or something; what is set aside makes others wait, but the only one never.
fn admission(limit: f64, spent: f64, set_aside: f64) -> Admission {
    if spent >= limit {
        Admission::Never
    } else if set_aside <= 0.0 || spent + set_aside < limit {
        Admission::Go
    } else {
        Admission::Wait
    }
}

impl Purse {
    /// A budget in dollars.
    pub fn new(limit: f64) -> Self {
        Self { limit, content: Arc::new(watch::Sender::new(Content::default())) }
    }

    /// Whether nothing is left; `spent` is what is known to be spent.
    pub fn is_empty(&self, spent: f64) -> bool {
        spent + self.content.borrow().supposed >= self.limit
    }

    /// Sets an estimate aside for a call, as soon as there is room for it. `spent` tells what is known to be spent.
    pub async fn set_aside(&self, dollars: f64, spent: impl Fn() -> f64) -> Result<SetAside, Empty> {
        let mut changes = self.content.subscribe();
        loop {
            changes.mark_unchanged();
            let mut answer = Admission::Wait;
            self.content.send_if_modified(|content| {
                answer = admission(self.limit, spent() + content.supposed, content.set_aside);
                let goes = answer == Admission::Go;
                if goes {
                    content.set_aside += dollars;
                }
                goes
            });
            match answer {
                Admission::Go => return Ok(SetAside { purse: self.clone(), dollars }),
                Admission::Never => return Err(Empty { limit: self.limit }),
                // The sender is ours, so it is not gone.
                Admission::Wait => drop(changes.changed().await),
            }
        }
    }

    /// Counts a reply whose cost is not known, by what was expected of it.
    pub fn suppose(&self, dollars: f64) {
        self.content.send_modify(|content| content.supposed += dollars.max(0.0));
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        self.purse.content.send_modify(|content| {
            content.set_aside = (content.set_aside - self.dollars).max(0.0);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn who_may_begin() {
        use Admission::{Go, Never, Wait};
        let table = [
            ("nothing spent", 0.0, 0.0, Go),
            ("something left", 0.9, 0.0, Go),
            ("all spent", 1.0, 0.0, Never),
            ("more than all spent", 1.5, 0.0, Never),
            ("others under way, and room beside them", 0.5, 0.4, Go),
            ("others under way, and no room beside them", 0.5, 0.5, Wait),
            ("the only one may cross the limit", 0.999, 0.0, Go),
        ];
        for (name, spent, set_aside, expected) in table {
            assert_eq!(admission(1.0, spent, set_aside), expected, "{name}");
        }
    }

    #[test]
    fn a_call_waits_until_another_is_settled() {
        let (purse, spent) = (Purse::new(1.0), Mutex::new(0.0));
        let known = || *spent.lock().unwrap();
        let first = purse.set_aside(2.0, known).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(purse.set_aside(2.0, known));
        assert!(second.as_mut().now_or_never().is_none(), "there is no room beside the first");
        *spent.lock().unwrap() = 0.25;
        drop(first);
        let second = second.now_or_never().unwrap().unwrap();
        let mut third = Box::pin(purse.set_aside(2.0, known));
        assert!(third.as_mut().now_or_never().is_none());
        *spent.lock().unwrap() = 1.25;
        drop(second);
        assert_eq!(third.now_or_never().unwrap().unwrap_err(), Empty { limit: 1.0 });
    }

    #[test]
    fn what_is_not_known_counts_by_what_was_expected() {
        let purse = Purse::new(1.0);
        assert!(!purse.is_empty(0.9));
        purse.suppose(0.5);
        purse.suppose(-3.0);
        assert!(!purse.is_empty(0.4));
        assert!(purse.is_empty(0.5));
    }
}
