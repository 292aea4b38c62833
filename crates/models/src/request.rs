//! Requests to a model.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use whimbrel_wire::RawJson;

use crate::history::HistorySnapshot;
use crate::prompt_cache::{CacheMarks, mark_last_system_block};

pub use whimbrel_wire::options::ThinkingDisplay;

/// One request. Cheap to clone, because the large parts are shared.
#[derive(Debug, Clone)]
pub struct Request {
    /// Model name as the provider knows it.
    pub model: String,
    /// System prompt and tools.
    pub prefix: Arc<RequestPrefix>,
    /// The conversation.
    pub history: HistorySnapshot,
    /// Output limit in tokens.
    pub max_tokens: u64,
    /// Reasoning before the reply.
    pub thinking: Thinking,
    /// Form in which reasoning is returned; `None` leaves it to the provider.
    pub thinking_display: Option<ThinkingDisplay>,
    /// Reasoning effort, for models that support it.
    pub effort: Option<Effort>,
    /// Token budget of the task, for models that support it and pace themselves by it.
    pub task_budget: Option<TaskBudget>,
    /// Beta features requested by the caller.
    pub betas: Vec<String>,
    /// Session id, by which a provider can correlate requests.
    pub session_id: String,
    /// Whether to fill [`crate::ReplyItem::raw`].
    pub raw_events: bool,
}

/// System prompt and tools: the part of a request that stays the same during a session, serialized once.
#[derive(Debug)]
pub struct RequestPrefix {
    /// The system prompt, one entry per block.
    pub system: Vec<String>,
    /// The tools that the engine runs.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Tools that the provider runs, as it describes them; supported by the Messages API only.
    pub server_tools: Vec<Value>,
    json: Bytes,
    /// The same without cache breakpoint, serialized on first use.
    unmarked_json: OnceLock<Bytes>,
    /// Serialized for Chat Completions on first use.
    chat_json: OnceLock<Bytes>,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    pub name: String,
    /// Purpose and usage of the tool, for the model.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: RawJson,
}

/// Reasoning before the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// No reasoning.
    Disabled,
    /// Reasoning within a token limit.
    Enabled {
        /// The limit in tokens.
        budget: u64,
    },
    /// The model decides how much to reason.
    Adaptive,
}

/// Token budget of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBudget {
    /// Tokens for the whole task.
    pub total: u64,
    /// Tokens left, where the provider cannot derive that from the conversation: other agents used some, or compaction
    /// replaced messages.
    pub remaining: Option<u64>,
}

/// Reasoning effort of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// A part of a request that can be omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionalPart {
    /// One beta feature.
    Beta(String),
    /// Every beta feature.
    AllBetas,
    /// The thinking configuration.
    Thinking,
    /// The form in which thinking is returned.
    ThinkingDisplay,
    /// The reasoning effort.
    Effort,
    /// The token budget of the task.
    TaskBudget,
    /// The user id.
    Metadata,
    /// The request for usage at the end of a stream; Chat Completions only.
    StreamOptions,
    /// The field name of the output limit: Chat Completions has two, and the other one is used instead.
    LimitName,
    /// Earlier reasoning of the model; Chat Completions only.
    Reasoning,
}

impl Request {
    /// Creates a request without thinking, effort, betas or session id; set the other fields as needed.
    pub fn new(model: impl Into<String>, prefix: Arc<RequestPrefix>, history: HistorySnapshot) -> Self {
        Self {
            model: model.into(),
            prefix,
            history,
            max_tokens: 32_000,
            thinking: Thinking::Disabled,
            thinking_display: None,
            effort: None,
            task_budget: None,
            betas: Vec::new(),
            session_id: String::new(),
            raw_events: false,
        }
    }

    /// Approximate size in bytes.
    pub fn size(&self) -> usize {
        let history: usize = self.history.parts().iter().map(Bytes::len).sum();
        self.prefix.json().len() + history
    }
}

impl RequestPrefix {
    /// Serializes system prompt and tools. Empty system blocks are dropped because providers reject them.
    pub fn new(mut system: Vec<String>, tools: Vec<Arc<ToolSpec>>) -> Self {
        system.retain(|text| !text.is_empty());
        Self::render(system, tools, Vec::new())
    }

    /// Creates a prefix whose tools are all run by the provider.
    pub fn with_server_tools(mut system: Vec<String>, server_tools: Vec<Value>) -> Self {
        system.retain(|text| !text.is_empty());
        Self::render(system, Vec::new(), server_tools)
    }

    fn render(system: Vec<String>, tools: Vec<Arc<ToolSpec>>, server_tools: Vec<Value>) -> Self {
        let json = Bytes::from(render(&system, &tools, &server_tools, CacheMarks::Set));
        let (unmarked_json, chat_json) = (OnceLock::new(), OnceLock::new());
        Self { system, tools, server_tools, json, unmarked_json, chat_json }
    }

    /// Returns the Chat Completions form, serialized on first use.
    pub(crate) fn chat_json_or_init(&self, render: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.chat_json.get_or_init(|| render(self)).clone()
    }

    /// Returns true if [`RequestPrefix::new`] would produce the same from this prompt and these tools (compared by
    /// identity).
    pub fn is_built_from(&self, system: &[String], tools: &[Arc<ToolSpec>]) -> bool {
        self.system.iter().eq(system.iter().filter(|text| !text.is_empty()))
            && self.server_tools.is_empty()
            && self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// `"system":[..],"tools":[..],`, each part only if not empty; the last system block carries a cache breakpoint.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The same without the cache breakpoint.
    pub(crate) fn unmarked_json(&self) -> Bytes {
        let render = || render(&self.system, &self.tools, &self.server_tools, CacheMarks::Omitted).into();
        self.unmarked_json.get_or_init(render).clone()
    }
}

impl OptionalPart {
    /// Returns true if the part is this beta or all betas.
    pub fn covers_beta(&self, name: &str) -> bool {
        match self {
            Self::Beta(beta) => beta == name,
            Self::AllBetas => true,
            Self::Thinking
            | Self::ThinkingDisplay
            | Self::Effort
            | Self::TaskBudget
            | Self::Metadata
            | Self::StreamOptions
            | Self::LimitName
            | Self::Reasoning => false,
        }
    }
}

fn render(system: &[String], tools: &[Arc<ToolSpec>], server_tools: &[Value], marks: CacheMarks) -> String {
    let mut json = String::new();
    if !system.is_empty() {
        let block = |text| {
            let text = serde_json::to_string(text).unwrap_or_default();
            format!(r#"{{"type":"text","text":{text}}}"#)
        };
        let mut blocks: Vec<String> = system.iter().map(block).collect();
        match marks {
            CacheMarks::Set => mark_last_system_block(&mut blocks),
            CacheMarks::Omitted => {}
        }
        json += &format!(r#""system":[{}],"#, blocks.join(","));
    }
    if !tools.is_empty() || !server_tools.is_empty() {
        let specs = tools.iter().filter_map(|tool| serde_json::to_string(tool.as_ref()).ok());
        let server_tools = server_tools.iter().map(Value::to_string);
        json += &format!(r#""tools":[{}],"#, specs.chain(server_tools).collect::<Vec<_>>().join(","));
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_detects_identical_prompt_and_tools() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let given = texts(&["", "one", "", "two"]);
        let prefix = RequestPrefix::new(given.clone(), Vec::new());
        assert!(prefix.is_built_from(&given, &[]), "empty blocks make no difference");
        assert!(prefix.is_built_from(&texts(&["one", "two"]), &[]));
        assert!(!prefix.is_built_from(&texts(&["one"]), &[]));
        assert!(!prefix.is_built_from(&texts(&["two", "one"]), &[]));
    }
}
