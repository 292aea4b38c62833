//! What a model is asked.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use whimbrel_wire::RawJson;

use crate::history::HistorySnapshot;

pub use whimbrel_wire::options::ThinkingDisplay;

/// One request. Cheap to clone: the large parts are shared.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model, by the name its provider knows.
    pub model: String,
    /// System prompt and tools.
    pub preamble: Arc<Preamble>,
    /// The conversation.
    pub history: HistorySnapshot,
    /// The output limit.
    pub max_tokens: u64,
    /// Whether and how much the model thinks first.
    pub thinking: Thinking,
    /// What is shown of its thinking; none leaves that to the provider.
    pub thinking_display: Option<ThinkingDisplay>,
    /// How hard it tries, where the model can be told.
    pub effort: Option<Effort>,
    /// How many tokens the task may take, where the model can be told: it paces itself.
    pub task_budget: Option<TaskBudget>,
    /// Beta features asked for by the caller.
    pub betas: Vec<String>,
    /// The session, so that a provider can tie requests together.
    pub session_id: String,
    /// Whether [`crate::Delta::raw`] is wanted.
    pub raw_events: bool,
}

/// The part of a request that stays the same over a session, written as JSON once.
#[derive(Debug)]
pub struct Preamble {
    /// The system prompt, in blocks.
    pub system: Vec<String>,
    /// The tools.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Tools that the provider runs itself, in its own words; only the Messages API knows such.
    pub server_tools: Vec<Value>,
    json: Bytes,
    /// The same in Chat Completions, once that was asked for.
    chat_json: OnceLock<Bytes>,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: RawJson,
}

/// Whether and how much the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Disabled,
    /// Up to this many tokens.
    Enabled {
        /// The limit.
        budget: u64,
    },
    /// As much as it finds useful.
    Adaptive,
}

/// How many tokens a task may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBudget {
    /// From beginning to end.
    pub total: u64,
    /// How many are left, where the provider cannot know that from the conversation: others have taken some, or it was
    /// replaced by a summary.
    pub remaining: Option<u64>,
}

/// How hard the model tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Request {
    /// A request without thinking, effort, betas or session; set what else is wanted.
    pub fn new(model: impl Into<String>, preamble: Arc<Preamble>, history: HistorySnapshot) -> Self {
        Self {
            model: model.into(),
            preamble,
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

    /// How many bytes it has, about.
    pub fn size(&self) -> usize {
        let history: usize = self.history.parts().iter().map(Bytes::len).sum();
        self.preamble.json().len() + history
    }
}

impl Preamble {
    /// Writes system prompt and tools once. Empty system blocks are left out: providers refuse them.
    pub fn new(mut system: Vec<String>, tools: Vec<Arc<ToolSpec>>) -> Self {
        system.retain(|text| !text.is_empty());
        let json = Bytes::from(render(&system, &tools, &[]));
        Self { system, tools, server_tools: Vec::new(), json, chat_json: OnceLock::new() }
    }

    /// The same with tools that the provider runs itself, and no others.
    pub fn with_server_tools(mut system: Vec<String>, server_tools: Vec<Value>) -> Self {
        system.retain(|text| !text.is_empty());
        let json = Bytes::from(render(&system, &[], &server_tools));
        Self { system, tools: Vec::new(), server_tools, json, chat_json: OnceLock::new() }
    }

    /// What Chat Completions makes of it, made once.
    pub(crate) fn chat_json_or_init(&self, tell: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.chat_json.get_or_init(|| tell(self)).clone()
    }

    /// Whether [`Preamble::new`] would make the same of this prompt and these very tools.
    pub fn is_built_from(&self, system: &[String], tools: &[Arc<ToolSpec>]) -> bool {
        self.system.iter().eq(system.iter().filter(|text| !text.is_empty()))
            && self.server_tools.is_empty()
            && self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// `"system":[..],"tools":[..],`, each part only if it is not empty; the last block carries a cache mark.
    pub fn json(&self) -> &Bytes {
        &self.json
    }
}

/// The mark that asks the provider to cache everything up to its block.
pub(crate) const CACHE_CONTROL: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn render(system: &[String], tools: &[Arc<ToolSpec>], served: &[Value]) -> String {
    let mut json = String::new();
    if !system.is_empty() {
        let blocks = system.iter().enumerate().map(|(i, text)| {
            let mark = if i + 1 == system.len() { CACHE_CONTROL } else { "" };
            let text = serde_json::to_string(text).unwrap_or_default();
            format!(r#"{{"type":"text","text":{text}{mark}}}"#)
        });
        json += &format!(r#""system":[{}],"#, blocks.collect::<Vec<_>>().join(","));
    }
    if !tools.is_empty() || !served.is_empty() {
        let specs = tools.iter().filter_map(|tool| serde_json::to_string(tool.as_ref()).ok());
        let served = served.iter().map(Value::to_string);
        json += &format!(r#""tools":[{}],"#, specs.chain(served).collect::<Vec<_>>().join(","));
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_knows_what_it_was_made_of() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let given = texts(&["", "one", "", "two"]);
        let preamble = Preamble::new(given.clone(), Vec::new());
        assert!(preamble.is_built_from(&given, &[]), "empty blocks make no difference");
        assert!(preamble.is_built_from(&texts(&["one", "two"]), &[]));
        assert!(!preamble.is_built_from(&texts(&["one"]), &[]));
        assert!(!preamble.is_built_from(&texts(&["two", "one"]), &[]));
    }
}
