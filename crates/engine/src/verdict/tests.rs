use super::*;

fn replied(stop: StopReason, calls: usize) -> Happened {
    Happened::Replied { stop: Some(stop), calls }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, row by row")]
fn the_decision_table() {
    let now = |event| Situation {
        event,
        aborted: false,
        model_calls: 1,
        max_turns: None,
        recoveries: 0,
        answer: Answer::Free,
        broke: false,
        understudy: false,
        room: true,
    };
    let full = |event| Situation { room: false, ..now(event) };
    let broke = |event| Situation { broke: true, ..now(event) };
    let due = |attempts, demands| Answer::Due { attempts, demands, limit: 2 };
    let owing = |answer, event| Situation { answer, ..now(event) };
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
        ("the output limit: go on", now(replied(StopReason::MaxTokens, 0)), Next::Nudge(Nudge::OutputLimit)),
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
        ("a cut connection: go on", now(Happened::Replied { stop: None, calls: 0 }), Next::Nudge(Nudge::Cut)),
        ("cut too often: end", tired(Happened::Replied { stop: None, calls: 0 }), Next::End(End::ApiFailure)),
        (
            "paused too often: end",
            Situation { recoveries: MAX_PAUSES, ..now(replied(StopReason::PauseTurn, 0)) },
            Next::End(End::Stalled),
        ),
        ("a paused turn: ask again", now(replied(StopReason::PauseTurn, 0)), Next::Nudge(Nudge::Paused)),
        ("a refusal: end", now(replied(StopReason::Refusal, 0)), Next::End(End::Refused)),
        (
            "the reply that uses the budget up: its calls are not made",
            broke(replied(StopReason::ToolUse, 1)),
            Next::End(End::Broke),
        ),
        (
            "an answer that uses the budget up is over the budget",
            broke(replied(StopReason::EndTurn, 0)),
            Next::End(End::Broke),
        ),
        ("a call that could not be paid", broke(Happened::Failed), Next::End(End::Broke)),
        (
            "a subagent used the budget up",
            broke(Happened::Acted { halt: Some(Halt::Refused) }),
            Next::End(End::Broke),
        ),
        (
            "an abort counts more than the budget",
            Situation { aborted: true, ..broke(acted.clone()) },
            Next::End(End::AbortedTools),
        ),
        (
            "a model that is not to be had: another one",
            Situation { understudy: true, ..now(Happened::Unavailable) },
            Next::StepIn,
        ),
        ("and if there is none: end", now(Happened::Unavailable), Next::End(End::ApiFailure)),
        ("a conversation that is too long: make room", now(Happened::TooLong), Next::MakeRoom),
        ("and if that is no use: end", full(Happened::TooLong), Next::End(End::TooLong)),
        (
            "a reply that hit the end of the window: make room",
            now(replied(StopReason::ModelContextWindowExceeded, 0)),
            Next::MakeRoom,
        ),
        (
            "and if that is no use: end",
            full(replied(StopReason::ModelContextWindowExceeded, 0)),
            Next::End(End::TooLong),
        ),
        (
            "calls of a reply that hit the end of the window are made",
            full(replied(StopReason::ModelContextWindowExceeded, 1)),
            Next::Act,
        ),
        ("room was made: ask again", full(Happened::RoomMade { made: true }), Next::Ask),
        ("room was not made: end", now(Happened::RoomMade { made: false }), Next::End(End::TooLong)),
        (
            "aborted while room was made",
            aborted(Happened::RoomMade { made: false }),
            Next::End(End::AbortedStreaming),
        ),
        ("a failed call: end", now(Happened::Failed), Next::End(End::ApiFailure)),
        (
            "aborted while the model spoke",
            aborted(replied(StopReason::ToolUse, 1)),
            Next::End(End::AbortedStreaming),
        ),
        ("aborted while the call failed", aborted(Happened::Failed), Next::End(End::AbortedStreaming)),
        ("aborted while tools ran", aborted(acted.clone()), Next::End(End::AbortedTools)),
        ("an answer in the right shape: done", owing(Answer::Given, acted.clone()), Next::End(End::Done)),
        ("a bad answer: ask again", owing(due(1, 0), acted.clone()), Next::Ask),
        ("too many bad answers: end", owing(due(2, 0), acted.clone()), Next::End(End::NoAnswer)),
        (
            "words where an answer is owed: demand it",
            owing(due(0, 1), replied(StopReason::EndTurn, 0)),
            Next::Nudge(Nudge::Answer),
        ),
        (
            "nothing but words: end",
            owing(due(0, 2), replied(StopReason::EndTurn, 0)),
            Next::End(End::NoAnswer),
        ),
        (
            "a refusal is an end although an answer is owed",
            owing(due(0, 0), replied(StopReason::Refusal, 0)),
            Next::End(End::Refused),
        ),
        (
            "aborted with an answer owed",
            Situation { answer: due(1, 1), ..aborted(acted) },
            Next::End(End::AbortedTools),
        ),
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
