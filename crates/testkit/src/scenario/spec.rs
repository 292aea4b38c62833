//! The file format of a scenario.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use whimbrel_wire::content::Content;
use whimbrel_wire::options::Options;

use crate::script::Reply;

/// A story as `scenario.json` tells it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioSpec {
    /// What it shows, in a sentence.
    pub about: String,
    /// What is asked of the session, spelled as in the SDKs.
    #[serde(default)]
    pub options: Options,
    /// Variables of the engine's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What the model says.
    #[serde(default)]
    pub model: Vec<Reply>,
    /// What the host does, step by step. After the last step the input is finished.
    pub host: Vec<HostStep>,
    /// The exit code.
    #[serde(default)]
    pub exit: i32,
}

/// One thing that the host does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HostStep {
    /// Says something to the agent: a text, or content blocks.
    Say(Content),
    /// Sends a line: JSON as it is, or a text that need not be JSON.
    Line(Value),
    /// Asks the engine something and waits for the answer.
    Ask(Value),
    /// Waits for a frame that looks like this, after the one that was waited for last.
    WaitFor(Value),
    /// Waits for a question of the engine and answers it.
    Answer {
        /// What the question looks like; its `subtype` and whatever else matters.
        question: Value,
        /// The answer.
        reply: Value,
    },
    /// Waits until the model has been asked so many times.
    WaitForModel(usize),
    /// Lets a reply go that is held back.
    Release(String),
    /// Says that nothing more will be said.
    FinishInput,
}
