//! Decision table of the next step.

use super::*;

fn replied(stop: StopReason, calls: usize) -> TurnEvent {
    TurnEvent::Replied { stop_reason: Some(stop), tool_calls: calls }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, row by row")]
fn next_step_decisions() {
    let state = |event| TurnState {
        event,
        aborted: false,
        model_calls: 1,
        max_turns: None,
        has_conflict: false,
        continuations: 0,
        structured_output: OutputRequirement::NotRequired,
        over_budget: false,
        has_fallback: false,
        can_compact: true,
    };
    let uncompactable = |event| TurnState { can_compact: false, ..state(event) };
    let conflicting = |event| TurnState { has_conflict: true, over_budget: true, ..state(event) };
    let over_budget = |event| TurnState { over_budget: true, ..state(event) };
    let pending = |attempts, reminders| OutputRequirement::Pending { attempts, reminders, limit: 2 };
    let requiring = |structured_output, event| TurnState { structured_output, ..state(event) };
    let aborted = |event| TurnState { aborted: true, ..state(event) };
    let at_turn_limit = |event| TurnState { model_calls: 2, max_turns: Some(2), ..state(event) };
    let at_continuation_limit = |event| TurnState { continuations: MAX_CONTINUATIONS, ..state(event) };
    let tools_ran = TurnEvent::ToolsRan { end_turn: None };
    let ended = |end_turn| state(TurnEvent::ToolsRan { end_turn: Some(end_turn) });
    let rows = [
        ("tool calls are run", state(replied(StopReason::ToolUse, 2)), NextStep::RunTools),
        (
            "tool calls are run whatever the stop reason",
            state(replied(StopReason::EndTurn, 1)),
            NextStep::RunTools,
        ),
        (
            "tool calls before the output limit are run",
            state(replied(StopReason::MaxTokens, 1)),
            NextStep::RunTools,
        ),
        (
            "tool calls before a lost connection are run",
            state(TurnEvent::Replied { stop_reason: None, tool_calls: 1 }),
            NextStep::RunTools,
        ),
        (
            "a reply without tool calls ends the turn",
            state(replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::Done),
        ),
        (
            "a stop sequence ends the turn",
            state(replied(StopReason::StopSequence, 0)),
            NextStep::End(TurnEnd::Done),
        ),
        (
            "an unknown stop reason ends the turn",
            state(replied(StopReason::Other("new".into()), 0)),
            NextStep::End(TurnEnd::Done),
        ),
        (
            "a session continued elsewhere runs no more tools",
            conflicting(replied(StopReason::ToolUse, 1)),
            NextStep::End(TurnEnd::Conflict),
        ),
        (
            "a session continued elsewhere asks no model",
            conflicting(tools_ran.clone()),
            NextStep::End(TurnEnd::Conflict),
        ),
        ("the model is called after tools ran", state(tools_ran.clone()), NextStep::CallModel),
        (
            "the turn limit ends the turn after tools ran",
            at_turn_limit(tools_ran.clone()),
            NextStep::End(TurnEnd::MaxTurns),
        ),
        (
            "the turn limit does not affect a finished answer",
            at_turn_limit(replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::Done),
        ),
        (
            "tool calls of the last reply are run",
            at_turn_limit(replied(StopReason::ToolUse, 1)),
            NextStep::RunTools,
        ),
        (
            "a reply at the output limit is continued",
            state(replied(StopReason::MaxTokens, 0)),
            NextStep::Continue(Continuation::OutputLimit),
        ),
        (
            "repeated output limit ends the turn",
            at_continuation_limit(replied(StopReason::MaxTokens, 0)),
            NextStep::End(TurnEnd::OutputLimit),
        ),
        (
            "a continuation counts as a turn",
            at_turn_limit(replied(StopReason::MaxTokens, 0)),
            NextStep::End(TurnEnd::MaxTurns),
        ),
        (
            "a reply with a lost connection is continued",
            state(TurnEvent::Replied { stop_reason: None, tool_calls: 0 }),
            NextStep::Continue(Continuation::ConnectionCut),
        ),
        (
            "repeated lost connection ends the turn",
            at_continuation_limit(TurnEvent::Replied { stop_reason: None, tool_calls: 0 }),
            NextStep::End(TurnEnd::ApiError),
        ),
        (
            "repeated pauses end the turn",
            TurnState { continuations: MAX_PAUSES, ..state(replied(StopReason::PauseTurn, 0)) },
            NextStep::End(TurnEnd::Stalled),
        ),
        (
            "a paused reply is continued",
            state(replied(StopReason::PauseTurn, 0)),
            NextStep::Continue(Continuation::Paused),
        ),
        ("the model answers a prompt that came in", state(TurnEvent::PromptAdded), NextStep::CallModel),
        (
            "an interrupt counts before a prompt that came in",
            aborted(TurnEvent::PromptAdded),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        ("a refusal ends the turn", state(replied(StopReason::Refusal, 0)), NextStep::End(TurnEnd::Refused)),
        (
            "tool calls over the budget are not run",
            over_budget(replied(StopReason::ToolUse, 1)),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "an answer over the budget ends the turn",
            over_budget(replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "a failed call over the budget",
            over_budget(TurnEvent::Failed),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "a subagent exceeded the budget",
            over_budget(TurnEvent::ToolsRan { end_turn: Some(EndTurn::Denied) }),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "an abort precedes the budget",
            TurnState { aborted: true, ..over_budget(tools_ran.clone()) },
            NextStep::End(TurnEnd::AbortedTools),
        ),
        (
            "an unavailable model is replaced",
            TurnState { has_fallback: true, ..state(TurnEvent::Unavailable) },
            NextStep::UseFallback,
        ),
        (
            "an unavailable model without fallback ends the turn",
            state(TurnEvent::Unavailable),
            NextStep::End(TurnEnd::ApiError),
        ),
        ("a too long conversation is compacted", state(TurnEvent::ContextTooLong), NextStep::Compact),
        (
            "a too long conversation ends the turn without compaction",
            uncompactable(TurnEvent::ContextTooLong),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "a reply at the context limit is followed by compaction",
            state(replied(StopReason::ModelContextWindowExceeded, 0)),
            NextStep::Compact,
        ),
        (
            "a reply at the context limit ends the turn without compaction",
            uncompactable(replied(StopReason::ModelContextWindowExceeded, 0)),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "tool calls of a reply at the context limit are run",
            uncompactable(replied(StopReason::ModelContextWindowExceeded, 1)),
            NextStep::RunTools,
        ),
        (
            "the model is called after compaction",
            uncompactable(TurnEvent::Compacted { succeeded: true }),
            NextStep::CallModel,
        ),
        (
            "failed compaction ends the turn",
            state(TurnEvent::Compacted { succeeded: false }),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "aborted during compaction",
            aborted(TurnEvent::Compacted { succeeded: false }),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        ("a failed call ends the turn", state(TurnEvent::Failed), NextStep::End(TurnEnd::ApiError)),
        (
            "aborted while the model replied",
            aborted(replied(StopReason::ToolUse, 1)),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        (
            "aborted while the call failed",
            aborted(TurnEvent::Failed),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        ("aborted while tools ran", aborted(tools_ran.clone()), NextStep::End(TurnEnd::AbortedTools)),
        (
            "valid structured output ends the turn",
            requiring(OutputRequirement::Satisfied, tools_ran.clone()),
            NextStep::End(TurnEnd::Done),
        ),
        (
            "the model is called after invalid output",
            requiring(pending(1, 0), tools_ran.clone()),
            NextStep::CallModel,
        ),
        (
            "repeated invalid output ends the turn",
            requiring(pending(2, 0), tools_ran.clone()),
            NextStep::End(TurnEnd::NoStructuredOutput),
        ),
        (
            "missing output is requested",
            requiring(pending(0, 1), replied(StopReason::EndTurn, 0)),
            NextStep::Continue(Continuation::MissingOutput),
        ),
        (
            "repeatedly missing output ends the turn",
            requiring(pending(0, 2), replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::NoStructuredOutput),
        ),
        (
            "a refusal ends the turn without output",
            requiring(pending(0, 0), replied(StopReason::Refusal, 0)),
            NextStep::End(TurnEnd::Refused),
        ),
        (
            "aborted with pending output",
            TurnState { structured_output: pending(1, 1), ..aborted(tools_ran) },
            NextStep::End(TurnEnd::AbortedTools),
        ),
        ("a denial that stops the turn", ended(EndTurn::Denied), NextStep::End(TurnEnd::AbortedTools)),
        ("a hook that stops the turn", ended(EndTurn::Hook), NextStep::End(TurnEnd::HookStopped)),
        ("a deferred call", ended(EndTurn::HookDeferred), NextStep::End(TurnEnd::HookDeferred)),
        ("the model is called after a blocked stop", state(TurnEvent::StopBlocked), NextStep::CallModel),
        (
            "the turn limit precedes a blocked stop",
            at_turn_limit(TurnEvent::StopBlocked),
            NextStep::End(TurnEnd::MaxTurns),
        ),
        (
            "an abort precedes a blocked stop",
            aborted(TurnEvent::StopBlocked),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
    ];
    for (name, turn_state, expected) in rows {
        assert_eq!(next_step(&turn_state), expected, "{name}");
    }
}

#[test]
fn prompt_keeps_a_turn_from_ending_within_limits() {
    let state = TurnState {
        event: replied(StopReason::EndTurn, 0),
        aborted: false,
        model_calls: 2,
        max_turns: None,
        continuations: 0,
        structured_output: OutputRequirement::NotRequired,
        has_conflict: false,
        over_budget: false,
        has_fallback: false,
        can_compact: true,
    };
    let limited = |limit| TurnState { max_turns: Some(limit), ..state.clone() };
    let output = TurnState { structured_output: OutputRequirement::Satisfied, ..state.clone() };
    for (name, state, expected) in [
        ("no limit", state.clone(), true),
        ("a call is left", limited(3), true),
        ("no call is left", limited(2), false),
        ("structured output was given", output, false),
    ] {
        assert_eq!(state.can_go_on_with_prompt(), expected, "{name}");
    }
}
