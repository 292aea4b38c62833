//! Builds the request to the model from settings, limits and history.

use whimbrel_models::Request;

use crate::agent::Agent;

/// Builds the request; `full_name` is the model's full name, `model` the name its provider uses.
pub(super) fn build_request(agent: &mut Agent, full_name: &str, model: String) -> Request {
    let runtime_settings = agent.runtime_settings.current();
    let dialect = agent.models.providers().dialect(full_name);
    let catalog = agent.models.catalog();
    let max_tokens = agent.limits.max_output_tokens.unwrap_or_else(|| catalog.max_output_tokens(&model));
    let thinking = match runtime_settings.thinking {
        Some(wanted) => catalog.supported_thinking(&model, wanted, max_tokens),
        None => catalog.default_thinking(&model, max_tokens),
    };
    Request {
        thinking: agent.conversation.effective_thinking(thinking, dialect),
        thinking_display: runtime_settings.thinking_display,
        effort: runtime_settings.effort.filter(|_| catalog.supports_effort(&model)),
        task_budget: agent.limits.task_budget_tokens.map(|total| agent.ledger.task_budget(total)),
        max_tokens,
        model,
        preamble: agent.preamble.clone(),
        history: agent.conversation.history.snapshot(),
        betas: agent.limits.betas.clone(),
        session_id: agent.frame_sender.session_id().to_owned(),
        raw_events: agent.limits.partial_messages,
    }
}
