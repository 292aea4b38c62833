//! Spans of the crate `tracing`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};
use whimbrel_models::{ModelError, ReplyEvent};
use whimbrel_os::clock;
use whimbrel_wire::Usage;

use super::content::ContentCapture;
use super::{AgentEnd, AgentStart};

/// Runs a future in the span that is current now, for work in a task of its own.
pub fn in_current_span<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.in_current_span()
}

/// Spans in which the host has sent prompts, until their turn begins. Cheap to clone.
#[derive(Clone, Default)]
pub struct PromptSpans(Arc<Mutex<HashMap<String, Span>>>);

impl PromptSpans {
    /// Keeps the current span, if there is one, as the parent of the turn that answers a prompt.
    pub fn insert_current(&self, prompt: &str) {
        let span = Span::current();
        if !span.is_none() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(prompt.to_owned(), span);
        }
    }

    /// Forgets a prompt that was taken back.
    pub fn remove(&self, prompt: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(prompt);
    }

    /// Takes the span of the first of these prompts that has one.
    fn take(&self, prompts: &[String]) -> Option<Span> {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Span> = prompts.iter().filter_map(|prompt| spans.remove(prompt)).collect();
        found.into_iter().next()
    }
}

impl fmt::Debug for PromptSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptSpans").finish_non_exhaustive()
    }
}

/// Span of a turn of an agent.
#[derive(Debug, Clone)]
pub struct AgentSpan {
    span: Span,
    content: ContentCapture,
}

impl AgentSpan {
    /// The turn of a session that answers these prompts. Its parent is the span in which the first was sent.
    pub fn for_prompts(
        spans: &PromptSpans,
        prompts: &[String],
        start: AgentStart<'_>,
        content: ContentCapture,
    ) -> Self {
        let parent = spans.take(prompts).unwrap_or_else(Span::none);
        Self { span: parent.in_scope(|| agent_span(start)), content }
    }

    /// The turn of a subagent, in the current span.
    pub fn for_subagent(start: AgentStart<'_>, content: ContentCapture) -> Self {
        Self { span: agent_span(start), content }
    }

    /// Runs a future in the span.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        future.instrument(self.span.clone())
    }

    pub fn record_end(&self, end: AgentEnd<'_>) {
        let span = &self.span;
        span.record("gen_ai.usage.input_tokens", end.input_tokens);
        span.record("gen_ai.usage.output_tokens", end.output_tokens);
        span.record("whimbrel.cost_usd", end.cost_usd);
        if let Some(error) = end.error {
            span.record("error.type", error);
            span.record("otel.status_code", "ERROR");
        }
        if self.content == ContentCapture::On {
            span.record("gen_ai.output.messages", end.text);
        }
    }
}

fn agent_span(start: AgentStart<'_>) -> Span {
    info_span!(
        target: "whimbrel",
        "invoke_agent",
        otel.name = %format_args!("invoke_agent {}", start.agent_name),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = start.session_id,
        gen_ai.agent.name = start.agent_name,
        gen_ai.agent.id = start.agent_id,
        gen_ai.request.model = start.model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.output.messages = Empty,
        whimbrel.cost_usd = Empty,
        error.r#type = Empty,
    )
}

/// Span of a model call, with its retries.
#[derive(Debug)]
pub struct ChatSpan {
    span: Span,
    started_at: Instant,
    has_answered: bool,
    retries: u64,
}

impl ChatSpan {
    pub fn start(provider: &str, model: &str) -> Self {
        let span = info_span!(
            target: "whimbrel",
            "chat",
            otel.name = %format_args!("chat {model}"),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider,
            gen_ai.request.model = model,
            gen_ai.response.model = Empty,
            gen_ai.response.id = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            whimbrel.time_to_first_token_ms = Empty,
            whimbrel.retries = Empty,
            error.r#type = Empty,
        );
        Self { span, started_at: clock::monotonic(), has_answered: false, retries: 0 }
    }

    /// Runs a future in the span.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        future.instrument(self.span.clone())
    }

    pub fn record_event(&mut self, event: &ReplyEvent) {
        if self.span.is_disabled() {
            return;
        }
        match event {
            ReplyEvent::MessageStart { id, model, .. } => {
                self.span.record("gen_ai.response.id", id.as_str());
                self.span.record("gen_ai.response.model", model.as_str());
            }
            ReplyEvent::BlockDelta { .. } if !self.has_answered => {
                self.has_answered = true;
                let elapsed = (clock::monotonic() - self.started_at).as_millis();
                self.span
                    .record("whimbrel.time_to_first_token_ms", u64::try_from(elapsed).unwrap_or(u64::MAX));
            }
            ReplyEvent::MessageDelta { stop_reason: Some(reason), .. } => {
                let reason = serde_json::to_value(reason).unwrap_or_default();
                self.span.record("gen_ai.response.finish_reasons", reason.as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    pub fn record_retry(&mut self) {
        self.retries += 1;
        self.span.record("whimbrel.retries", self.retries);
    }

    pub fn record_error(&mut self, error: &ModelError) {
        let kind = match error.status {
            Some(status) => status.to_string(),
            None => format!("{:?}", error.kind),
        };
        self.span.record("error.type", kind);
        self.span.record("otel.status_code", "ERROR");
    }

    /// Records what the attempts have used.
    pub fn record_usage(&mut self, usage: &Usage) {
        self.span.record("gen_ai.usage.input_tokens", usage.input_tokens);
        self.span.record("gen_ai.usage.output_tokens", usage.output_tokens);
        self.span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read_input_tokens);
        self.span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation_input_tokens);
    }
}

/// Span of a tool call, with its permission check and its hooks.
#[derive(Debug, Clone)]
pub struct ToolSpan {
    span: Span,
    content: ContentCapture,
}

impl ToolSpan {
    pub fn start(tool: &str, id: &str, input: &Value, content: ContentCapture) -> Self {
        let span = info_span!(
            target: "whimbrel",
            "execute_tool",
            otel.name = %format_args!("execute_tool {tool}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            gen_ai.tool.call.id = id,
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            whimbrel.permission = Empty,
            whimbrel.permission.asked = Empty,
            error.r#type = Empty,
        );
        if content == ContentCapture::On {
            span.record("gen_ai.tool.call.arguments", input.to_string());
        }
        Self { span, content }
    }

    /// Runs a future in the span.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        future.instrument(self.span.clone())
    }

    /// Records in the current span how the permission check of its call ended.
    pub fn record_permission(decision: &'static str) {
        Span::current().record("whimbrel.permission", decision);
    }

    /// Records in the current span that the host is asked for permission.
    pub fn record_asked() {
        Span::current().record("whimbrel.permission.asked", true);
    }

    /// Records the result; `error` is its kind, if the call failed.
    pub fn record_result(&self, error: Option<&'static str>, result: impl FnOnce() -> String) {
        if let Some(error) = error {
            self.span.record("error.type", error);
            self.span.record("otel.status_code", "ERROR");
        }
        if self.content == ContentCapture::On && !self.span.is_disabled() {
            self.span.record("gen_ai.tool.call.result", result());
        }
    }
}
