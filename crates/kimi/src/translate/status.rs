//! Tokens of a model call, and how full the context is.

use serde_json::{Value, json};
use whimbrel::wire::content::Usage;

use super::Event;

/// What is known of the context.
pub(super) struct ContextStatus {
    /// Size of the model's context in tokens; 0 if unknown.
    window: u64,
}

impl ContextStatus {
    pub(super) fn new(window: u64) -> Self {
        Self { window }
    }

    /// The event at the end of a reply, with the tokens of that model call.
    pub(super) fn update(&self, message: &str, usage: &Usage) -> Event {
        let tokens = usage.total();
        let ratio = (self.window > 0).then(|| tokens as f64 / self.window as f64);
        Event::new(
            "StatusUpdate",
            json!({
                "context_usage": ratio.map(|ratio| ratio.min(1.0)),
                "context_tokens": tokens,
                "max_context_tokens": (self.window > 0).then_some(self.window),
                "token_usage": {
                    "input_other": usage.input_tokens,
                    "output": usage.output_tokens,
                    "input_cache_read": usage.cache_read_input_tokens,
                    "input_cache_creation": usage.cache_creation_input_tokens,
                },
                "message_id": Some(message).filter(|id| !id.is_empty()),
                "plan_mode": null,
                "mcp_status": null,
            }),
        )
    }
}

/// The event for a change of the plan mode.
pub(crate) fn plan_mode_event(enabled: bool) -> Event {
    let mut payload = json!({"plan_mode": enabled});
    for field in
        ["context_usage", "context_tokens", "max_context_tokens", "token_usage", "message_id", "mcp_status"]
    {
        payload[field] = Value::Null;
    }
    Event::new("StatusUpdate", payload)
}
