//! A model call on the ledger: reserves budget before it starts and records its cost when it is dropped.

use std::time::Instant;

use whimbrel_models::catalog::Catalog;
use whimbrel_models::model_call::{CallStep, ModelCall};
use whimbrel_models::{ModelError, ModelErrorKind, ReportedUsage};
use whimbrel_os::clock;
use whimbrel_wire::Usage;

use super::CostLedger;
use super::budget::{BudgetExceeded, BudgetReservation, CostEstimate};
use crate::model_access::ModelAccess;
use crate::telemetry::{self, ChatSpan};

/// Estimate for the input.
const BYTES_PER_TOKEN: u64 = 4;

/// A call whose cost is recorded on drop, however far it got.
pub struct MeteredCall {
    call: ModelCall,
    models: ModelAccess,
    ledger: CostLedger,
    /// The model's name in the ledger.
    model: String,
    /// Reserved budget, if there is a budget. Fields are dropped after the cost was recorded.
    reservation: Option<BudgetReservation>,
    /// Whether it was aborted because the budget is exhausted.
    is_abandoned: bool,
    started_at: Instant,
    span: ChatSpan,
}

impl MeteredCall {
    /// Puts a call on the ledger. With a budget, waits for its reservation; fails if the budget is exhausted or the
    /// model's price is unknown.
    pub async fn start(
        call: ModelCall,
        models: ModelAccess,
        ledger: CostLedger,
        model: String,
    ) -> Result<Self, ModelError> {
        let reservation = match ledger.budget() {
            None => None,
            Some(budget) => {
                let estimate = estimate_cost(models.catalog(), &model, call.size() as u64)?;
                Some(budget.reserve(estimate).await.map_err(budget_error)?)
            }
        };
        let call = call.with_log(models.log().clone());
        let span = ChatSpan::start(models.providers().provider_name(&model), call.model_name());
        Ok(Self {
            call,
            models,
            ledger,
            model,
            reservation,
            is_abandoned: false,
            started_at: clock::monotonic(),
            span,
        })
    }

    /// The next step of the call. Fails once other calls have exhausted the budget.
    pub async fn next(&mut self) -> Option<Result<CallStep, ModelError>> {
        let step = self.span.run(next_step(&mut self.call, &self.ledger, &mut self.is_abandoned)).await;
        match &step {
            Some(Ok(CallStep::Item(item))) => self.span.record_event(&item.event),
            Some(Ok(CallStep::Retry(_))) => self.span.record_retry(),
            Some(Ok(CallStep::Truncated(error)) | Err(error)) => self.span.record_error(error),
            None => {}
        }
        step
    }
}

/// The next step of a call, within the budget.
async fn next_step(
    call: &mut ModelCall,
    ledger: &CostLedger,
    is_abandoned: &mut bool,
) -> Option<Result<CallStep, ModelError>> {
    let Some(budget) = ledger.budget() else { return call.next().await };
    if *is_abandoned {
        return None;
    }
    tokio::select! {
        biased;
        exceeded = budget.wait_until_exhausted() => {
            *is_abandoned = true;
            Some(Err(budget_error(exceeded)))
        }
        step = call.next() => step,
    }
}

impl Drop for MeteredCall {
    fn drop(&mut self) {
        self.ledger.add_api_time(clock::monotonic() - self.started_at);
        let mut total = Usage::default();
        for usage in self.call.attempt_usages() {
            add_tokens(&mut total, &usage.usage);
            let recorded = self.ledger.add_usage(self.models.catalog(), &self.model, usage);
            let (Ok(cost) | Err(cost)) = recorded;
            telemetry::record_model_call(&self.model, &usage.usage, cost);
            if let (Err(known_cost), Some(reservation), Some(budget)) =
                (recorded, &self.reservation, self.ledger.budget())
            {
                budget.add_estimate(reservation.estimated_usd() - known_cost);
            }
        }
        self.span.record_usage(&total);
        // A call that was sent and then abandoned is billed too, although its cost is unknown.
        if let (true, Some(reservation), Some(budget)) =
            (self.call.is_usage_pending(), &self.reservation, self.ledger.budget())
        {
            let _ = self.ledger.add_usage(self.models.catalog(), &self.model, &ReportedUsage::default());
            budget.add_estimate(reservation.estimated_usd());
        }
    }
}

/// Adds the tokens of one attempt.
fn add_tokens(total: &mut Usage, usage: &Usage) {
    total.input_tokens = total.input_tokens.saturating_add(usage.input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(usage.output_tokens);
    total.cache_read_input_tokens =
        total.cache_read_input_tokens.saturating_add(usage.cache_read_input_tokens);
    total.cache_creation_input_tokens =
        total.cache_creation_input_tokens.saturating_add(usage.cache_creation_input_tokens);
}

/// Estimates the cost of a call.
fn estimate_cost(catalog: &Catalog, model: &str, bytes: u64) -> Result<CostEstimate, ModelError> {
    let info = catalog
        .lookup(model)
        .ok_or_else(|| ModelError::new(ModelErrorKind::SpendLimit, unknown_price_text(model)))?;
    let input_usd = info.cost(&Usage { input_tokens: bytes / BYTES_PER_TOKEN, ..Usage::default() });
    let output_token_usd = info.cost(&Usage { output_tokens: 1, ..Usage::default() });
    Ok(CostEstimate { model: model.to_owned(), input_usd, output_token_usd })
}

/// Error text for a budget with a model of unknown price.
pub fn unknown_price_text(model: &str) -> String {
    format!(
        "A budget in dollars cannot be enforced for {model}, because its price is unknown. Choose a model with a known price, or start without a budget."
    )
}

fn budget_error(exceeded: BudgetExceeded) -> ModelError {
    ModelError::new(ModelErrorKind::SpendLimit, format!("The budget of ${} is used up.", exceeded.limit))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream::{self, BoxStream};
    use futures::{FutureExt, StreamExt};
    use whimbrel_models::model_call::CallTimeouts;
    use whimbrel_models::providers::Providers;
    use whimbrel_models::retry::RetryPolicy;
    use whimbrel_models::{History, Model, ReplyItem, Request, RequestPrefix};

    use super::*;

    const MODEL: &str = "claude-opus-4-5-20251101";

    /// A model that never replies.
    struct SilentModel;

    impl Model for SilentModel {
        fn stream_reply(&self, _: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
            stream::pending().boxed()
        }
    }

    #[tokio::test]
    async fn abandoned_call_counts_by_estimate() {
        // The estimate is a thousand tokens at 25 dollars per million.
        let ledger = CostLedger::with_budget(Some(0.03));
        let begin = || {
            let request =
                Request::new(MODEL, Arc::new(RequestPrefix::new(vec![], vec![])), History::new().snapshot());
            let call = ModelCall::new(
                Arc::new(SilentModel),
                request,
                RetryPolicy::default(),
                CallTimeouts::default(),
            );
            MeteredCall::start(call, ModelAccess::new(Providers::offline()), ledger.clone(), MODEL.to_owned())
        };
        let has_budget_left = || !ledger.is_budget_exhausted();
        ledger.budget().unwrap().add_estimate(0.01);
        drop(begin().await.unwrap());
        assert!(has_budget_left(), "a call that was never sent costs nothing");
        let mut sent = begin().await.unwrap();
        assert!(sent.next().now_or_never().is_none());
        drop(sent);
        assert!(!has_budget_left());
        assert_eq!(ledger.snapshot().models[0].1.cost_basis.as_deref(), Some("unknown"));
    }

    #[tokio::test]
    async fn call_is_aborted_when_others_exhaust_budget() {
        let ledger = CostLedger::with_budget(Some(1.0));
        let request =
            Request::new(MODEL, Arc::new(RequestPrefix::new(vec![], vec![])), History::new().snapshot());
        let call =
            ModelCall::new(Arc::new(SilentModel), request, RetryPolicy::default(), CallTimeouts::default());
        let models = ModelAccess::new(Providers::offline());
        let mut call = MeteredCall::start(call, models.clone(), ledger.clone(), MODEL.into()).await.unwrap();
        assert!(call.next().now_or_never().is_none());
        let usage =
            ReportedUsage::from_json(&serde_json::json!({"input_tokens": 1, "output_tokens": 40_000}));
        ledger.for_agent("Explore (a1)").add_usage(models.catalog(), MODEL, &usage).unwrap();
        let error = call.next().await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, &*error.message),
            (ModelErrorKind::SpendLimit, "The budget of $1 is used up.")
        );
        assert!(call.next().await.is_none());
    }
}
