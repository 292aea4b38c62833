//! Next step of a turn, as a pure function of its state.

use whimbrel_wire::StopReason;

use crate::permission_checker::EndTurn;

/// Maximum number of times the model is asked to continue a truncated reply, counted since the last tool call.
pub const MAX_CONTINUATIONS: u32 = 3;

/// Maximum number of times a paused reply is continued, counted since the last tool call.
const MAX_PAUSES: u32 = 20;

/// State of a turn that decides the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnState {
    /// The last event.
    pub event: TurnEvent,
    /// Whether the turn was interrupted.
    pub aborted: bool,
    pub model_calls: u32,
    pub max_turns: Option<u32>,
    /// Continuations since the last tool call.
    pub continuations: u32,
    pub structured_output: OutputRequirement,
    /// Whether another engine has continued the session in its store.
    pub has_conflict: bool,
    /// Whether the budget is exceeded.
    pub over_budget: bool,
    /// Whether another fallback model is left.
    pub has_fallback: bool,
    /// Whether the conversation can be compacted.
    pub can_compact: bool,
}

/// Whether the turn must produce structured output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputRequirement {
    NotRequired,
    /// Required, and not there yet.
    Pending {
        /// Outputs given so far, all invalid.
        attempts: u32,
        /// Number of reminders to give one.
        reminders: u32,
        /// Limit on each of both counts.
        limit: u32,
    },
    /// A valid output was given.
    Satisfied,
}

/// The last event of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    Replied {
        /// Stop reason; `None` if the stream broke off after at least one complete block.
        stop_reason: Option<StopReason>,
        tool_calls: usize,
    },
    /// The model call failed permanently.
    Failed,
    /// The model is unavailable; a fallback model may work.
    Unavailable,
    /// The conversation exceeds the model's context window.
    ContextTooLong,
    /// Compaction was attempted.
    Compacted { succeeded: bool },
    /// The tool calls of the reply were run.
    ToolsRan {
        /// Set if one of them ends the turn.
        end_turn: Option<EndTurn>,
    },
    /// The model had finished, and a Stop hook keeps it working.
    StopBlocked,
    /// The model had finished, and a prompt came in.
    PromptAdded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    RunTools,
    CallModel,
    /// Call the model again, with a message that says why.
    Continue(Continuation),
    /// Activate the next fallback model, then call it.
    UseFallback,
    /// Compact the conversation.
    Compact,
    End(TurnEnd),
}

/// Reason why the model is called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The output limit truncated the reply.
    OutputLimit,
    /// The connection broke during the reply.
    ConnectionCut,
    /// The provider paused the reply; no message is needed.
    Paused,
    /// The structured output is missing.
    MissingOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    Done,
    /// Interrupted while the model replied.
    AbortedStreaming,
    /// Interrupted while tools ran, or by a denial that ends the turn.
    AbortedTools,
    HookStopped,
    /// A hook deferred a tool call.
    HookDeferred,
    MaxTurns,
    /// The model call failed permanently.
    ApiError,
    /// The model declined to answer.
    Refused,
    /// The reply was truncated too often.
    OutputLimit,
    /// The provider paused the reply too often.
    Stalled,
    /// No valid structured output was given.
    NoStructuredOutput,
    BudgetExceeded,
    /// The conversation exceeds the context window and cannot be compacted.
    ContextTooLong,
    /// Another engine has continued the session in its store.
    Conflict,
}

impl TurnState {
    /// Returns whether a prompt may keep the turn from ending. Otherwise it starts a turn of its own: if the turn limit
    /// is reached, and after structured output, which answers the prompts before it.
    pub fn can_go_on_with_prompt(&self) -> bool {
        self.structured_output != OutputRequirement::Satisfied
            && self.max_turns.is_none_or(|limit| self.model_calls < limit)
    }
}

/// Decides the next step. Precedence:
/// 1. an interruption ends the turn;
/// 2. a session that another engine has continued ends the turn, because nothing of it is stored;
/// 3. an exceeded budget ends the turn, whatever the reply was;
/// 4. an error ends the turn, unless a fallback model is left or compaction is possible;
/// 5. tool calls are run before anything else;
/// 6. valid structured output ends the turn; while it is missing, the turn does not end successfully;
/// 7. a truncated reply is continued up to its limit;
/// 8. the turn limit ends a turn that would call the model again.
pub fn next_step(state: &TurnState) -> NextStep {
    let call_again = |next: NextStep| match state.max_turns {
        Some(limit) if state.model_calls >= limit => NextStep::End(TurnEnd::MaxTurns),
        _ => next,
    };
    let compact = if state.can_compact { NextStep::Compact } else { NextStep::End(TurnEnd::ContextTooLong) };
    match &state.event {
        TurnEvent::ToolsRan { .. } if state.aborted => NextStep::End(TurnEnd::AbortedTools),
        _ if state.aborted => NextStep::End(TurnEnd::AbortedStreaming),
        _ if state.has_conflict => NextStep::End(TurnEnd::Conflict),
        _ if state.over_budget => NextStep::End(TurnEnd::BudgetExceeded),
        TurnEvent::ToolsRan { end_turn: Some(EndTurn::Denied) } => NextStep::End(TurnEnd::AbortedTools),
        TurnEvent::ToolsRan { end_turn: Some(EndTurn::Hook) } => NextStep::End(TurnEnd::HookStopped),
        TurnEvent::ToolsRan { end_turn: Some(EndTurn::HookDeferred) } => NextStep::End(TurnEnd::HookDeferred),
        TurnEvent::ToolsRan { end_turn: None } => match state.structured_output {
            OutputRequirement::Satisfied => NextStep::End(TurnEnd::Done),
            OutputRequirement::Pending { attempts, limit, .. } if attempts >= limit => {
                NextStep::End(TurnEnd::NoStructuredOutput)
            }
            OutputRequirement::Pending { .. } | OutputRequirement::NotRequired => {
                call_again(NextStep::CallModel)
            }
        },
        TurnEvent::StopBlocked | TurnEvent::PromptAdded => call_again(NextStep::CallModel),
        TurnEvent::Unavailable if state.has_fallback => NextStep::UseFallback,
        TurnEvent::Failed | TurnEvent::Unavailable => NextStep::End(TurnEnd::ApiError),
        TurnEvent::ContextTooLong => compact,
        TurnEvent::Compacted { succeeded: true } => NextStep::CallModel,
        TurnEvent::Compacted { succeeded: false } => NextStep::End(TurnEnd::ContextTooLong),
        TurnEvent::Replied { tool_calls: 1.., .. } => NextStep::RunTools,
        TurnEvent::Replied { stop_reason, .. } => match stop_reason {
            Some(StopReason::MaxTokens) if state.continuations < MAX_CONTINUATIONS => {
                call_again(NextStep::Continue(Continuation::OutputLimit))
            }
            Some(StopReason::MaxTokens) => NextStep::End(TurnEnd::OutputLimit),
            None if state.continuations < MAX_CONTINUATIONS => {
                call_again(NextStep::Continue(Continuation::ConnectionCut))
            }
            None => NextStep::End(TurnEnd::ApiError),
            Some(StopReason::PauseTurn) if state.continuations < MAX_PAUSES => {
                call_again(NextStep::Continue(Continuation::Paused))
            }
            Some(StopReason::PauseTurn) => NextStep::End(TurnEnd::Stalled),
            Some(StopReason::Refusal) => NextStep::End(TurnEnd::Refused),
            Some(StopReason::ModelContextWindowExceeded) => compact,
            Some(
                StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::Other(_),
            ) => match state.structured_output {
                OutputRequirement::Pending { reminders, limit, .. } if reminders < limit => {
                    call_again(NextStep::Continue(Continuation::MissingOutput))
                }
                OutputRequirement::Pending { .. } => NextStep::End(TurnEnd::NoStructuredOutput),
                OutputRequirement::NotRequired | OutputRequirement::Satisfied => NextStep::End(TurnEnd::Done),
            },
        },
    }
}

#[cfg(test)]
mod tests;
