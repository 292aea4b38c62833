//! Spans and metrics of agents, model calls and tool calls, named by OpenTelemetry's conventions for generative AI.
//!
//! With the feature `tracing` the spans are those of the crate of that name, with `metrics` the figures are. Without them
//! nothing is recorded: the types are empty.
//!
//! Modules: `spans` (or `no_spans` in its place), `call_metrics` (or `no_metrics`), `content` (whether contents are recorded).

#[cfg_attr(not(feature = "metrics"), path = "telemetry/no_metrics.rs")]
#[cfg_attr(feature = "metrics", path = "telemetry/call_metrics.rs")]
mod call_metrics;
mod content;
#[cfg_attr(not(feature = "tracing"), path = "telemetry/no_spans.rs")]
#[cfg_attr(feature = "tracing", path = "telemetry/spans.rs")]
mod spans;

pub use call_metrics::{OpenSession, record_model_call, record_turn};
pub use content::ContentCapture;
pub use spans::{AgentSpan, ChatSpan, PromptSpans, ToolSpan, in_current_span};

/// What is known about an agent when its turn begins.
#[derive(Debug, Clone, Copy)]
pub struct AgentStart<'a> {
    pub session_id: &'a str,
    /// Id of a subagent.
    pub agent_id: Option<&'a str>,
    /// Its type; the main agent has the name `main`.
    pub agent_name: &'a str,
    pub model: &'a str,
}

/// What is known about an agent when its turn has ended.
#[derive(Debug, Clone, Copy)]
pub struct AgentEnd<'a> {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: f64,
    /// Kind of the failure, if the turn failed.
    pub error: Option<&'a str>,
    /// The answer.
    pub text: &'a str,
}
