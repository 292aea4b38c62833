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
const EXPECTED_REPLY_TOKENS: u64 = 1_000;

/// The budget, shared by the whole tree of agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    limit: f64,
    state: Arc<watch::Sender<BudgetState>>,
}

/// What counts against the limit.
#[derive(Debug, Default)]
struct BudgetState {
    /// What is known to be spent.
    spent: f64,
    /// For replies whose cost the provider did not tell.
    estimated: f64,
    /// The calls under way.
    reservations: BTreeMap<u64, CostEstimate>,
    /// The longest reply of each model so far, in tokens.
    longest_reply: BTreeMap<String, u64>,
    /// The number of the next call.
    next_id: u64,
}

/// What a call is expected to cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    /// The model that is asked.
    pub model: String,
    /// What it costs to ask, in dollars.
    pub input_usd: f64,
    /// What a token of the reply costs, in dollars.
    pub output_token_usd: f64,
}

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetExceeded {
    /// The budget, in dollars.
    pub limit: f64,
}

/// What was set aside for one call; given back when it is dropped.
#[derive(Debug)]
pub struct BudgetReservation {
    budget: Budget,
    id: u64,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmissionDecision {
    Start,
    Wait,
    Deny,
}

/// Decides: where nothing is left, none may begin; the only one always may; beside others there must be room for it.
fn decide_admission(limit: f64, spent: f64, others: Option<f64>, own: f64) -> AdmissionDecision {
    match others {
        _ if spent >= limit => AdmissionDecision::Deny,
        None => AdmissionDecision::Start,
        Some(others) if spent + others + own <= limit => AdmissionDecision::Start,
        Some(_) => AdmissionDecision::Wait,
    }
}

impl BudgetState {
    /// What counts as spent.
    fn total(&self) -> f64 {
        self.spent + self.estimated
    }

    fn estimate(&self, call: &CostEstimate) -> f64 {
        let longest = self.longest_reply.get(&call.model).copied().unwrap_or(0);
        call.input_usd + call.output_token_usd * longest.max(EXPECTED_REPLY_TOKENS) as f64
    }

    /// What is set aside for the calls under way, if there are any.
    fn reserved(&self) -> Option<f64> {
        let prices = self.reservations.values().map(|call| self.estimate(call));
        (!self.reservations.is_empty()).then(|| prices.sum())
    }
}

impl Budget {
    /// A budget in dollars.
    pub fn new(limit: f64) -> Self {
        Self { limit, state: Arc::new(watch::Sender::new(BudgetState::default())) }
    }

    /// Whether nothing is left.
    pub fn is_exhausted(&self) -> bool {
        self.state.borrow().total() >= self.limit
    }

    /// Ends when nothing is left.
    pub async fn wait_until_exhausted(&self) -> BudgetExceeded {
        let mut changes = self.state.subscribe();
        // The sender is ours, so it is not gone.
        drop(changes.wait_for(|content| content.total() >= self.limit).await);
        BudgetExceeded { limit: self.limit }
    }

    /// Sets aside what a call is expected to cost, as soon as there is room for it.
    pub async fn reserve(&self, call: CostEstimate) -> Result<BudgetReservation, BudgetExceeded> {
        let mut changes = self.state.subscribe();
        loop {
            changes.mark_unchanged();
            let (mut answer, mut number) = (AdmissionDecision::Wait, 0);
            self.state.send_if_modified(|content| {
                answer = decide_admission(self.limit, content.total(), content.reserved(), content.estimate(&call));
                let goes = answer == AdmissionDecision::Start;
                if goes {
                    number = content.next_id;
                    content.next_id += 1;
                    content.reservations.insert(number, call.clone());
                }
                goes
            });
            match answer {
                AdmissionDecision::Start => return Ok(BudgetReservation { budget: self.clone(), id: number }),
                AdmissionDecision::Deny => return Err(BudgetExceeded { limit: self.limit }),
                // The sender is ours, so it is not gone.
                AdmissionDecision::Wait => drop(changes.changed().await),
            }
        }
    }

    /// A reply of so many tokens has come, and so much is spent by now.
    pub(super) fn record_reply(&self, model: &str, tokens: u64, spent: f64) {
        self.state.send_modify(|content| {
            // Several may settle at once, in any order.
            content.spent = spent.max(content.spent);
            let longest = content.longest_reply.entry(model.to_owned()).or_default();
            *longest = tokens.max(*longest);
        });
    }

    /// Counts a reply whose cost is not known, by what was expected of it.
    pub fn add_estimate(&self, dollars: f64) {
        self.state.send_modify(|content| content.estimated += dollars.max(0.0));
    }
}

impl BudgetReservation {
    /// How much it is by now, in dollars.
    pub fn estimated_usd(&self) -> f64 {
        let content = self.budget.state.borrow();
        content.reservations.get(&self.id).map_or(0.0, |call| content.estimate(call))
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        self.budget.state.send_modify(|content| drop(content.reservations.remove(&self.id)));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A call that is expected to cost so much for each thousand tokens of its reply.
    fn estimate_for(dollars: f64) -> CostEstimate {
        CostEstimate { model: "m".into(), input_usd: 0.0, output_token_usd: dollars / 1_000.0 }
    }

    #[test]
    fn who_may_begin() {
        use AdmissionDecision::{Start, Deny, Wait};
        let table = [
            ("nothing spent", 0.0, None, 0.1, Start),
            ("something left", 0.9, None, 0.1, Start),
            ("all spent", 1.0, None, 0.1, Deny),
            ("more than all spent", 1.5, Some(0.1), 0.1, Deny),
            ("others under way, and room beside them", 0.5, Some(0.3), 0.1, Start),
            ("others under way, and room for exactly this one", 0.5, Some(0.25), 0.25, Start),
            ("others under way, and no room beside them", 0.5, Some(0.5), 0.1, Wait),
            ("others under way, and too little room for this one", 0.5, Some(0.3), 0.3, Wait),
            ("others that cost nothing, and no room for this one", 0.5, Some(0.0), 0.6, Wait),
            ("the only one may cross the limit", 0.999, None, 5.0, Start),
        ];
        for (name, spent, others, own, expected) in table {
            assert_eq!(decide_admission(1.0, spent, others, own), expected, "{name}");
        }
    }

    #[test]
    fn a_call_waits_until_another_is_settled() {
        let purse = Budget::new(1.0);
        let first = purse.reserve(estimate_for(2.0)).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(purse.reserve(estimate_for(2.0)));
        assert!(second.as_mut().now_or_never().is_none(), "there is no room beside the first");
        purse.record_reply("m", 10, 0.25);
        drop(first);
        let second = second.now_or_never().unwrap().unwrap();
        let mut third = Box::pin(purse.reserve(estimate_for(2.0)));
        assert!(third.as_mut().now_or_never().is_none());
        purse.record_reply("m", 10, 1.25);
        drop(second);
        assert_eq!(third.now_or_never().unwrap().unwrap_err(), BudgetExceeded { limit: 1.0 });
    }

    #[test]
    fn a_longer_reply_raises_what_is_set_aside_for_all_that_are_under_way() {
        let purse = Budget::new(1.0);
        let begin = || purse.reserve(estimate_for(0.05)).now_or_never();
        let under_way: Vec<BudgetReservation> = (0..3).map(|_| begin().unwrap().unwrap()).collect();
        assert!((under_way[0].estimated_usd() - 0.05).abs() < 1e-9);
        purse.record_reply("m", 5_000, 0.25);
        assert!((under_way[0].estimated_usd() - 0.25).abs() < 1e-9);
        assert!(begin().is_none(), "three more of that length may come");
        let other = CostEstimate { model: "another".into(), ..estimate_for(0.0) };
        assert!(purse.reserve(other).now_or_never().unwrap().is_ok(), "another model is another matter");
        drop(under_way);
        assert!(begin().unwrap().is_ok());
    }

    #[test]
    fn whoever_is_under_way_learns_that_nothing_is_left() {
        let purse = Budget::new(1.0);
        let mut told = Box::pin(purse.wait_until_exhausted());
        assert!(told.as_mut().now_or_never().is_none());
        purse.record_reply("m", 1, 0.9);
        assert!(told.as_mut().now_or_never().is_none());
        purse.record_reply("m", 1, 1.0);
        assert_eq!(told.now_or_never(), Some(BudgetExceeded { limit: 1.0 }));
        assert!(purse.wait_until_exhausted().now_or_never().is_some());
    }

    #[test]
    fn what_is_not_known_counts_by_what_was_expected() {
        let purse = Budget::new(1.0);
        purse.record_reply("m", 1, 0.4);
        purse.add_estimate(0.5);
        purse.add_estimate(-3.0);
        assert!(!purse.is_exhausted());
        purse.record_reply("m", 1, 0.5);
        assert!(purse.is_exhausted());
    }
}
