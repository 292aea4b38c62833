//! Calls without a result, because the engine ended before: what is known of them, and the result that the model gets.

use serde_json::Value;
use whimbrel_wire::content::{Block, ResultContent};

/// What a loaded history contains for the calls of its last reply that have no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastCalls {
    /// A placeholder as the result of each, so that a prompt can follow.
    Answered,
    /// Nothing, if at least one of them never started: the caller runs those and adds all results.
    Open,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    pub id: String,
    pub tool: String,
    pub input: Value,
    pub state: OpenCallState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenCallState {
    /// It never started, so it can be run.
    Unstarted,
    /// It had started, so it must not be run again. The text is its result for the model.
    OutcomeUnknown(String),
}

/// State of a call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallState {
    /// It had started.
    Started,
    /// This agent was running it.
    Delegated(String),
    /// It had not started, or it has no effects.
    NoEffect,
    /// The transcript does not say.
    Unknown,
}

/// The call with this id among the blocks of a reply.
pub(crate) fn open_call(blocks: &[Block], id: &str, state: &CallState) -> Option<OpenCall> {
    let state = match state {
        CallState::NoEffect => OpenCallState::Unstarted,
        CallState::Started | CallState::Delegated(_) | CallState::Unknown => {
            OpenCallState::OutcomeUnknown(missing_text(state))
        }
    };
    blocks.iter().find_map(|block| match block {
        Block::ToolUse { id: found, name, input } if found == id => {
            let (id, tool, input) = (id.to_owned(), name.clone(), input.clone());
            Some(OpenCall { id, tool, input, state: state.clone() })
        }
        _ => None,
    })
}

/// Placeholder for the result of a call.
pub(crate) fn missing_result(id: String, state: &CallState) -> Block {
    Block::ToolResult {
        tool_use_id: id,
        content: Some(ResultContent::Text(missing_text(state))),
        is_error: Some(true),
    }
}

/// What the model is told in place of the result.
fn missing_text(state: &CallState) -> String {
    let text = match state {
        CallState::Delegated(agent) => &format!(
            "Outcome unknown: the engine ended while the agent {agent} was working on this call. Its changes remain. \
             Continue it (Agent with `resume`), or check before you repeat the call."
        ),
        CallState::Started => {
            "Outcome unknown: the engine ended while this call was running. It may have taken effect, fully or partly. \
             Check before you repeat it."
        }
        CallState::NoEffect => {
            "No result: the engine ended before this call finished. It changed nothing. Repeat it if it is still needed."
        }
        CallState::Unknown => {
            "Outcome unknown: the engine ended before the result of this call was recorded. It may have taken effect. \
             Check before you repeat it."
        }
    };
    text.to_owned()
}
