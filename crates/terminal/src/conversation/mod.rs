//! The session as its frames tell it: the running turn, open calls, subagents, tasks. Frames come in, changes that the
//! application reacts to go out. It knows neither keys nor the screen.

mod agents;
mod calls;
mod frames;
mod todos;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use whimbrel::PermissionMode;
use whimbrel::wire::control::SlashCommand;
use whimbrel::wire::message::TurnResult;
use whimbrel::wire::system::BackgroundTask;

use crate::transcript::{Item, Transcript};
pub(crate) use agents::{AgentState, Subagent};
pub(crate) use calls::RunningCall;
pub(crate) use todos::{Todo, TodoStatus};

/// What the engine is doing in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Waiting,
    Thinking,
    Writing,
    Compacting,
    Retrying,
}

/// The running turn.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) started: Instant,
    pub(crate) phase: Phase,
    /// Bytes of text and reasoning; about four make a token.
    pub(crate) written_bytes: usize,
    pub(crate) interrupt: InterruptState,
}

/// Whether the turn is being interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptState {
    None,
    Requested,
}

/// Something that the application reacts to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// A piece of the model's text.
    Text(String),
    /// The text is complete.
    TextEnd,
    /// An entry for the transcript.
    Show(Item),
    /// The engine took up a prompt.
    PromptTaken {
        uuid: String,
    },
    TurnEnded(Box<TurnEnd>),
    /// The engine told something about the session: model, mode.
    SessionInfo,
    /// The commands of the engine have changed.
    Commands(Vec<SlashCommand>),
    /// Names of all commands of the engine.
    CommandNames(Vec<String>),
    /// A call was withdrawn or answered elsewhere; its question is void.
    ConversationReset,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnEnd {
    pub(crate) elapsed: Duration,
    pub(crate) is_interrupted: bool,
    pub(crate) is_error: bool,
    pub(crate) cost_usd: f64,
    pub(crate) output_tokens: u64,
}

/// The session.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: PermissionMode,
    pub(crate) effort: Option<String>,
    pub(crate) cost_usd: f64,
    /// Tokens of the last request, and the window of the model.
    pub(crate) context: Option<ContextFill>,
    pub(crate) turn: Option<Turn>,
    pub(crate) calls: Vec<RunningCall>,
    pub(crate) agents: Vec<Subagent>,
    pub(crate) background: Vec<BackgroundTask>,
    pub(crate) todos: Vec<Todo>,
    pub(crate) transcript: Transcript,
    /// Text of the model that is being streamed.
    streamed: Option<String>,
    reasoning: String,
}

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextFill {
    pub(crate) tokens: u64,
    pub(crate) window: u64,
}

impl ContextFill {
    pub(crate) fn percent(self) -> u64 {
        (self.tokens * 100).checked_div(self.window).unwrap_or(0).min(100)
    }
}

impl Conversation {
    pub(crate) fn with_model(model: Option<String>) -> Self {
        Self { model, ..Self::default() }
    }

    /// A conversation with the same model, mode and effort. The transcript stays for the transcript view.
    pub(crate) fn into_next(self) -> Self {
        let Self { model, mode, effort, transcript, .. } = self;
        Self { model, mode, effort, transcript, ..Self::default() }
    }

    /// Begins a turn, unless one runs.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        self.turn.get_or_insert(Turn {
            started: now,
            phase: Phase::Waiting,
            written_bytes: 0,
            interrupt: InterruptState::None,
        });
    }

    /// Returns whether a turn runs.
    pub(crate) fn is_running(&self) -> bool {
        self.turn.is_some()
    }

    /// Marks the running turn as being interrupted.
    pub(crate) fn request_interrupt(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.interrupt = InterruptState::Requested;
        }
    }

    /// Ends what runs, because the session has ended.
    pub(crate) fn end_session(&mut self, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        self.end_text(&mut changes);
        self.abandon_calls(now, &mut changes);
        self.turn = None;
        self.background.clear();
        changes
    }

    fn show(&mut self, item: Item, changes: &mut Vec<Change>) {
        self.transcript.push(item.clone());
        changes.push(Change::Show(item));
    }

    fn end_text(&mut self, changes: &mut Vec<Change>) {
        if let Some(text) = self.streamed.take() {
            self.transcript.push(Item::Answer(text));
            changes.push(Change::TextEnd);
        }
        let reasoning = std::mem::take(&mut self.reasoning);
        if !reasoning.trim().is_empty() {
            self.transcript.push(Item::Thinking(reasoning));
        }
    }

    fn record_result(&mut self, result: &TurnResult) {
        self.cost_usd = result.total_cost_usd;
        let window = self
            .model
            .as_deref()
            .and_then(|model| result.model_usage.get(model))
            .or_else(|| result.model_usage.values().max_by_key(|usage| usage.context_window))
            .map_or(0, |usage| usage.context_window);
        if window > 0 {
            let tokens = self.context.map_or(0, |context| context.tokens);
            self.context = Some(ContextFill { tokens, window });
        }
    }
}

/// The text field of an input; empty if it is missing.
fn text_field<'a>(input: &'a Value, name: &str) -> &'a str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
