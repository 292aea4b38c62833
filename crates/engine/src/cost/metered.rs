//! A call to a model that is on the ledger: admitted before it begins, booked when it ends in any way.

use std::time::Instant;

use whimbrel_models::call::{Call, Step};
use whimbrel_models::catalog::Catalog;
use whimbrel_models::{Fault, FaultKind, Figures};
use whimbrel_wire::Usage;

use super::Ledger;
use super::purse::{Empty, Expected, SetAside};
use crate::clock;
use crate::engine::Engine;

/// How many bytes of a request make a token, by a rule of thumb.
const BYTES_PER_TOKEN: u64 = 4;

/// A call whose cost is booked when it is dropped, however far it has come.
pub struct Metered {
    call: Call,
    engine: Engine,
    ledger: Ledger,
    /// The model as the ledger knows it.
    model: String,
    /// What is set aside for it, if there is a budget. Fields are dropped after the cost has been booked.
    set_aside: Option<SetAside>,
    /// Whether it was given up because the budget is used up.
    given_up: bool,
    began: Instant,
}

impl Metered {
    /// Puts a call on this ledger. If there is a budget, the call waits for its share of it; where nothing is left, or where
    /// the model has no price, it is not made.
    pub async fn begin(call: Call, engine: Engine, ledger: Ledger, model: String) -> Result<Self, Fault> {
        let set_aside = match ledger.purse() {
            None => None,
            Some(purse) => {
                let expected = expected(engine.catalog(), &model, call.size() as u64)?;
                Some(purse.set_aside(expected).await.map_err(used_up)?)
            }
        };
        let call = call.told_to(engine.log().clone());
        Ok(Self { call, engine, ledger, model, set_aside, given_up: false, began: clock::monotonic() })
    }

    /// The next step of the call. Once others have used up the budget, it is given up.
    pub async fn next(&mut self) -> Option<Result<Step, Fault>> {
        let Some(purse) = self.ledger.purse() else { return self.call.next().await };
        if self.given_up {
            return None;
        }
        tokio::select! {
            biased;
            empty = purse.ran_out() => {
                self.given_up = true;
                Some(Err(used_up(empty)))
            }
            step = self.call.next() => step,
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.ledger.add_wait(clock::monotonic() - self.began);
        for bill in self.call.bills() {
            let known = self.ledger.add(self.engine.catalog(), &self.model, bill);
            if let (Err(part), Some(set_aside), Some(purse)) = (known, &self.set_aside, self.ledger.purse()) {
                purse.suppose(set_aside.dollars() - part);
            }
        }
        // What was asked and then left alone is billed, too, though nobody has said how much.
        if let (true, Some(set_aside), Some(purse)) =
            (self.call.is_unbilled(), &self.set_aside, self.ledger.purse())
        {
            let _ = self.ledger.add(self.engine.catalog(), &self.model, &Figures::default());
            purse.suppose(set_aside.dollars());
        }
    }
}

/// What a call is expected to cost.
fn expected(catalog: &Catalog, model: &str, bytes: u64) -> Result<Expected, Fault> {
    let info = catalog.lookup(model).ok_or_else(|| Fault::new(FaultKind::SpendLimit, no_price(model)))?;
    let asked = info.price(&Usage { input_tokens: bytes / BYTES_PER_TOKEN, ..Usage::default() });
    let per_token = info.price(&Usage { output_tokens: 1, ..Usage::default() });
    Ok(Expected { model: model.to_owned(), asked, per_token })
}

/// Why a budget cannot be kept with a model.
pub fn no_price(model: &str) -> String {
    format!(
        "A budget in dollars cannot be kept with {model}: its price is not known. Choose a model that has one, or start without the budget."
    )
}

fn used_up(empty: Empty) -> Fault {
    Fault::new(FaultKind::SpendLimit, format!("The budget of ${} is used up.", empty.limit))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream::{self, BoxStream};
    use futures::{FutureExt, StreamExt};
    use whimbrel_models::call::Timing;
    use whimbrel_models::providers::Providers;
    use whimbrel_models::retry::Policy;
    use whimbrel_models::{Delta, History, Model, Preamble, Request};

    use super::*;

    const MODEL: &str = "claude-opus-4-5-20251101";

    /// A model that never says anything.
    struct Mute;

    impl Model for Mute {
        fn ask(&self, _: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
            stream::pending().boxed()
        }
    }

    #[tokio::test]
    async fn a_call_that_is_left_before_it_says_what_it_costs_counts_by_its_estimate() {
        // A thousand tokens at 25 dollars per million are expected.
        let ledger = Ledger::within(Some(0.03));
        let begin = || {
            let request = Request::new(MODEL, Arc::new(Preamble::new(vec![], vec![])), History::new().ask());
            let call = Call::new(Arc::new(Mute), request, Policy::default(), Timing::default());
            Metered::begin(call, Engine::new(Providers::offline()), ledger.clone(), MODEL.to_owned())
        };
        let is_left = || !ledger.is_used_up();
        ledger.purse().unwrap().suppose(0.01);
        drop(begin().await.unwrap());
        assert!(is_left(), "what was never asked costs nothing");
        let mut asked = begin().await.unwrap();
        assert!(asked.next().now_or_never().is_none());
        drop(asked);
        assert!(!is_left());
        assert_eq!(ledger.read().models[0].1.cost_basis.as_deref(), Some("unknown"));
    }

    #[tokio::test]
    async fn a_call_is_given_up_when_others_have_used_up_the_budget() {
        let ledger = Ledger::within(Some(1.0));
        let request = Request::new(MODEL, Arc::new(Preamble::new(vec![], vec![])), History::new().ask());
        let call = Call::new(Arc::new(Mute), request, Policy::default(), Timing::default());
        let engine = Engine::new(Providers::offline());
        let mut call = Metered::begin(call, engine.clone(), ledger.clone(), MODEL.into()).await.unwrap();
        assert!(call.next().now_or_never().is_none());
        let bill = Figures::read(&serde_json::json!({"input_tokens": 1, "output_tokens": 40_000}));
        ledger.branch("Explore (a1)").add(engine.catalog(), MODEL, &bill).unwrap();
        let fault = call.next().await.unwrap().unwrap_err();
        assert_eq!((fault.kind, &*fault.message), (FaultKind::SpendLimit, "The budget of $1 is used up."));
        assert!(call.next().await.is_none());
    }
}
