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
}

/// Decides, in this order: an abort ends everything; a failure ends the turn; tool calls are made before anything else;
/// a cut reply is continued while there are recoveries left; the turn limit ends a turn that would ask again.
pub fn next(now: &Situation) -> Next {
    let ask_again = |next: Next| match now.max_turns {
        Some(limit) if now.model_calls >= limit => Next::End(End::MaxTurns),
        _ => next,
    };
    match &now.event {
        Happened::Acted { halt: Some(Halt::Refused) } => Next::End(End::AbortedTools),
        Happened::Acted { .. } if now.aborted => Next::End(End::AbortedTools),
        Happened::Acted { halt: Some(Halt::Hook) } => Next::End(End::HookStopped),
        Happened::Acted { halt: Some(Halt::Deferred) } => Next::End(End::Deferred),
        Happened::Acted { halt: None } => ask_again(Next::Ask),
        _ if now.aborted => Next::End(End::AbortedStreaming),
        Happened::SentBack => ask_again(Next::Ask),
        Happened::Failed => Next::End(End::ApiFailure),
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
            Some(StopReason::PauseTurn) => Next::End(End::OutputLimit),
            Some(StopReason::Refusal) => Next::End(End::Refused),
            Some(
                StopReason::EndTurn
                | StopReason::StopSequence
                | StopReason::ToolUse
                | StopReason::ModelContextWindowExceeded
                | StopReason::Other(_),
            ) => Next::End(End::Done),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(stop: StopReason, calls: usize) -> Happened {
        Happened::Replied { stop: Some(stop), calls }
    }

    #[test]
    fn the_decision_table() {
        let now = |event| Situation { event, aborted: false, model_calls: 1, max_turns: None, recoveries: 0 };
        let aborted = |event| Situation { aborted: true, ..now(event) };
        let spent = |event| Situation { model_calls: 2, max_turns: Some(2), ..now(event) };
        let tired = |event| Situation { recoveries: MAX_RECOVERIES, ..now(event) };
        let acted = Happened::Acted { halt: None };
        let halted = |halt| now(Happened::Acted { halt: Some(halt) });
        let rows = [
            ("a reply with tool calls: make them", now(replied(StopReason::ToolUse, 2)), Next::Act),
            ("calls are made whatever the stop reason says", now(replied(StopReason::EndTurn, 1)), Next::Act),
            (
                "calls of a reply cut by the output limit are made",
                now(replied(StopReason::MaxTokens, 1)),
                Next::Act,
            ),
            (
                "calls of a reply cut by the connection are made",
                now(Happened::Replied { stop: None, calls: 1 }),
                Next::Act,
            ),
            ("no tool calls: done", now(replied(StopReason::EndTurn, 0)), Next::End(End::Done)),
            ("a stop sequence: done", now(replied(StopReason::StopSequence, 0)), Next::End(End::Done)),
            (
                "an unknown stop reason: done",
                now(replied(StopReason::Other("new".into()), 0)),
                Next::End(End::Done),
            ),
            ("calls made: ask again", now(acted.clone()), Next::Ask),
            ("calls made and the limit reached: end", spent(acted.clone()), Next::End(End::MaxTurns)),
            (
                "the limit does not take back a finished answer",
                spent(replied(StopReason::EndTurn, 0)),
                Next::End(End::Done),
            ),
            ("the last reply's calls are still made", spent(replied(StopReason::ToolUse, 1)), Next::Act),
            (
                "the output limit: go on",
                now(replied(StopReason::MaxTokens, 0)),
                Next::Nudge(Nudge::OutputLimit),
            ),
            (
                "the output limit too often: end",
                tired(replied(StopReason::MaxTokens, 0)),
                Next::End(End::OutputLimit),
            ),
            (
                "a continuation counts as a turn",
                spent(replied(StopReason::MaxTokens, 0)),
                Next::End(End::MaxTurns),
            ),
            (
                "a cut connection: go on",
                now(Happened::Replied { stop: None, calls: 0 }),
                Next::Nudge(Nudge::Cut),
            ),
            (
                "cut too often: end",
                tired(Happened::Replied { stop: None, calls: 0 }),
                Next::End(End::ApiFailure),
            ),
            ("a paused turn: ask again", now(replied(StopReason::PauseTurn, 0)), Next::Nudge(Nudge::Paused)),
            ("a refusal: end", now(replied(StopReason::Refusal, 0)), Next::End(End::Refused)),
            ("a failed call: end", now(Happened::Failed), Next::End(End::ApiFailure)),
            (
                "aborted while the model spoke",
                aborted(replied(StopReason::ToolUse, 1)),
                Next::End(End::AbortedStreaming),
            ),
            ("aborted while the call failed", aborted(Happened::Failed), Next::End(End::AbortedStreaming)),
            ("aborted while tools ran", aborted(acted), Next::End(End::AbortedTools)),
            ("a denial that stops the turn", halted(Halt::Refused), Next::End(End::AbortedTools)),
            ("a hook that stops the turn", halted(Halt::Hook), Next::End(End::HookStopped)),
            ("a call that was put off", halted(Halt::Deferred), Next::End(End::Deferred)),
            ("a hook that wants more: ask again", now(Happened::SentBack), Next::Ask),
            ("but not beyond the limit", spent(Happened::SentBack), Next::End(End::MaxTurns)),
            ("nor after an abort", aborted(Happened::SentBack), Next::End(End::AbortedStreaming)),
        ];
        for (name, situation, expected) in rows {
            assert_eq!(next(&situation), expected, "{name}");
        }
    }
}
