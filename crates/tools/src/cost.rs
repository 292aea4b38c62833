//! Cost ledger of a session: tokens and dollars, per model, per agent and for the current turn.
//!
//! Models are called through [`MeteredCall`] only: it reserves a share of the budget before it starts, and records the
//! cost of every attempt on drop, however the call ends.

mod budget;
mod metered_call;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use whimbrel_models::ReportedUsage;
use whimbrel_models::TaskBudget;
use whimbrel_models::catalog::{Catalog, ModelInfo};
use whimbrel_session_store::cost_state::{CostState, ModelCost};
use whimbrel_wire::Usage;
use whimbrel_wire::message::ModelUsage;

use crate::workspace::LineCounts;

pub use budget::Budget;
pub use metered_call::{MeteredCall, unknown_price_text};

/// Cost of a session, shared by turns, subagents and tools. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct CostLedger {
    spend: Arc<Mutex<Spend>>,
    /// Cost recorded through this handle and its clones; a subagent has its own.
    own_cost: Arc<Mutex<AgentCost>>,
    /// Budget; `None` means no limit.
    budget: Option<Budget>,
}

/// Cost of one agent.
#[derive(Debug, Default)]
struct AgentCost {
    /// Name of the agent; `None` for the main agent.
    agent: Option<String>,
    usage: Usage,
    cost_usd: f64,
    /// Output tokens of this turn that the model still sees in its conversation.
    visible_output_tokens: u64,
}

impl CostLedger {
    /// An empty ledger with a budget in dollars, if there is one.
    pub fn with_budget(budget: Option<f64>) -> Self {
        Self { budget: budget.map(Budget::new), ..Self::default() }
    }

    /// Adds the cost of the session before it was resumed.
    pub fn restore(&self, catalog: &Catalog, recorded: &CostState) {
        let mut spend = self.lock();
        spend.api_time += Duration::from_millis(recorded.total_api_duration);
        for (model, cost) in &recorded.model_usage {
            let entry = spend.model_entry(model, catalog.lookup(model).as_ref());
            saturating_add_to(&mut entry.input_tokens, cost.input_tokens);
            saturating_add_to(&mut entry.output_tokens, cost.output_tokens);
            saturating_add_to(&mut entry.cache_read_input_tokens, cost.cache_read_input_tokens);
            saturating_add_to(&mut entry.cache_creation_input_tokens, cost.cache_creation_input_tokens);
            saturating_add_to(&mut entry.web_search_requests, cost.web_search_requests);
            entry.cost_usd += cost.cost_usd;
            if recorded.has_unknown_model_cost {
                entry.cost_basis = Some("unknown".into());
            }
        }
        if let Some(budget) = &self.budget {
            budget.restore(spend.total_usd());
        }
    }

    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Returns whether there is a budget and it is exhausted.
    pub fn is_budget_exhausted(&self) -> bool {
        self.budget.as_ref().is_some_and(Budget::is_exhausted)
    }

    /// Waits until the budget is exhausted; never returns without a budget.
    pub async fn wait_until_exhausted(&self) {
        match &self.budget {
            Some(budget) => drop(budget.wait_until_exhausted().await),
            None => std::future::pending().await,
        }
    }

    /// Resets the figures of the turn; the totals stay.
    pub fn begin_turn(&self) {
        self.lock().begin_turn();
        self.reset_visible_output();
    }

    /// Called after a compaction: the model no longer sees its earlier output.
    pub fn reset_visible_output(&self) {
        self.lock_own().visible_output_tokens = 0;
    }

    /// The token budget for the current prompt, over the whole agent tree. A provider sees the output in the
    /// conversation it gets; output of others is passed as `remaining`.
    pub fn task_budget(&self, total: u64) -> TaskBudget {
        let output_tokens = self.lock().turn_usage.output_tokens;
        let own = self.lock_own();
        let sends_remaining = own.agent.is_some() || output_tokens > own.visible_output_tokens;
        TaskBudget { total, remaining: sends_remaining.then(|| total.saturating_sub(output_tokens)) }
    }

    fn lock_own(&self) -> MutexGuard<'_, AgentCost> {
        self.own_cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records one attempt at a reply and returns its cost; the error is the known part if the cost is incomplete.
    pub fn add_usage(&self, catalog: &Catalog, model: &str, usage: &ReportedUsage) -> Result<f64, f64> {
        let (cost, spent) = {
            let mut spend = self.lock();
            let cost = spend.add_usage(catalog, model, usage);
            (cost, spend.total_usd())
        };
        if let Some(budget) = &self.budget {
            budget.record_reply(model, usage.usage.output_tokens, spent);
        }
        let mut own = self.lock_own();
        sum_usage(&mut own.usage, &usage.usage);
        saturating_add_to(&mut own.visible_output_tokens, usage.usage.output_tokens);
        let dollars = cost.unwrap_or_else(|known| known);
        own.cost_usd += dollars;
        if let Some(agent) = &own.agent {
            let mut spend = self.lock();
            let share = spend.agents.entry(agent.clone()).or_default();
            share.tokens = share.tokens.saturating_add(usage.usage.total());
            share.cost_usd += dollars;
        }
        cost
    }

    /// Records time spent waiting for the model.
    pub fn add_api_time(&self, elapsed: Duration) {
        let mut spend = self.lock();
        spend.turn_api_time += elapsed;
        spend.api_time += elapsed;
    }

    /// A handle that records for the agent of this name as well.
    pub fn for_agent(&self, agent: impl Into<String>) -> Self {
        let own = AgentCost { agent: Some(agent.into()), ..AgentCost::default() };
        Self {
            spend: Arc::clone(&self.spend),
            own_cost: Arc::new(Mutex::new(own)),
            budget: self.budget.clone(),
        }
    }

    /// Usage recorded through this handle.
    pub fn own_usage(&self) -> Usage {
        self.lock_own().usage.clone()
    }

    /// Cost recorded through this handle.
    pub fn own_cost_usd(&self) -> f64 {
        self.lock_own().cost_usd
    }

    pub fn snapshot(&self) -> Spend {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Spend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Spend {
    /// Usage of the current turn.
    pub turn_usage: Usage,
    /// API time of the current turn.
    pub turn_api_time: Duration,
    /// API time of the session.
    pub api_time: Duration,
    /// Usage per model, in order of first use. A vector, because there are few and a map node is large.
    pub models: Vec<(String, ModelUsage)>,
    /// Shares of subagents, by name.
    pub agents: BTreeMap<String, AgentCostTotal>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AgentCostTotal {
    /// Input and output tokens.
    pub tokens: u64,
    pub cost_usd: f64,
}

impl Spend {
    /// Resets the figures of the turn; the totals stay.
    fn begin_turn(&mut self) {
        self.turn_usage = Usage {
            service_tier: "standard".into(),
            inference_geo: Some("".into()),
            iterations: Some(Box::new(Value::Array(Vec::new()))),
            speed: Some("standard".into()),
            ..Usage::default()
        };
        self.turn_api_time = Duration::ZERO;
    }

    /// Records one attempt at a reply. Without a price or complete usage, the cost is marked as unknown.
    fn add_usage(&mut self, catalog: &Catalog, model: &str, reported: &ReportedUsage) -> Result<f64, f64> {
        let usage = &reported.usage;
        sum_usage(&mut self.turn_usage, usage);
        let info = catalog.lookup(model);
        let entry = self.model_entry(model, info.as_ref());
        saturating_add_to(&mut entry.input_tokens, usage.input_tokens);
        saturating_add_to(&mut entry.output_tokens, usage.output_tokens);
        saturating_add_to(&mut entry.cache_read_input_tokens, usage.cache_read_input_tokens);
        saturating_add_to(&mut entry.cache_creation_input_tokens, usage.cache_creation_input_tokens);
        saturating_add_to(&mut entry.web_search_requests, usage.server_tool_use.web_search_requests);
        let cost = info.as_ref().map_or(0.0, |info| info.cost(usage));
        entry.cost_usd += cost;
        if info.is_none() || !reported.is_complete() {
            entry.cost_basis = Some("unknown".into());
            return Err(cost);
        }
        Ok(cost)
    }

    /// The entry of a model, created on first use.
    fn model_entry(&mut self, model: &str, info: Option<&ModelInfo>) -> &mut ModelUsage {
        let index = self.models.iter().position(|(name, _)| name == model).unwrap_or_else(|| {
            let usage = ModelUsage {
                context_window: info.map_or(0, |info| info.context_window),
                max_output_tokens: info.map_or(0, |info| info.max_output_tokens),
                ..ModelUsage::default()
            };
            self.models.push((model.to_owned(), usage));
            self.models.len() - 1
        });
        &mut self.models[index].1
    }

    /// The cost in the form in which the transcript records it.
    pub fn to_cost_state(&self, session: &str, lines: LineCounts) -> CostState {
        let model_cost = |usage: &ModelUsage| ModelCost {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            web_search_requests: usage.web_search_requests,
            cost_usd: usage.cost_usd,
        };
        CostState {
            session_id: session.to_owned(),
            total_cost_usd: self.total_usd(),
            total_api_duration: u64::try_from(self.api_time.as_millis()).unwrap_or(u64::MAX),
            total_lines_added: lines.added,
            total_lines_removed: lines.removed,
            model_usage: self
                .models
                .iter()
                .map(|(model, usage)| (model.clone(), model_cost(usage)))
                .collect(),
            has_unknown_model_cost: self.models.iter().any(|(_, usage)| usage.cost_basis.is_some()),
        }
    }

    /// Total cost in dollars.
    pub fn total_usd(&self) -> f64 {
        // The sum of an empty iterator is -0.0.
        0.0 + self.models.iter().map(|(_, model)| model.cost_usd).sum::<f64>()
    }
}

/// Saturates, because providers may report any number.
fn saturating_add_to(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

fn sum_usage(total: &mut Usage, more: &Usage) {
    saturating_add_to(&mut total.input_tokens, more.input_tokens);
    saturating_add_to(&mut total.output_tokens, more.output_tokens);
    saturating_add_to(&mut total.cache_creation_input_tokens, more.cache_creation_input_tokens);
    saturating_add_to(&mut total.cache_read_input_tokens, more.cache_read_input_tokens);
    saturating_add_to(
        &mut total.server_tool_use.web_search_requests,
        more.server_tool_use.web_search_requests,
    );
    saturating_add_to(&mut total.server_tool_use.web_fetch_requests, more.server_tool_use.web_fetch_requests);
    saturating_add_to(
        &mut total.cache_creation.ephemeral_1h_input_tokens,
        more.cache_creation.ephemeral_1h_input_tokens,
    );
    saturating_add_to(
        &mut total.cache_creation.ephemeral_5m_input_tokens,
        more.cache_creation.ephemeral_5m_input_tokens,
    );
    total.merge_text_fields(more);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_budget_is_shared_by_the_agent_tree() {
        let (main, catalog) = (CostLedger::default(), Catalog::default());
        let sub = main.for_agent("Explore (a1)");
        let add_output = |ledger: &CostLedger, tokens: u64| {
            let usage = ReportedUsage::from_json(&json!({"input_tokens": 9, "output_tokens": tokens}));
            let _ = ledger.add_usage(&catalog, "m", &usage);
        };
        let remaining = |ledger: &CostLedger| ledger.task_budget(8_000).remaining;
        main.begin_turn();
        add_output(&main, 5_000);
        assert_eq!((remaining(&main), remaining(&sub)), (None, Some(3_000)));
        add_output(&sub, 2_000);
        assert_eq!((remaining(&main), remaining(&sub)), (Some(1_000), Some(1_000)));
        add_output(&sub, 2_000);
        assert_eq!(remaining(&sub), Some(0), "never negative");
        main.begin_turn();
        add_output(&main, 100);
        assert_eq!(remaining(&main), None, "the provider sees all output");
        main.reset_visible_output();
        assert_eq!(remaining(&main), Some(7_900), "after a compaction the provider sees no earlier output");
    }

    #[test]
    fn usage_of_turn_has_provider_words_and_no_null() {
        let (ledger, catalog) = (CostLedger::default(), Catalog::default());
        ledger.begin_turn();
        let text_fields = |ledger: &CostLedger| {
            let usage = serde_json::to_value(&ledger.snapshot().turn_usage).unwrap();
            ["service_tier", "inference_geo", "iterations", "speed"].map(|name| usage[name].clone())
        };
        assert_eq!(text_fields(&ledger), [json!("standard"), json!(""), json!([]), json!("standard")]);
        let full = json!({"input_tokens": 1, "output_tokens": 1, "inference_geo": "eu", "speed": "fast",
            "iterations": [{"type": "message"}], "service_tier": "priority"});
        let nulls = json!({"input_tokens": 1, "output_tokens": 1, "inference_geo": null, "speed": null});
        for reported in [full, nulls] {
            let _ = ledger.add_usage(&catalog, "m", &ReportedUsage::from_json(&reported));
        }
        let expected = [json!("priority"), json!("eu"), json!([{"type": "message"}]), json!("fast")];
        assert_eq!(text_fields(&ledger), expected);
    }

    #[test]
    fn unknown_cost_is_marked_and_never_negative() {
        let known = json!({"input_tokens": 1_000_000, "output_tokens": 0});
        let table = [
            ("all known", "claude-opus-4-5-20251101", vec![known.clone()], (5.0, None)),
            ("A36 no figures", "claude-opus-4-5-20251101", vec![json!(null)], (0.0, Some("unknown"))),
            (
                "A36 negative beside a good one",
                "claude-opus-4-5-20251101",
                vec![known.clone(), json!({"input_tokens": -9_000_000, "output_tokens": 1})],
                (5.000_025, Some("unknown")),
            ),
            (
                "A36 absurd",
                "claude-opus-4-5-20251101",
                vec![json!({"input_tokens": 1, "output_tokens": u64::MAX}), known.clone()],
                (5.000_005, Some("unknown")),
            ),
            ("no price", "unknown-model", vec![known], (0.0, Some("unknown"))),
        ];
        for (name, model, usages, (dollars, basis)) in table {
            let ledger = CostLedger::default();
            for usage in &usages {
                let known = ledger.add_usage(&Catalog::default(), model, &ReportedUsage::from_json(usage));
                assert!(known.is_ok() || basis.is_some(), "{name}");
            }
            let spend = ledger.snapshot();
            assert!((spend.total_usd() - dollars).abs() < 1e-9, "{name}: {}", spend.total_usd());
            assert_eq!(spend.models[0].1.cost_basis.as_deref(), basis, "{name}");
        }
    }
}
