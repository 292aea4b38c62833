//! In place of `spans` without the feature `tracing`: the same functions without any effect.

use serde_json::Value;
use whimbrel_models::{ModelError, ReplyEvent};
use whimbrel_wire::Usage;

use super::content::ContentCapture;
use super::{AgentEnd, AgentStart};

/// Returns the future as it is.
pub fn in_current_span<F: Future>(future: F) -> F {
    future
}

/// Nothing.
#[derive(Debug, Clone, Default)]
pub struct PromptSpans {}

impl PromptSpans {
    pub fn insert_current(&self, _: &str) {}

    pub fn remove(&self, _: &str) {}
}

/// Nothing.
#[derive(Debug, Clone)]
pub struct AgentSpan;

impl AgentSpan {
    pub fn for_prompts(_: &PromptSpans, _: &[String], _: AgentStart<'_>, _: ContentCapture) -> Self {
        Self
    }

    pub fn for_subagent(_: AgentStart<'_>, _: ContentCapture) -> Self {
        Self
    }

    pub fn run<F: Future>(&self, future: F) -> F {
        future
    }

    pub fn record_end(&self, _: AgentEnd<'_>) {}
}

/// Nothing.
#[derive(Debug)]
pub struct ChatSpan;

impl ChatSpan {
    pub fn start(_: &str, _: &str) -> Self {
        Self
    }

    pub fn run<F: Future>(&self, future: F) -> F {
        future
    }

    pub fn record_event(&mut self, _: &ReplyEvent) {}

    pub fn record_retry(&mut self) {}

    pub fn record_error(&mut self, _: &ModelError) {}

    pub fn record_usage(&mut self, _: &Usage) {}
}

/// Nothing.
#[derive(Debug, Clone)]
pub struct ToolSpan;

impl ToolSpan {
    pub fn start(_: &str, _: &str, _: &Value, _: ContentCapture) -> Self {
        Self
    }

    pub fn run<F: Future>(&self, future: F) -> F {
        future
    }

    pub fn record_permission(_: &'static str) {}

    pub fn record_asked() {}

    pub fn record_result(&self, _: Option<&'static str>, _: impl FnOnce() -> String) {}
}
