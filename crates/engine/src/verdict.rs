//! What comes next in a turn, as one pure function over what has just happened.

use whimbrel_wire::StopReason;

use crate::gate::Halt;

/// How often a reply that hit the output limit is continued within one turn.
pub const MAX_RECOVERIES: u32 = 3;

/// How often a provider may pause without anything being done in between.
const MAX_PAUSES: u32 = 20;

/// What has just happened, and what counts for deciding what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    /// The last thing that happened.
    pub event: Happened,
    /// Whether the turn has been told to stop.
    pub aborted: bool,
    /// Model calls made in this turn.
    pub model_calls: u32,
    /// The limit on them.
    pub max_turns: Option<u32>,
    /// Continuations already made after the output limit.
    pub recoveries: u32,
    /// Whether an answer in a certain shape is owed.
    pub answer: Answer,
    /// Whether the budget is used up.
    pub broke: bool,
    /// Whether another model could be asked.
    pub understudy: bool,
    /// Whether room could be made in the window.
    pub room: bool,
}

/// Whether the turn owes an answer in a shape that the host asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No: words will do.
    Free,
    /// Yes, and it is not there yet.
    Due {
        /// Answers given so far; all of them bad.
        attempts: u32,
        /// How often the model had to be told to give one.
        demands: u32,
        /// The limit on either.
        limit: u32,
    },
    /// It has been given.
    Given,
}

/// The last thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// The model replied.
    Replied {
        /// Why it stopped; none if the stream broke off after at least one whole block.
        stop: Option<StopReason>,
        /// How many tool calls the reply holds.
        calls: usize,
    },
    /// The model could not be reached, or refused the request, for good.
    Failed,
    /// The model is not to be had, but another one might be.
    Unavailable,
    /// The conversation does not fit the model's window.
    TooLong,
    /// Room has been made in the window, or not.
    RoomMade {
        /// Whether it has.
        made: bool,
    },
    /// The tool calls of the reply have been made.
    Acted {
        /// Set if one of them ends the turn.
        halt: Option<Halt>,
    },
    /// The model had finished, and a hook wants it to go on.
    SentBack,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Make the tool calls.
    Act,
    /// Ask the model again.
    Ask,
    /// Tell the model why it is asked again, then ask.
    Nudge(Nudge),
    /// Let another model answer, then ask it.
    StepIn,
    /// Make room in the window.
    MakeRoom,
    /// The turn ends.
    End(End),
}

/// What the model is told when it is asked to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// The output limit cut the reply.
    OutputLimit,
    /// The connection cut the reply.
    Cut,
    /// The provider paused; nothing needs to be said.
    Paused,
    /// The answer is owed in a certain shape.
    Answer,
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
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
    ApiFailure,
    /// The model declined.
    Refused,
    /// The output limit cut the reply once too often.
    OutputLimit,
    /// The provider has paused the reply once too often.
    Stalled,
    /// No answer fitted the shape that was asked for.
    NoAnswer,
    /// The budget is used up.
    Broke,
    /// The conversation does not fit the window, and room could not be made.
    TooLong,
}

/// Decides, in this order: an abort ends everything; an empty purse ends the turn, whatever came of it; a failure ends the turn,
/// unless another model can be asked or room can be made; tool calls are made before anything else;
/// an answer in the shape that was asked for ends the turn, and without one it does not end well; a cut reply is continued
/// while there are recoveries left; the turn limit ends a turn that would ask again.
pub fn next(now: &Situation) -> Next {
    let ask_again = |next: Next| match now.max_turns {
        Some(limit) if now.model_calls >= limit => Next::End(End::MaxTurns),
        _ => next,
    };
    let make_room = if now.room { Next::MakeRoom } else { Next::End(End::TooLong) };
    match &now.event {
        Happened::Acted { .. } if now.aborted => Next::End(End::AbortedTools),
        _ if now.aborted => Next::End(End::AbortedStreaming),
        _ if now.broke => Next::End(End::Broke),
        Happened::Acted { halt: Some(Halt::Refused) } => Next::End(End::AbortedTools),
        Happened::Acted { halt: Some(Halt::Hook) } => Next::End(End::HookStopped),
        Happened::Acted { halt: Some(Halt::Deferred) } => Next::End(End::Deferred),
        Happened::Acted { halt: None } => match now.answer {
            Answer::Given => Next::End(End::Done),
            Answer::Due { attempts, limit, .. } if attempts >= limit => Next::End(End::NoAnswer),
            Answer::Due { .. } | Answer::Free => ask_again(Next::Ask),
        },
        Happened::SentBack => ask_again(Next::Ask),
        Happened::Unavailable if now.understudy => Next::StepIn,
        Happened::Failed | Happened::Unavailable => Next::End(End::ApiFailure),
        Happened::TooLong => make_room,
        Happened::RoomMade { made: true } => Next::Ask,
        Happened::RoomMade { made: false } => Next::End(End::TooLong),
        Happened::Replied { calls: 1.., .. } => Next::Act,
        Happened::Replied { stop, .. } => match stop {
            Some(StopReason::MaxTokens) if now.recoveries < MAX_RECOVERIES => {
                ask_again(Next::Nudge(Nudge::OutputLimit))
            }
            Some(StopReason::MaxTokens) => Next::End(End::OutputLimit),
            None if now.recoveries < MAX_RECOVERIES => ask_again(Next::Nudge(Nudge::Cut)),
            None => Next::End(End::ApiFailure),
            Some(StopReason::PauseTurn) if now.recoveries < MAX_PAUSES => {
                ask_again(Next::Nudge(Nudge::Paused))
            }
            Some(StopReason::PauseTurn) => Next::End(End::Stalled),
            Some(StopReason::Refusal) => Next::End(End::Refused),
            Some(StopReason::ModelContextWindowExceeded) => make_room,
            Some(
                StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::Other(_),
            ) => match now.answer {
                Answer::Due { demands, limit, .. } if demands < limit => {
                    ask_again(Next::Nudge(Nudge::Answer))
                }
                Answer::Due { .. } => Next::End(End::NoAnswer),
                Answer::Free | Answer::Given => Next::End(End::Done),
            },
        },
    }
}

#[cfg(test)]
mod tests;
