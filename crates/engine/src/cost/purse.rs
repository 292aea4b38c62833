//! The budget of a session: what may be spent, what is spent, and what is set aside for calls that are under way.
//!
//! One call may cross the limit, because nobody knows what a reply costs before it is there; many at once may not. So every
//! call sets aside what it is expected to cost before it begins, and waits where there is no room for that beside the
//! others. What is expected is raised for all that are under way as soon as a longer reply is known. Once the limit is
//! crossed, whatever is still under way is given up.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// How many tokens a reply is expected to have, at least; one as long as the longest so far may come again.
const EXPECTED_REPLY: u64 = 1_000;

/// The budget, shared by the whole tree of agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Purse {
    limit: f64,
    content: Arc<watch::Sender<Content>>,
}

/// What counts against the limit.
#[derive(Debug, Default)]
struct Content {
    /// What is known to be spent.
    spent: f64,
    /// For replies whose cost the provider did not tell.
    supposed: f64,
    /// The calls under way.
    calls: BTreeMap<u64, Expected>,
    /// The longest reply of each model so far, in tokens.
    longest: BTreeMap<String, u64>,
    /// The number of the next call.
    next: u64,
}

/// What a call is expected to cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The model that is asked.
    pub model: String,
    /// What it costs to ask, in dollars.
    pub asked: f64,
    /// What a token of the reply costs, in dollars.
    pub per_token: f64,
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
    number: u64,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Go,
    Wait,
    Never,
}

/// Decides: where nothing is left, none may begin; the only one always may; beside others there must be room for it.
fn admission(limit: f64, spent: f64, others: Option<f64>, own: f64) -> Admission {
    match others {
        _ if spent >= limit => Admission::Never,
        None => Admission::Go,
        Some(others) if spent + others + own <= limit => Admission::Go,
        Some(_) => Admission::Wait,
    }
}

impl Content {
    /// What counts as spent.
    fn gone(&self) -> f64 {
        self.spent + self.supposed
    }

    fn price(&self, call: &Expected) -> f64 {
        let longest = self.longest.get(&call.model).copied().unwrap_or(0);
        call.asked + call.per_token * longest.max(EXPECTED_REPLY) as f64
    }

    /// What is set aside for the calls under way, if there are any.
    fn set_aside(&self) -> Option<f64> {
        let prices = self.calls.values().map(|call| self.price(call));
        (!self.calls.is_empty()).then(|| prices.sum())
    }
}

impl Purse {
    /// A budget in dollars.
    pub fn new(limit: f64) -> Self {
        Self { limit, content: Arc::new(watch::Sender::new(Content::default())) }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.content.borrow().gone() >= self.limit
    }

    /// Ends when nothing is left.
    pub async fn ran_out(&self) -> Empty {
        let mut changes = self.content.subscribe();
        // The sender is ours, so it is not gone.
        drop(changes.wait_for(|content| content.gone() >= self.limit).await);
        Empty { limit: self.limit }
    }

    /// Sets aside what a call is expected to cost, as soon as there is room for it.
    pub async fn set_aside(&self, call: Expected) -> Result<SetAside, Empty> {
        let mut changes = self.content.subscribe();
        loop {
            changes.mark_unchanged();
            let (mut answer, mut number) = (Admission::Wait, 0);
            self.content.send_if_modified(|content| {
                answer = admission(self.limit, content.gone(), content.set_aside(), content.price(&call));
                let goes = answer == Admission::Go;
                if goes {
                    number = content.next;
                    content.next += 1;
                    content.calls.insert(number, call.clone());
                }
                goes
            });
            match answer {
                Admission::Go => return Ok(SetAside { purse: self.clone(), number }),
                Admission::Never => return Err(Empty { limit: self.limit }),
                // The sender is ours, so it is not gone.
                Admission::Wait => drop(changes.changed().await),
            }
        }
    }

    /// A reply of so many tokens has come, and so much is spent by now.
    pub(super) fn settle(&self, model: &str, tokens: u64, spent: f64) {
        self.content.send_modify(|content| {
            // Several may settle at once, in any order.
            content.spent = spent.max(content.spent);
            let longest = content.longest.entry(model.to_owned()).or_default();
            *longest = tokens.max(*longest);
        });
    }

    /// Counts a reply whose cost is not known, by what was expected of it.
    pub fn suppose(&self, dollars: f64) {
        self.content.send_modify(|content| content.supposed += dollars.max(0.0));
    }
}

impl SetAside {
    /// How much it is by now, in dollars.
    pub fn dollars(&self) -> f64 {
        let content = self.purse.content.borrow();
        content.calls.get(&self.number).map_or(0.0, |call| content.price(call))
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        self.purse.content.send_modify(|content| drop(content.calls.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A call that is expected to cost so much for each thousand tokens of its reply.
    fn call(dollars: f64) -> Expected {
        Expected { model: "m".into(), asked: 0.0, per_token: dollars / 1_000.0 }
    }

    #[test]
    fn who_may_begin() {
        use Admission::{Go, Never, Wait};
        let table = [
            ("nothing spent", 0.0, None, 0.1, Go),
            ("something left", 0.9, None, 0.1, Go),
            ("all spent", 1.0, None, 0.1, Never),
            ("more than all spent", 1.5, Some(0.1), 0.1, Never),
            ("others under way, and room beside them", 0.5, Some(0.3), 0.1, Go),
            ("others under way, and room for exactly this one", 0.5, Some(0.25), 0.25, Go),
            ("others under way, and no room beside them", 0.5, Some(0.5), 0.1, Wait),
            ("others under way, and too little room for this one", 0.5, Some(0.3), 0.3, Wait),
            ("others that cost nothing, and no room for this one", 0.5, Some(0.0), 0.6, Wait),
            ("the only one may cross the limit", 0.999, None, 5.0, Go),
        ];
        for (name, spent, others, own, expected) in table {
            assert_eq!(admission(1.0, spent, others, own), expected, "{name}");
        }
    }

    #[test]
    fn a_call_waits_until_another_is_settled() {
        let purse = Purse::new(1.0);
        let first = purse.set_aside(call(2.0)).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(purse.set_aside(call(2.0)));
        assert!(second.as_mut().now_or_never().is_none(), "there is no room beside the first");
        purse.settle("m", 10, 0.25);
        drop(first);
        let second = second.now_or_never().unwrap().unwrap();
        let mut third = Box::pin(purse.set_aside(call(2.0)));
        assert!(third.as_mut().now_or_never().is_none());
        purse.settle("m", 10, 1.25);
        drop(second);
        assert_eq!(third.now_or_never().unwrap().unwrap_err(), Empty { limit: 1.0 });
    }

    #[test]
    fn a_longer_reply_raises_what_is_set_aside_for_all_that_are_under_way() {
        let purse = Purse::new(1.0);
        let begin = || purse.set_aside(call(0.05)).now_or_never();
        let under_way: Vec<SetAside> = (0..3).map(|_| begin().unwrap().unwrap()).collect();
        assert!((under_way[0].dollars() - 0.05).abs() < 1e-9);
        purse.settle("m", 5_000, 0.25);
        assert!((under_way[0].dollars() - 0.25).abs() < 1e-9);
        assert!(begin().is_none(), "three more of that length may come");
        let other = Expected { model: "another".into(), ..call(0.0) };
        assert!(purse.set_aside(other).now_or_never().unwrap().is_ok(), "another model is another matter");
        drop(under_way);
        assert!(begin().unwrap().is_ok());
    }

    #[test]
    fn whoever_is_under_way_learns_that_nothing_is_left() {
        let purse = Purse::new(1.0);
        let mut told = Box::pin(purse.ran_out());
        assert!(told.as_mut().now_or_never().is_none());
        purse.settle("m", 1, 0.9);
        assert!(told.as_mut().now_or_never().is_none());
        purse.settle("m", 1, 1.0);
        assert_eq!(told.now_or_never(), Some(Empty { limit: 1.0 }));
        assert!(purse.ran_out().now_or_never().is_some());
    }

    #[test]
    fn what_is_not_known_counts_by_what_was_expected() {
        let purse = Purse::new(1.0);
        purse.settle("m", 1, 0.4);
        purse.suppose(0.5);
        purse.suppose(-3.0);
        assert!(!purse.is_empty());
        purse.settle("m", 1, 0.5);
        assert!(purse.is_empty());
    }
}
