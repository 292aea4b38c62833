//! Budget of a session in dollars: limit, cost so far, and reservations of running calls.
//!
//! A single call may exceed the limit, because the cost of a reply is unknown in advance; many concurrent ones must
//! not. So every call reserves its estimated cost before it starts and waits while there is no budget left beside
//! other reservations. The estimates of all running calls rise when a longer reply arrives. Once the limit is
//! exceeded, running calls are aborted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// Minimum estimate for a reply; the longest reply so far counts if it is longer.
const EXPECTED_REPLY_TOKENS: u64 = 1_000;

/// Shared by the whole agent tree. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    limit: f64,
    state: Arc<watch::Sender<BudgetState>>,
}

/// Amounts that count against the limit.
#[derive(Debug, Default)]
struct BudgetState {
    /// Known cost so far.
    spent: f64,
    /// Estimates for replies whose cost the provider did not report.
    estimated: f64,
    /// Running calls.
    reservations: BTreeMap<u64, CostEstimate>,
    /// Longest reply per model, in tokens.
    longest_reply: BTreeMap<String, u64>,
    next_id: u64,
}

/// Estimated cost of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    pub model: String,
    /// Cost of the input, in dollars.
    pub input_usd: f64,
    /// Cost of an output token, in dollars.
    pub output_token_usd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetExceeded {
    /// The limit, in dollars.
    pub limit: f64,
}

/// The reservation of one call; released on drop.
#[derive(Debug)]
pub struct BudgetReservation {
    budget: Budget,
    id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmissionDecision {
    Start,
    Wait,
    Deny,
}

/// Decides: with an exhausted budget no call starts; a single call always may; others need budget beside the
/// reservations.
fn decide_admission(limit: f64, spent: f64, others: Option<f64>, own: f64) -> AdmissionDecision {
    match others {
        _ if spent >= limit => AdmissionDecision::Deny,
        None => AdmissionDecision::Start,
        Some(others) if spent + others + own <= limit => AdmissionDecision::Start,
        Some(_) => AdmissionDecision::Wait,
    }
}

impl BudgetState {
    /// Known cost plus estimates.
    fn total(&self) -> f64 {
        self.spent + self.estimated
    }

    fn estimate(&self, call: &CostEstimate) -> f64 {
        let longest_reply = self.longest_reply.get(&call.model).copied().unwrap_or(0);
        call.input_usd + call.output_token_usd * longest_reply.max(EXPECTED_REPLY_TOKENS) as f64
    }

    /// Sum of the reservations; `None` without running calls.
    fn reserved(&self) -> Option<f64> {
        let estimates = self.reservations.values().map(|call| self.estimate(call));
        (!self.reservations.is_empty()).then(|| estimates.sum())
    }
}

impl Budget {
    pub fn new(limit: f64) -> Self {
        Self { limit, state: Arc::new(watch::Sender::new(BudgetState::default())) }
    }

    /// Sets the cost of the session before it was resumed.
    pub fn restore(&self, spent: f64) {
        self.state.send_modify(|state| state.spent = spent);
    }

    /// Returns whether the limit is reached.
    pub fn is_exhausted(&self) -> bool {
        self.state.borrow().total() >= self.limit
    }

    /// Waits until the limit is reached.
    pub async fn wait_until_exhausted(&self) -> BudgetExceeded {
        let mut changes = self.state.subscribe();
        // The sender is owned by `self`, so the channel is open.
        drop(changes.wait_for(|state| state.total() >= self.limit).await);
        BudgetExceeded { limit: self.limit }
    }

    /// Reserves the estimated cost of a call; waits until the budget has space for it.
    pub async fn reserve(&self, call: CostEstimate) -> Result<BudgetReservation, BudgetExceeded> {
        let mut changes = self.state.subscribe();
        loop {
            changes.mark_unchanged();
            let (mut decision, mut id) = (AdmissionDecision::Wait, 0);
            self.state.send_if_modified(|state| {
                decision =
                    decide_admission(self.limit, state.total(), state.reserved(), state.estimate(&call));
                let is_admitted = decision == AdmissionDecision::Start;
                if is_admitted {
                    id = state.next_id;
                    state.next_id += 1;
                    state.reservations.insert(id, call.clone());
                }
                is_admitted
            });
            match decision {
                AdmissionDecision::Start => {
                    return Ok(BudgetReservation { budget: self.clone(), id });
                }
                AdmissionDecision::Deny => return Err(BudgetExceeded { limit: self.limit }),
                // The sender is owned by `self`, so the channel is open.
                AdmissionDecision::Wait => drop(changes.changed().await),
            }
        }
    }

    /// Records a reply and the total cost so far.
    pub(super) fn record_reply(&self, model: &str, tokens: u64, spent: f64) {
        self.state.send_modify(|state| {
            // Concurrent calls may arrive in any order.
            state.spent = spent.max(state.spent);
            let longest_reply = state.longest_reply.entry(model.to_owned()).or_default();
            *longest_reply = tokens.max(*longest_reply);
        });
    }

    /// Adds the estimate of a reply whose cost is unknown.
    pub fn add_estimate(&self, dollars: f64) {
        self.state.send_modify(|state| state.estimated += dollars.max(0.0));
    }
}

impl BudgetReservation {
    /// The current estimate in dollars.
    pub fn estimated_usd(&self) -> f64 {
        let state = self.budget.state.borrow();
        state.reservations.get(&self.id).map_or(0.0, |call| state.estimate(call))
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        self.budget.state.send_modify(|state| drop(state.reservations.remove(&self.id)));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// An estimate with this cost per thousand output tokens.
    fn estimate_for(dollars: f64) -> CostEstimate {
        CostEstimate { model: "m".into(), input_usd: 0.0, output_token_usd: dollars / 1_000.0 }
    }

    #[test]
    fn admission_decisions() {
        use AdmissionDecision::{Deny, Start, Wait};
        let table = [
            ("nothing spent", 0.0, None, 0.1, Start),
            ("something left", 0.9, None, 0.1, Start),
            ("all spent", 1.0, None, 0.1, Deny),
            ("more than all spent", 1.5, Some(0.1), 0.1, Deny),
            ("others running, budget left", 0.5, Some(0.3), 0.1, Start),
            ("others running, budget exactly sufficient", 0.5, Some(0.25), 0.25, Start),
            ("others running, everything reserved", 0.5, Some(0.5), 0.1, Wait),
            ("others running, too little left", 0.5, Some(0.3), 0.3, Wait),
            ("others running at no cost, too little left", 0.5, Some(0.0), 0.6, Wait),
            ("a single call may exceed the limit", 0.999, None, 5.0, Start),
        ];
        for (name, spent, others, own, expected) in table {
            assert_eq!(decide_admission(1.0, spent, others, own), expected, "{name}");
        }
    }

    #[test]
    fn call_waits_for_released_reservation() {
        let budget = Budget::new(1.0);
        let first = budget.reserve(estimate_for(2.0)).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(budget.reserve(estimate_for(2.0)));
        assert!(second.as_mut().now_or_never().is_none(), "the first reservation leaves no budget");
        budget.record_reply("m", 10, 0.25);
        drop(first);
        let second = second.now_or_never().unwrap().unwrap();
        let mut third = Box::pin(budget.reserve(estimate_for(2.0)));
        assert!(third.as_mut().now_or_never().is_none());
        budget.record_reply("m", 10, 1.25);
        drop(second);
        assert_eq!(third.now_or_never().unwrap().unwrap_err(), BudgetExceeded { limit: 1.0 });
    }

    #[test]
    fn longer_reply_raises_running_reservations() {
        let budget = Budget::new(1.0);
        let reserve = || budget.reserve(estimate_for(0.05)).now_or_never();
        let reservations: Vec<BudgetReservation> = (0..3).map(|_| reserve().unwrap().unwrap()).collect();
        assert!((reservations[0].estimated_usd() - 0.05).abs() < 1e-9);
        budget.record_reply("m", 5_000, 0.25);
        assert!((reservations[0].estimated_usd() - 0.25).abs() < 1e-9);
        assert!(reserve().is_none(), "running calls may get replies of that length");
        let other = CostEstimate { model: "another".into(), ..estimate_for(0.0) };
        assert!(budget.reserve(other).now_or_never().unwrap().is_ok(), "other models are not affected");
        drop(reservations);
        assert!(reserve().unwrap().is_ok());
    }

    #[test]
    fn waiters_are_notified_on_exhaustion() {
        let budget = Budget::new(1.0);
        let mut exhausted = Box::pin(budget.wait_until_exhausted());
        assert!(exhausted.as_mut().now_or_never().is_none());
        budget.record_reply("m", 1, 0.9);
        assert!(exhausted.as_mut().now_or_never().is_none());
        budget.record_reply("m", 1, 1.0);
        assert_eq!(exhausted.now_or_never(), Some(BudgetExceeded { limit: 1.0 }));
        assert!(budget.wait_until_exhausted().now_or_never().is_some());
    }

    #[test]
    fn unknown_cost_counts_by_estimate() {
        let budget = Budget::new(1.0);
        budget.record_reply("m", 1, 0.4);
        budget.add_estimate(0.5);
        budget.add_estimate(-3.0);
        assert!(!budget.is_exhausted());
        budget.record_reply("m", 1, 0.5);
        assert!(budget.is_exhausted());
    }
}
