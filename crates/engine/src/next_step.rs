//! What comes next in a turn, as one pure function over what has just happened.

use whimbrel_wire::StopReason;

use crate::permission_checker::EndTurn;

/// How often a reply that hit the output limit is continued within one turn.
pub const MAX_CONTINUATIONS: u32 = 3;

/// How often a provider may pause without anything being done in between.
const MAX_PAUSES: u32 = 20;

/// What has just happened, and what counts for deciding what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnState {
    /// The last thing that happened.
    pub event: TurnEvent,
    /// Whether the turn has been told to stop.
    pub aborted: bool,
    /// Model calls made in this turn.
    pub model_calls: u32,
    /// The limit on them.
    pub max_turns: Option<u32>,
    /// Continuations already made after the output limit.
    pub continuations: u32,
    /// Whether an answer in a certain shape is owed.
    pub structured_output: OutputRequirement,
    /// Whether the budget is used up.
    pub over_budget: bool,
    /// Whether another model could be asked.
    pub has_fallback: bool,
    /// Whether room could be made in the window.
    pub can_compact: bool,
}

/// Whether the turn owes an answer in a shape that the host asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputRequirement {
    /// No: words will do.
    NotRequired,
    /// Yes, and it is not there yet.
    Pending {
        /// Answers given so far; all of them bad.
        attempts: u32,
        /// How often the model had to be told to give one.
        reminders: u32,
        /// The limit on either.
        limit: u32,
    },
    /// It has been given.
    Satisfied,
}

/// The last thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// The model replied.
    Replied {
        /// Why it stopped; none if the stream broke off after at least one whole block.
        stop_reason: Option<StopReason>,
        /// How many tool calls the reply holds.
        tool_calls: usize,
    },
    /// The model could not be reached, or refused the request, for good.
    Failed,
    /// The model is not to be had, but another one might be.
    Unavailable,
    /// The conversation does not fit the model's window.
    ContextTooLong,
    /// Room has been made in the window, or not.
    Compacted {
        /// Whether it has.
        succeeded: bool,
    },
    /// The tool calls of the reply have been made.
    ToolsRan {
        /// Set if one of them ends the turn.
        halt: Option<EndTurn>,
    },
    /// The model had finished, and a hook wants it to go on.
    StopBlocked,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Make the tool calls.
    RunTools,
    /// Ask the model again.
    CallModel,
    /// Tell the model why it is asked again, then ask.
    Continue(Continuation),
    /// Let another model answer, then ask it.
    UseFallback,
    /// Make room in the window.
    Compact,
    /// The turn ends.
    End(TurnEnd),
}

/// What the model is told when it is asked to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The output limit cut the reply.
    OutputLimit,
    /// The connection cut the reply.
    ConnectionCut,
    /// The provider paused; nothing needs to be said.
    Paused,
    /// The answer is owed in a certain shape.
    MissingOutput,
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model has finished.
    Done,
    /// Interrupted while the model spoke.
    AbortedStreaming,
    /// Interrupted while tools ran, or by a denial that says so.
    AbortedTools,
    /// A hook said so.
    HookStopped,
    /// A call was put off.
    Deferred,
    /// As many model calls as allowed.
    MaxTurns,
    /// The model failed for good.
    ApiError,
    /// The model declined.
    Refused,
    /// The output limit cut the reply once too often.
    OutputLimit,
    /// The provider has paused the reply once too often.
    Stalled,
    /// No answer fitted the shape that was asked for.
    NoStructuredOutput,
    /// The budget is used up.
    BudgetExceeded,
    /// The conversation does not fit the window, and room could not be made.
    ContextTooLong,
}

/// Decides, in this order: an abort ends everything; an empty purse ends the turn, whatever came of it; a failure ends the turn,
/// unless another model can be asked or room can be made; tool calls are made before anything else;
/// an answer in the shape that was asked for ends the turn, and without one it does not end well; a cut reply is continued
/// while there are recoveries left; the turn limit ends a turn that would ask again.
pub fn next_step(now: &TurnState) -> NextStep {
    let ask_again = |next: NextStep| match now.max_turns {
        Some(limit) if now.model_calls >= limit => NextStep::End(TurnEnd::MaxTurns),
        _ => next,
    };
    let make_room = if now.can_compact { NextStep::Compact } else { NextStep::End(TurnEnd::ContextTooLong) };
    match &now.event {
        TurnEvent::ToolsRan { .. } if now.aborted => NextStep::End(TurnEnd::AbortedTools),
        _ if now.aborted => NextStep::End(TurnEnd::AbortedStreaming),
        _ if now.over_budget => NextStep::End(TurnEnd::BudgetExceeded),
        TurnEvent::ToolsRan { halt: Some(EndTurn::Denied) } => NextStep::End(TurnEnd::AbortedTools),
        TurnEvent::ToolsRan { halt: Some(EndTurn::Hook) } => NextStep::End(TurnEnd::HookStopped),
        TurnEvent::ToolsRan { halt: Some(EndTurn::Deferred) } => NextStep::End(TurnEnd::Deferred),
        TurnEvent::ToolsRan { halt: None } => match now.structured_output {
            OutputRequirement::Satisfied => NextStep::End(TurnEnd::Done),
            OutputRequirement::Pending { attempts, limit, .. } if attempts >= limit => NextStep::End(TurnEnd::NoStructuredOutput),
            OutputRequirement::Pending { .. } | OutputRequirement::NotRequired => ask_again(NextStep::CallModel),
        },
        TurnEvent::StopBlocked => ask_again(NextStep::CallModel),
        TurnEvent::Unavailable if now.has_fallback => NextStep::UseFallback,
        TurnEvent::Failed | TurnEvent::Unavailable => NextStep::End(TurnEnd::ApiError),
        TurnEvent::ContextTooLong => make_room,
        TurnEvent::Compacted { succeeded: true } => NextStep::CallModel,
        TurnEvent::Compacted { succeeded: false } => NextStep::End(TurnEnd::ContextTooLong),
        TurnEvent::Replied { tool_calls: 1.., .. } => NextStep::RunTools,
        TurnEvent::Replied { stop_reason: stop, .. } => match stop {
            Some(StopReason::MaxTokens) if now.continuations < MAX_CONTINUATIONS => {
                ask_again(NextStep::Continue(Continuation::OutputLimit))
            }
            Some(StopReason::MaxTokens) => NextStep::End(TurnEnd::OutputLimit),
            None if now.continuations < MAX_CONTINUATIONS => ask_again(NextStep::Continue(Continuation::ConnectionCut)),
            None => NextStep::End(TurnEnd::ApiError),
            Some(StopReason::PauseTurn) if now.continuations < MAX_PAUSES => {
                ask_again(NextStep::Continue(Continuation::Paused))
            }
            Some(StopReason::PauseTurn) => NextStep::End(TurnEnd::Stalled),
            Some(StopReason::Refusal) => NextStep::End(TurnEnd::Refused),
            Some(StopReason::ModelContextWindowExceeded) => make_room,
            Some(
                StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::Other(_),
            ) => match now.structured_output {
                OutputRequirement::Pending { reminders: demands, limit, .. } if demands < limit => {
                    ask_again(NextStep::Continue(Continuation::MissingOutput))
                }
                OutputRequirement::Pending { .. } => NextStep::End(TurnEnd::NoStructuredOutput),
                OutputRequirement::NotRequired | OutputRequirement::Satisfied => NextStep::End(TurnEnd::Done),
            },
        },
    }
}

#[cfg(test)]
mod tests;
