//! File format of `scenario.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use whimbrel_wire::content::Content;
use whimbrel_wire::options::Options;

use crate::script::Reply;

/// Content of `scenario.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioSpec {
    /// What the scenario shows, in one sentence.
    pub about: String,
    /// Session options, spelled as in the SDKs.
    #[serde(default)]
    pub options: Options,
    /// Environment variables of the engine.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Replies of the model.
    #[serde(default)]
    pub model: Vec<Reply>,
    /// Steps of the host. The input closes after the last one.
    pub host: Vec<HostStep>,
    /// The expected exit code.
    #[serde(default)]
    pub exit: i32,
}

/// One step of the host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HostStep {
    /// Sends a prompt: a text or content blocks.
    Say(Content),
    /// Sends a line: JSON, or a string that need not be JSON.
    Line(Value),
    /// Sends a control request and waits for the response.
    Ask(Value),
    /// Waits for a frame that matches, after the one waited for last.
    WaitFor(Value),
    /// Waits for a control request of the engine and responds to it.
    Answer {
        /// Pattern for the request: its `subtype` and any other fields.
        question: Value,
        /// The response.
        reply: Value,
    },
    /// Waits until this many model replies were requested.
    WaitForModel(usize),
    /// Releases a held reply.
    Release(String),
    /// Closes the input.
    FinishInput,
}
