//! What a session has spent: tokens and dollars, per model and for the turn at hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use whimbrel_models::catalog::Catalog;
use whimbrel_wire::Usage;
use whimbrel_wire::message::ModelUsage;

/// The spend of a session, shared by everything that spends: turns, subagents, tools. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    spend: Arc<Mutex<Spend>>,
    /// What was spent through this handle and its copies alone; a subagent has a branch of its own.
    own: Arc<Mutex<Usage>>,
}

impl Ledger {
    /// Begins a new turn; the totals stay.
    pub fn begin_turn(&self) {
        self.open().begin_turn();
    }

    /// Adds one reply.
    pub fn add(&self, catalog: &Catalog, model: &str, usage: &Usage, waited: Duration) {
        self.open().add(catalog, model, usage, waited);
        sum(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner), usage);
    }

    /// The same ledger with an own column beside it.
    pub fn branch(&self) -> Self {
        Self { spend: Arc::clone(&self.spend), own: Arc::default() }
    }

    /// What was spent in this column.
    pub fn own(&self) -> Usage {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spend as it is now.
    pub fn read(&self) -> Spend {
        self.open().clone()
    }

    fn open(&self) -> MutexGuard<'_, Spend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spend of one session.
#[derive(Debug, Clone, Default)]
pub struct Spend {
    /// Tokens of the turn at hand.
    pub turn: Usage,
    /// Time spent waiting for the model in the turn at hand.
    pub turn_api: Duration,
    /// Everything so far, by model.
    pub models: BTreeMap<String, ModelUsage>,
}

impl Spend {
    /// Begins a new turn; the totals stay.
    fn begin_turn(&mut self) {
        self.turn = Usage { service_tier: "standard".into(), ..Usage::default() };
        self.turn_api = Duration::ZERO;
    }

    /// Adds one reply.
    fn add(&mut self, catalog: &Catalog, model: &str, usage: &Usage, waited: Duration) {
        self.turn_api += waited;
        sum(&mut self.turn, usage);
        let info = catalog.lookup(model);
        let entry = self.models.entry(model.to_owned()).or_insert_with(|| ModelUsage {
            context_window: info.as_ref().map_or(0, |info| info.context_window),
            max_output_tokens: info.as_ref().map_or(0, |info| info.max_output_tokens),
            ..ModelUsage::default()
        });
        add(&mut entry.input_tokens, usage.input_tokens);
        add(&mut entry.output_tokens, usage.output_tokens);
        add(&mut entry.cache_read_input_tokens, usage.cache_read_input_tokens);
        add(&mut entry.cache_creation_input_tokens, usage.cache_creation_input_tokens);
        add(&mut entry.web_search_requests, usage.server_tool_use.web_search_requests);
        match info {
            Some(info) => entry.cost_usd += info.price(usage),
            None => entry.cost_basis = Some("unknown".into()),
        }
    }

    /// Dollars so far.
    pub fn dollars(&self) -> f64 {
        // The sum of nothing is a negative zero.
        0.0 + self.models.values().map(|model| model.cost_usd).sum::<f64>()
    }
}

/// Figures come from outside: however large they are, they are no reason to break down.
fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

fn sum(total: &mut Usage, more: &Usage) {
    add(&mut total.input_tokens, more.input_tokens);
    add(&mut total.output_tokens, more.output_tokens);
    add(&mut total.cache_creation_input_tokens, more.cache_creation_input_tokens);
    add(&mut total.cache_read_input_tokens, more.cache_read_input_tokens);
    add(&mut total.server_tool_use.web_search_requests, more.server_tool_use.web_search_requests);
    add(&mut total.server_tool_use.web_fetch_requests, more.server_tool_use.web_fetch_requests);
    add(&mut total.cache_creation.ephemeral_1h_input_tokens, more.cache_creation.ephemeral_1h_input_tokens);
    add(&mut total.cache_creation.ephemeral_5m_input_tokens, more.cache_creation.ephemeral_5m_input_tokens);
    if !more.service_tier.is_empty() {
        total.service_tier.clone_from(&more.service_tier);
    }
}
