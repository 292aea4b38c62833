use super::*;

fn replied(stop: StopReason, calls: usize) -> TurnEvent {
    TurnEvent::Replied { stop_reason: Some(stop), tool_calls: calls }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, row by row")]
fn next_step_decisions() {
    let now = |event| TurnState {
        event,
        aborted: false,
        model_calls: 1,
        max_turns: None,
        continuations: 0,
        structured_output: OutputRequirement::NotRequired,
        over_budget: false,
        has_fallback: false,
        can_compact: true,
    };
    let full = |event| TurnState { can_compact: false, ..now(event) };
    let broke = |event| TurnState { over_budget: true, ..now(event) };
    let due = |attempts, demands| OutputRequirement::Pending { attempts, reminders: demands, limit: 2 };
    let owing = |structured_output, event| TurnState { structured_output, ..now(event) };
    let aborted = |event| TurnState { aborted: true, ..now(event) };
    let spent = |event| TurnState { model_calls: 2, max_turns: Some(2), ..now(event) };
    let tired = |event| TurnState { continuations: MAX_CONTINUATIONS, ..now(event) };
    let acted = TurnEvent::ToolsRan { halt: None };
    let halted = |halt| now(TurnEvent::ToolsRan { halt: Some(halt) });
    let rows = [
        ("a reply with tool calls: make them", now(replied(StopReason::ToolUse, 2)), NextStep::RunTools),
        (
            "calls are made whatever the stop reason says",
            now(replied(StopReason::EndTurn, 1)),
            NextStep::RunTools,
        ),
        (
            "calls of a reply cut by the output limit are made",
            now(replied(StopReason::MaxTokens, 1)),
            NextStep::RunTools,
        ),
        (
            "calls of a reply cut by the connection are made",
            now(TurnEvent::Replied { stop_reason: None, tool_calls: 1 }),
            NextStep::RunTools,
        ),
        ("no tool calls: done", now(replied(StopReason::EndTurn, 0)), NextStep::End(TurnEnd::Done)),
        ("a stop sequence: done", now(replied(StopReason::StopSequence, 0)), NextStep::End(TurnEnd::Done)),
        (
            "an unknown stop reason: done",
            now(replied(StopReason::Other("new".into()), 0)),
            NextStep::End(TurnEnd::Done),
        ),
        ("calls made: ask again", now(acted.clone()), NextStep::CallModel),
        ("calls made and the limit reached: end", spent(acted.clone()), NextStep::End(TurnEnd::MaxTurns)),
        (
            "the limit does not take back a finished answer",
            spent(replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::Done),
        ),
        ("the last reply's calls are still made", spent(replied(StopReason::ToolUse, 1)), NextStep::RunTools),
        (
            "the output limit: go on",
            now(replied(StopReason::MaxTokens, 0)),
            NextStep::Continue(Continuation::OutputLimit),
        ),
        (
            "the output limit too often: end",
            tired(replied(StopReason::MaxTokens, 0)),
            NextStep::End(TurnEnd::OutputLimit),
        ),
        (
            "a continuation counts as a turn",
            spent(replied(StopReason::MaxTokens, 0)),
            NextStep::End(TurnEnd::MaxTurns),
        ),
        (
            "a cut connection: go on",
            now(TurnEvent::Replied { stop_reason: None, tool_calls: 0 }),
            NextStep::Continue(Continuation::ConnectionCut),
        ),
        (
            "cut too often: end",
            tired(TurnEvent::Replied { stop_reason: None, tool_calls: 0 }),
            NextStep::End(TurnEnd::ApiError),
        ),
        (
            "paused too often: end",
            TurnState { continuations: MAX_PAUSES, ..now(replied(StopReason::PauseTurn, 0)) },
            NextStep::End(TurnEnd::Stalled),
        ),
        (
            "a paused turn: ask again",
            now(replied(StopReason::PauseTurn, 0)),
            NextStep::Continue(Continuation::Paused),
        ),
        ("a refusal: end", now(replied(StopReason::Refusal, 0)), NextStep::End(TurnEnd::Refused)),
        (
            "the reply that uses the budget up: its calls are not made",
            broke(replied(StopReason::ToolUse, 1)),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "an answer that uses the budget up is over the budget",
            broke(replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        ("a call that could not be paid", broke(TurnEvent::Failed), NextStep::End(TurnEnd::BudgetExceeded)),
        (
            "a subagent used the budget up",
            broke(TurnEvent::ToolsRan { halt: Some(EndTurn::Denied) }),
            NextStep::End(TurnEnd::BudgetExceeded),
        ),
        (
            "an abort counts more than the budget",
            TurnState { aborted: true, ..broke(acted.clone()) },
            NextStep::End(TurnEnd::AbortedTools),
        ),
        (
            "a model that is not to be had: another one",
            TurnState { has_fallback: true, ..now(TurnEvent::Unavailable) },
            NextStep::UseFallback,
        ),
        ("and if there is none: end", now(TurnEvent::Unavailable), NextStep::End(TurnEnd::ApiError)),
        ("a conversation that is too long: make room", now(TurnEvent::ContextTooLong), NextStep::Compact),
        (
            "and if that is no use: end",
            full(TurnEvent::ContextTooLong),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "a reply that hit the end of the window: make room",
            now(replied(StopReason::ModelContextWindowExceeded, 0)),
            NextStep::Compact,
        ),
        (
            "and if that is no use: end",
            full(replied(StopReason::ModelContextWindowExceeded, 0)),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "calls of a reply that hit the end of the window are made",
            full(replied(StopReason::ModelContextWindowExceeded, 1)),
            NextStep::RunTools,
        ),
        ("room was made: ask again", full(TurnEvent::Compacted { succeeded: true }), NextStep::CallModel),
        (
            "room was not made: end",
            now(TurnEvent::Compacted { succeeded: false }),
            NextStep::End(TurnEnd::ContextTooLong),
        ),
        (
            "aborted while room was made",
            aborted(TurnEvent::Compacted { succeeded: false }),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        ("a failed call: end", now(TurnEvent::Failed), NextStep::End(TurnEnd::ApiError)),
        (
            "aborted while the model spoke",
            aborted(replied(StopReason::ToolUse, 1)),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        (
            "aborted while the call failed",
            aborted(TurnEvent::Failed),
            NextStep::End(TurnEnd::AbortedStreaming),
        ),
        ("aborted while tools ran", aborted(acted.clone()), NextStep::End(TurnEnd::AbortedTools)),
        (
            "an answer in the right shape: done",
            owing(OutputRequirement::Satisfied, acted.clone()),
            NextStep::End(TurnEnd::Done),
        ),
        ("a bad answer: ask again", owing(due(1, 0), acted.clone()), NextStep::CallModel),
        (
            "too many bad answers: end",
            owing(due(2, 0), acted.clone()),
            NextStep::End(TurnEnd::NoStructuredOutput),
        ),
        (
            "words where an answer is owed: demand it",
            owing(due(0, 1), replied(StopReason::EndTurn, 0)),
            NextStep::Continue(Continuation::MissingOutput),
        ),
        (
            "nothing but words: end",
            owing(due(0, 2), replied(StopReason::EndTurn, 0)),
            NextStep::End(TurnEnd::NoStructuredOutput),
        ),
        (
            "a refusal is an end although an answer is owed",
            owing(due(0, 0), replied(StopReason::Refusal, 0)),
            NextStep::End(TurnEnd::Refused),
        ),
        (
            "aborted with an answer owed",
            TurnState { structured_output: due(1, 1), ..aborted(acted) },
            NextStep::End(TurnEnd::AbortedTools),
        ),
        ("a denial that stops the turn", halted(EndTurn::Denied), NextStep::End(TurnEnd::AbortedTools)),
        ("a hook that stops the turn", halted(EndTurn::Hook), NextStep::End(TurnEnd::HookStopped)),
        ("a call that was put off", halted(EndTurn::Deferred), NextStep::End(TurnEnd::Deferred)),
        ("a hook that wants more: ask again", now(TurnEvent::StopBlocked), NextStep::CallModel),
        ("but not beyond the limit", spent(TurnEvent::StopBlocked), NextStep::End(TurnEnd::MaxTurns)),
        ("nor after an abort", aborted(TurnEvent::StopBlocked), NextStep::End(TurnEnd::AbortedStreaming)),
    ];
    for (name, situation, expected) in rows {
        assert_eq!(next_step(&situation), expected, "{name}");
    }
}
