//! Loading of intact and damaged transcripts.

use std::io::Cursor;

use proptest::prelude::*;
use serde_json::{Value, json};
use whimbrel_models::history::ApiMessage;

use super::open_calls::OpenCallState;
use super::*;

/// An entry with a message.
fn line(kind: &str, uuid: &str, parent: Option<&str>, content: &Value) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "cwd": "/w", "type": kind, "uuid": uuid,
        "message": {"role": kind, "id": format!("msg_{uuid}"), "content": content}, "timestamp": "t"})
}

fn user(uuid: &str, parent: Option<&str>, text: &str) -> Value {
    line("user", uuid, parent, &json!(text))
}

fn assistant(uuid: &str, parent: &str, text: &str) -> Value {
    line("assistant", uuid, Some(parent), &json!([{"type": "text", "text": text}]))
}

fn call(uuid: &str, parent: &str, id: &str) -> Value {
    line(
        "assistant",
        uuid,
        Some(parent),
        &json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]),
    )
}

fn result(uuid: &str, parent: &str, id: &str, text: &str) -> Value {
    line("user", uuid, Some(parent), &json!([{"type": "tool_result", "tool_use_id": id, "content": text}]))
}

fn with_fields(mut line: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    line.as_object_mut().unwrap().extend(more);
    line
}

/// Makes an entry part of one shared reply.
fn with_reply_id(mut line: Value) -> Value {
    line["message"]["id"] = "m".into();
    line
}

fn bytes(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn load_all(bytes: &[u8]) -> LoadedConversation {
    load(Cursor::new(bytes), &LoadRange::default()).unwrap()
}

/// Renders a history compactly: `u:` and `a:`, each with its content.
fn render_history(loaded: &LoadedConversation) -> String {
    let block = |block: &Block| match block {
        Block::Text { text, .. } => text.clone(),
        Block::ToolUse { id, .. } => format!("call {id}"),
        Block::ToolResult { tool_use_id, content, .. } => {
            let text = serde_json::to_value(content).unwrap().as_str().unwrap_or_default().to_owned();
            format!("{tool_use_id} gives {}", text.split(':').next().unwrap_or_default())
        }
        other => format!("{other:?}"),
    };
    let message = |message: &ApiMessage| {
        let role = if message.role == Role::User { "u" } else { "a" };
        format!("{role}: {}", message.content.iter().map(block).collect::<Vec<_>>().join(", "))
    };
    loaded.history.messages().iter().map(message).collect::<Vec<_>>().join(" | ")
}

/// Asserts what providers require: roles alternate starting with the user, and calls and results pair up.
fn assert_well_formed(loaded: &LoadedConversation) {
    let messages = loaded.history.messages();
    let mut open: Vec<String> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let expected = if number % 2 == 0 { Role::User } else { Role::Assistant };
        assert_eq!(message.role, expected, "{}", render_history(loaded));
        assert!(!message.content.is_empty());
        let results = message.content.iter().filter_map(|block| match block {
            Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), open, "{}", render_history(loaded));
        let calls = message.content.iter().filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            _ => None,
        });
        open = calls.collect();
    }
    assert_eq!(open, Vec::<String>::new(), "{}", render_history(loaded));
}

fn assert_rows(rows: Vec<(&str, Vec<Value>, &str)>) {
    for (name, lines, expected) in rows {
        let loaded = load_all(&bytes(&lines));
        assert_eq!(render_history(&loaded), expected, "{name}");
        assert_well_formed(&loaded);
    }
}

#[test]
fn lone_surrogates_are_replaced_and_unreadable_blocks_counted() {
    let with_half_surrogate = |line: &Value| Value::String(line.to_string().replace("CUT", "\\ud83d"));
    let input = line(
        "assistant",
        "a2",
        Some("r1"),
        &json!([{"type": "tool_use", "id": "t2", "name": "CUT", "input": {"a": "CUT"}}]),
    );
    let lines = [
        user("u1", None, "hi CUT"),
        call("a1", "u1", "t1"),
        result("r1", "a1", "t1", "out CUT"),
        input,
        result("r2", "a2", "t2", "b"),
        assistant("a3", "r2", "end CUT"),
    ];
    let text: String = lines
        .iter()
        .map(|line| with_half_surrogate(line).as_str().unwrap_or_default().to_owned() + "\n")
        .collect();
    let loaded = load_all(text.as_bytes());
    let expected = "u: hi \u{fffd} | a: call t1 | u: t1 gives out \u{fffd} | a: call t2 | u: t2 gives b | a: end \u{fffd}";
    assert_eq!((render_history(&loaded).as_str(), loaded.repairs), (expected, RepairCounts::default()));
    let garbled =
        line("user", "u1", None, &json!([{"type": "text", "text": 5}, {"type": "text", "text": "rest"}]));
    let loaded = load_all(&bytes(&[garbled, assistant("a1", "u1", "hello")]));
    assert_eq!((render_history(&loaded).as_str(), loaded.repairs.unreadable), ("u: rest | a: hello", 1));
}

#[test]
fn run_of_zero_bytes_is_one_unreadable_line() {
    let zeros = "\0".repeat(3 * READ_BUFFER_SIZE);
    let (hi, hello) = (user("u1", None, "hi"), assistant("a1", "u1", "hello"));
    for text in [format!("{hi}\n{zeros}\n{hello}\n"), format!("{hi}\n{zeros}{hello}\n")] {
        let loaded = load_all(text.as_bytes());
        assert_eq!((render_history(&loaded).as_str(), loaded.repairs.unreadable), ("u: hi | a: hello", 1));
    }
    let longest = |text: &str| {
        let mut lines = crate::line_reader::LineReader::new(text.as_bytes());
        let mut longest = 0;
        while let Some(crate::line_reader::ScannedLine::Complete(_, line)) = lines.read_line().unwrap() {
            longest = longest.max(line.len());
        }
        longest
    };
    assert_eq!(longest(&format!("{zeros}\n{zeros}ab\n")), 3);
}

#[test]
fn conversation_is_loaded_from_branches_boundaries_and_gaps() {
    let side = with_fields(assistant("s1", "a1", "aside"), &json!({"isSidechain": true}));
    let team = with_fields(user("s2", Some("a1"), "mate"), &json!({"teamName": "x"}));
    let meta = with_fields(user("m1", Some("a1"), "note"), &json!({"isMeta": true}));
    let summary = with_fields(user("s", Some("b"), "summary"), &json!({"isCompactSummary": true}));
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "logicalParentUuid": "a1"});
    let hello = [user("u1", None, "hi"), assistant("a1", "u1", "hello")];
    let linked = json!({"type": "progress", "uuid": "p", "parentUuid": "a1"});
    let after = |more: &[Value]| [&hello[..], more].concat();
    let rows: Vec<(&str, Vec<Value>, &str)> = vec![
        ("nothing", vec![], ""),
        ("a turn", hello.to_vec(), "u: hi | a: hello"),
        ("a subagent's line is never the last", after(&[side]), "u: hi | a: hello"),
        ("nor a teammate's", after(&[team]), "u: hi | a: hello"),
        ("nor a text for the model only", after(std::slice::from_ref(&meta)), "u: hi | a: hello"),
        (
            "which counts once something follows",
            after(&[meta, user("u2", Some("m1"), "go")]),
            "u: hi | a: hello | u: note, go",
        ),
        ("links between", after(&[linked, user("u2", Some("p"), "go")]), "u: hi | a: hello | u: go"),
        ("a summary", after(&[boundary.clone(), summary]), "u: summary"),
        ("a boundary that no summary follows", after(std::slice::from_ref(&boundary)), "u: hi | a: hello"),
        ("and is continued", after(&[boundary, user("u2", Some("b"), "go")]), "u: hi | a: hello | u: go"),
        ("a parent that is not there", after(&[user("u2", Some("gone"), "go")]), "u: hi | a: hello | u: go"),
        (
            "a branch that was left",
            after(&[user("u2", Some("a1"), "old"), user("u3", Some("a1"), "new")]),
            "u: hi | a: hello | u: new",
        ),
        (
            "the same line twice",
            after(&[hello[0].clone(), user("u2", Some("a1"), "go")]),
            "u: hi | a: hello | u: go",
        ),
        ("the same line twice at the end", after(&[hello[0].clone()]), "u: hi | a: hello"),
        (
            "two prompts of one name",
            after(&[user("u1", Some("a1"), "again"), assistant("a2", "u1", "yes")]),
            "u: hi | a: hello | u: again | a: yes",
        ),
        ("a circle", vec![user("u1", Some("a1"), "hi"), assistant("a1", "u1", "hello")], "u: hi | a: hello"),
        ("a line that hangs on itself", vec![user("u1", Some("u1"), "hi")], "u: hi"),
        (
            "lines in the wrong order",
            vec![assistant("a1", "u1", "hello"), user("u1", None, "hi")],
            "u: hi | a: hello",
        ),
        (
            "the model first",
            vec![assistant("a1", "gone", "hello")],
            "u: (The beginning of the conversation is lost.) | a: hello",
        ),
    ];
    assert_rows(rows);
}

#[test]
fn calls_and_results_pair_up() {
    let hello = [user("u1", None, "hi"), assistant("a1", "u1", "hello")];
    let after = |more: &[Value]| [&hello[..], more].concat();
    let start = json!({"type": "tool-start", "toolUseID": "t1"});
    let sent = json!({"type": "tool-start", "toolUseID": "t1", "agentId": "a7"});
    let known = with_fields(call("a2", "u2", "t1"), &json!({"startsRecorded": true}));
    let rows: Vec<(&str, Vec<Value>, &str)> = vec![
        (
            "a call and its result",
            after(&[user("u2", Some("a1"), "go"), call("a2", "u2", "t1"), result("r", "a2", "t1", "ok")]),
            "u: hi | a: hello | u: go | a: call t1 | u: t1 gives ok",
        ),
        (
            "a call without",
            after(&[user("u2", Some("a1"), "go"), call("a2", "u2", "t1")]),
            "u: hi | a: hello | u: go | a: call t1 | u: t1 gives Outcome unknown",
        ),
        (
            "one that had begun",
            after(&[user("u2", Some("a1"), "go"), known.clone(), start.clone()]),
            "u: hi | a: hello | u: go | a: call t1 | u: t1 gives Outcome unknown",
        ),
        (
            "one that an agent was at",
            after(&[user("u2", Some("a1"), "go"), known.clone(), start.clone(), sent.clone()]),
            "u: hi | a: hello | u: go | a: call t1 | u: t1 gives Outcome unknown",
        ),
        (
            "one that had not",
            after(&[user("u2", Some("a1"), "go"), known]),
            "u: hi | a: hello | u: go | a: call t1 | u: t1 gives No result",
        ),
        (
            "a result without a call",
            after(&[result("r", "a1", "t9", "ok"), user("u2", Some("r"), "go")]),
            "u: hi | a: hello | u: go",
        ),
        (
            "a later prompt answers no call",
            after(&[call("a2", "a1", "t1"), user("u2", Some("a2"), "go")]),
            "u: hi | a: hello, call t1 | u: t1 gives Outcome unknown, go",
        ),
        ("an empty prompt", vec![user("u1", None, " ")], "u: (The message was empty.)"),
        (
            "an error that only the host saw",
            after(&[with_fields(
                assistant("e", "a1", "API Error"),
                &json!({"message": {"model": "<synthetic>", "content": [{"type": "text", "text": "no"}]}}),
            )]),
            "u: hi | a: hello",
        ),
        (
            "a truncated image",
            vec![line(
                "user",
                "u1",
                None,
                &json!([{"type": "text", "text": "see"}, {"type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBO [... 4 bytes left out]"}}]),
            )],
            "u: see, (Unreadable content was removed here.)",
        ),
        (
            "blocks of no sense",
            vec![line("user", "u1", None, &json!([{"type": "text"}, 5, {"type": "text", "text": "hi"}]))],
            "u: hi",
        ),
    ];
    assert_rows(rows);
    let thinks = |signature: &str| {
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": signature});
        let content = json!([thought, {"type": "text", "text": "so"}]);
        load_all(&bytes(&[user("u1", None, "go"), line("assistant", "a1", Some("u1"), &content)]))
            .has_unsigned_thinking
    };
    assert!(thinks("") && !thinks("s"));
    let agents = load_all(&bytes(&[user("u1", None, "go"), call("a1", "u1", "t1"), sent]));
    let text = format!("{:?}", agents.history.messages());
    assert!(text.contains("the agent a7 was working on this") && text.contains("`resume`"), "{text}");
}

#[test]
fn results_and_calls_off_the_branch_are_found() {
    let same = with_reply_id;
    let calls = [user("u", None, "go"), same(call("a1", "u", "t1")), same(call("a2", "a1", "t2"))];
    let expected = "u: go | a: call t1, call t2 | u: t1 gives one, t2 gives two";
    let rows = [
        (
            "each result on its call",
            vec![result("r1", "a1", "t1", "one"), result("r2", "a2", "t2", "two")],
            expected.to_owned(),
        ),
        (
            "the other way round",
            vec![result("r2", "a2", "t2", "two"), result("r1", "a1", "t1", "one")],
            expected.to_owned(),
        ),
        (
            "behind links, and then gone on from",
            vec![
                json!({"type": "progress", "uuid": "p", "parentUuid": "a1"}),
                result("r1", "p", "t1", "one"),
                result("r2", "a2", "t2", "two"),
                assistant("a3", "r2", "done"),
            ],
            format!("{expected} | a: done"),
        ),
        (
            "named by their source",
            vec![
                with_fields(result("r1", "a2", "t1", "one"), &json!({"sourceToolAssistantUUID": "a1"})),
                result("r2", "a2", "t2", "two"),
            ],
            expected.to_owned(),
        ),
        (
            "a reply that goes on after a result",
            vec![
                result("r1", "a2", "t1", "one"),
                same(assistant("a3", "r1", "and")),
                result("r2", "a3", "t2", "two"),
            ],
            "u: go | a: call t1, call t2, and | u: t1 gives one, t2 gives two".to_owned(),
        ),
    ];
    for (name, more, expected) in rows {
        let loaded = load_all(&bytes(&[&calls[..], &more].concat()));
        assert_eq!(render_history(&loaded), expected, "{name}");
        assert_well_formed(&loaded);
    }
}

#[test]
fn recorded_state_and_usage_are_loaded() {
    let usage = json!({"message": {"role": "assistant", "model": "m-1", "content": [], "usage": {"input_tokens": 7, "output_tokens": 3}}});
    let lines = [
        json!({"type": "brief", "beforeUuid": "u1", "text": "You are here."}),
        json!({"type": "brief", "beforeUuid": "u1", "text": "Plan.", "permissionMode": "plan"}),
        json!({"type": "brief", "beforeUuid": "u2", "text": "Unrelated."}),
        with_fields(user("u1", None, "hi"), &json!({"permissionMode": "plan"})),
        with_fields(assistant("a1", "u1", "x"), &usage),
        json!({"type": "ai-title", "aiTitle": "made"}),
        json!({"type": "custom-title", "customTitle": "mine"}),
        json!({"type": "ai-title", "aiTitle": "made again"}),
        with_fields(user("u2", Some("a1"), "go"), &json!({"permissionMode": "acceptEdits", "cwd": "/v"})),
    ];
    let loaded = load_all(&bytes(&lines));
    let recorded = RecordedState {
        cwd: Some("/v".into()),
        mode: Some("acceptEdits".into()),
        model: Some("m-1".into()),
        title: Some("mine".into()),
    };
    assert_eq!((loaded.recorded.clone(), loaded.turns, loaded.context_tokens), (recorded, 2, 10));
    assert_eq!(loaded.leaf.as_deref(), Some("u2"));
    assert!(loaded.hidden_texts.contains(&IdKey::new("You are here.")));
    assert_eq!(loaded.announced_mode.as_deref(), Some("plan"));
    assert_eq!(render_history(&loaded), "u: You are here., Plan., hi, Unrelated., go");
}

#[test]
fn load_range_ends_at_message_or_drops_turn() {
    let lines = bytes(&[
        user("u1", None, "one"),
        assistant("a1", "u1", "1"),
        user("u2", Some("a1"), "two"),
        call("a2", "u2", "t"),
        result("r2", "a2", "t", "ok"),
        assistant("a3", "r2", "2"),
    ]);
    let until = |at: Option<&str>, dropped: Option<&str>| LoadRange {
        last_message: at.map(Into::into),
        dropped_prompt: dropped.map(Into::into),
    };
    let rows = [
        (until(None, None), Ok("u: one | a: 1 | u: two | a: call t | u: t gives ok | a: 2")),
        (until(Some("a1"), None), Ok("u: one | a: 1")),
        (until(Some("r2"), None), Ok("u: one | a: 1 | u: two | a: call t | u: t gives ok")),
        (until(Some("a1"), Some("u2")), Ok("u: one | a: 1")),
        (until(None, Some("u2")), Ok("u: one | a: 1")),
        (until(None, Some("u1")), Err("Resume rejected by --resume-drops-turn:")),
        (until(Some("u1"), Some("u2")), Err("Resume rejected by --resume-drops-turn:")),
        (until(Some("r2"), Some("u2")), Err("Resume rejected by --resume-drops-turn:")),
        (until(Some("x"), None), Err("No message found with message.uuid of: x")),
        (
            until(None, Some("x")),
            Err("Resume rejected by --resume-drops-turn: the session has no message x."),
        ),
    ];
    assert_load_rows(&lines, &rows);
}

type LoadRow<'a> = (LoadRange, Result<&'a str, &'a str>);

fn assert_load_rows(lines: &[u8], rows: &[LoadRow<'_>]) {
    for (until, expected) in rows {
        let loaded = load(Cursor::new(lines), until)
            .map(|loaded| render_history(&loaded))
            .map_err(|error| error.to_string());
        match (&loaded, expected) {
            (Ok(story), Ok(expected)) => assert_eq!(story, expected, "{until:?}"),
            (Err(text), Err(expected)) => assert!(text.starts_with(expected), "{until:?}: {text}"),
            _ => panic!("{until:?}: {loaded:?}"),
        }
    }
}

#[test]
fn range_within_a_reply_is_kept_after_resuming() {
    let lines = [
        user("u1", None, "go"),
        with_reply_id(assistant("a1", "u1", "first")),
        with_reply_id(call("a2", "a1", "t1")),
        with_reply_id(call("a3", "a2", "t2")),
        with_fields(result("r1", "a3", "t1", "one"), &json!({"sourceToolAssistantUUID": "a2"})),
        with_fields(result("r2", "r1", "t2", "two"), &json!({"sourceToolAssistantUUID": "a3"})),
        assistant("a4", "r2", "done"),
    ];
    let rows = [
        ("a1", "u: go | a: first", "u: go | a: first | u: again"),
        (
            "a2",
            "u: go | a: first, call t1 | u: t1 gives Outcome unknown",
            "u: go | a: first, call t1 | u: t1 gives Outcome unknown, again",
        ),
        (
            "r1",
            "u: go | a: first, call t1, call t2 | u: t1 gives one, t2 gives Outcome unknown",
            "u: go | a: first, call t1, call t2 | u: t1 gives one, t2 gives Outcome unknown, again",
        ),
    ];
    for (at, cut, expected) in rows {
        let until = LoadRange { last_message: Some(at.into()), dropped_prompt: None };
        assert_load_rows(&bytes(&lines), &[(until, Ok(cut))]);
        let more = [&lines[..], &[user("u2", Some(at), "again")]].concat();
        assert_rows(vec![(at, more, expected)]);
    }
}

/// The entry of a rewind.
fn rewind_entry(uuid: &str, to: Option<&str>, left: &str) -> Value {
    json!({"type": "system", "subtype": "conversation_rewound", "uuid": uuid, "parentUuid": to, "leftUuid": left})
}

#[test]
fn rewound_conversation_is_loaded_and_shown() {
    let answer = json!({"type": "system", "subtype": "local_command", "uuid": "l", "parentUuid": "m"});
    let two_turns = [
        user("u1", None, "one"),
        assistant("a1", "u1", "1"),
        user("u2", Some("a1"), "two"),
        call("c2", "u2", "t2"),
        result("r2", "c2", "t2", "2"),
        assistant("a2", "r2", "2"),
    ];
    let with = |more: &[Value]| [&two_turns[..], more].concat();
    let (whole, half) = ("u: one | a: 1 | u: two | a: call t2 | u: t2 gives 2 | a: 2", "u: one | a: 1");
    let gone_on = format!("{whole} | u: three");
    let rows: Vec<(&str, Vec<Value>, &str, &[&str])> = vec![
        ("to the last prompt", with(&[rewind_entry("m", Some("a1"), "a2")]), half, &["u1", "a1"]),
        ("to the first prompt", with(&[rewind_entry("m", None, "a2"), answer]), "", &[]),
        (
            "and gone on",
            with(&[rewind_entry("m", None, "a2"), user("u3", Some("m"), "three")]),
            "u: three",
            &["u3"],
        ),
        (
            "and undone",
            with(&[rewind_entry("m", Some("a1"), "a2"), rewind_entry("n", Some("a2"), "m")]),
            whole,
            &["u1", "a1", "u2", "c2", "r2", "a2"],
        ),
        (
            "undone after a new turn",
            with(&[
                rewind_entry("m", Some("a1"), "a2"),
                user("u3", Some("m"), "three"),
                assistant("a3", "u3", "3"),
                rewind_entry("n", Some("a2"), "a3"),
            ]),
            whole,
            &["u1", "a1", "u2", "c2", "r2", "a2"],
        ),
        (
            "another engine went on with what was left",
            with(&[rewind_entry("m", None, "a2"), user("u3", Some("a2"), "three")]),
            &gone_on,
            &["u1", "a1", "u2", "c2", "r2", "a2", "u3"],
        ),
        (
            "to the middle of parallel calls",
            vec![
                user("u1", None, "go"),
                with_reply_id(call("c1", "u1", "t1")),
                with_reply_id(call("c2", "c1", "t2")),
                result("r1", "c1", "t1", "one"),
                result("r2", "c2", "t2", "two"),
                rewind_entry("m", Some("u1"), "r2"),
            ],
            "u: go",
            &["u1"],
        ),
    ];
    for (name, lines, expected, shown) in rows {
        let lines = bytes(&lines);
        let loaded = load_all(&lines);
        assert_eq!(render_history(&loaded), expected, "{name}");
        assert_well_formed(&loaded);
        let (spans, _) = conversation_spans(Cursor::new(&lines)).unwrap();
        let uuid = |span: &Span| {
            let line = &lines[span.offset as usize..][..span.length as usize];
            serde_json::from_slice::<Value>(line).unwrap()["uuid"].as_str().unwrap().to_owned()
        };
        assert_eq!(spans.iter().map(uuid).collect::<Vec<_>>(), shown, "{name}");
    }
}

#[test]
fn calls_that_never_started_can_be_left_open() {
    let started = |id: &str| json!({"type": "tool-start", "toolUseID": id});
    let part = |uuid: &str, parent: &str, id: &str| {
        with_fields(with_reply_id(call(uuid, parent, id)), &json!({"startsRecorded": true}))
    };
    let prompt = user("u1", None, "go");
    let two_calls = [prompt.clone(), part("c1", "u1", "t1"), part("c2", "c1", "t2")];
    let with = |more: &[Value]| [&two_calls[..], more].concat();
    const UNSTARTED: &str = "unstarted";
    const LOST: &str = "Outcome unknown";
    type OpenCalls = &'static [(&'static str, &'static str)];
    let rows: Vec<(&str, Vec<Value>, &str, OpenCalls)> = vec![
        ("both", with(&[]), "u: go | a: call t1, call t2", &[("t1", UNSTARTED), ("t2", UNSTARTED)]),
        (
            "one had started",
            with(&[started("t1")]),
            "u: go | a: call t1, call t2",
            &[("t1", LOST), ("t2", UNSTARTED)],
        ),
        (
            "one has a result",
            with(&[started("t1"), result("r1", "c2", "t1", "one")]),
            "u: go | a: call t1, call t2 | u: t1 gives one",
            &[("t2", UNSTARTED)],
        ),
        (
            "both had started",
            with(&[started("t1"), started("t2")]),
            "u: go | a: call t1, call t2 | u: t1 gives Outcome unknown, t2 gives Outcome unknown",
            &[],
        ),
        (
            "a prompt followed",
            with(&[user("u2", Some("c2"), "stop")]),
            "u: go | a: call t1, call t2 | u: t1 gives No result, t2 gives No result, stop",
            &[],
        ),
        (
            "another engine does not record starts",
            vec![prompt, call("c1", "u1", "t1")],
            "u: go | a: call t1 | u: t1 gives Outcome unknown",
            &[],
        ),
    ];
    for (name, lines, expected, open) in rows {
        let loaded = load_with_open_calls(Cursor::new(bytes(&lines))).unwrap();
        let found = loaded.open_calls.iter().map(|call| match &call.state {
            OpenCallState::Unstarted => (call.id.as_str(), UNSTARTED),
            OpenCallState::OutcomeUnknown(text) => (call.id.as_str(), text.split(':').next().unwrap()),
        });
        assert_eq!(
            (render_history(&loaded).as_str(), found.collect::<Vec<_>>()),
            (expected, open.to_vec()),
            "{name}"
        );
        assert!(
            loaded.open_calls.iter().all(|call| call.tool == "Bash" && call.input == json!({})),
            "{name}"
        );
    }
}

/// A conversation with tool calls, and the text expected from each of its entries.
fn conversation(turns: &[usize]) -> (Vec<Value>, Vec<String>) {
    let (mut lines, mut texts): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    let mut last: Option<String> = None;
    let mut say = |make: &dyn Fn(&str, Option<&str>) -> Value, text: String| {
        let uuid = format!("l{}", lines.len());
        lines.push(make(&uuid, last.as_deref()));
        texts.push(text);
        last = Some(uuid);
    };
    for (turn, calls) in turns.iter().enumerate() {
        say(&|uuid, parent| user(uuid, parent, &format!("prompt{turn}.")), format!("prompt{turn}."));
        for number in 0..*calls {
            let id = format!("t{turn}x{number}.");
            say(&|uuid, parent| call(uuid, parent.unwrap_or_default(), &id), format!("\"id\":\"{id}"));
        }
        for number in 0..*calls {
            let (id, text) = (format!("t{turn}x{number}."), format!("result{turn}x{number}."));
            say(&|uuid, parent| result(uuid, parent.unwrap_or_default(), &id, &text), text.clone());
        }
        say(
            &|uuid, parent| assistant(uuid, parent.unwrap_or_default(), &format!("reply{turn}.")),
            format!("reply{turn}."),
        );
    }
    (lines, texts)
}

fn history_text(loaded: &mut LoadedConversation) -> String {
    let parts = loaded.history.snapshot();
    String::from_utf8(parts.parts().iter().flat_map(|part| part.to_vec()).collect()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated_transcript_keeps_every_whole_line(turns in prop::collection::vec(0..4usize, 1..6), at in 0.0..1.0f64) {
        let (lines, texts) = conversation(&turns);
        let whole = bytes(&lines);
        let cut = &whole[..(whole.len() as f64 * at) as usize];
        let mut loaded = load_all(cut);
        assert_well_formed(&loaded);
        let complete = cut.iter().filter(|byte| **byte == b'\n').count();
        let words = history_text(&mut loaded);
        for text in &texts[..complete] {
            prop_assert!(words.contains(text), "{text} of {words}");
        }
    }

    #[test]
    fn damaged_lines_lose_only_themselves(
        turns in prop::collection::vec(0..4usize, 1..6),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), 0..5usize), 0..4),
    ) {
        let (lines, texts) = conversation(&turns);
        let mut rows: Vec<Vec<u8>> = lines.iter().map(|line| line.to_string().into_bytes()).collect();
        let mut gone = HashSet::new();
        for (row, damage) in spoilt {
            let row = row.index(rows.len());
            gone.insert(row);
            let half = rows[row].len() / 2;
            match damage {
                0 => rows[row] = vec![0; 50],
                1 => rows[row].truncate(half),
                2 => rows[row] = b"\xff\xfe garbage \x80".to_vec(),
                3 => rows[row].clear(),
                _ => rows[row].iter_mut().skip(half).take(1).for_each(|byte| *byte = b'\n'),
            }
        }
        let mut loaded = load_all(&rows.join(&b'\n'));
        assert_well_formed(&loaded);
        let words = history_text(&mut loaded);
        let call_for = |text: &String| text.strip_prefix("result").map(|rest| format!("\"id\":\"t{rest}"));
        for (number, text) in texts.iter().enumerate() {
            // A result is dropped with its call.
            let is_unmatched = call_for(text).is_some_and(|call| gone.contains(&texts.iter().position(|text| *text == call).unwrap()));
            prop_assert!(gone.contains(&number) || is_unmatched || words.contains(text), "{text} of {words}");
        }
    }

    #[test]
    fn arbitrary_damage_yields_a_well_formed_history(
        turns in prop::collection::vec(0..4usize, 1..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
    ) {
        let (mut lines, _) = conversation(&turns);
        for (one, other) in swaps {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            let parent = lines[other]["uuid"].clone();
            lines[one]["parentUuid"] = parent;
            lines.swap(one, other);
        }
        let mut whole = bytes(&lines);
        for (at, byte) in changes {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        assert_well_formed(&load_all(&whole));
    }
}

#[test]
fn order_follows_lines_and_not_timestamps() {
    let at = |line: Value, time: &str| with_fields(line, &json!({"timestamp": time}));
    let lines = [
        at(user("u1", None, "hi"), "2026-11-15T10:00:00.000Z"),
        at(assistant("a1", "u1", "hello"), "2026-11-15T08:00:00.000Z"),
        at(user("u2", Some("a1"), "go"), "1999-01-01T00:00:00.000Z"),
        at(call("a2", "u2", "t1"), "2038-01-01T00:00:00.000Z"),
        at(result("r1", "a2", "t1", "done"), "garbage"),
    ];
    assert_eq!(
        render_history(&load_all(&bytes(&lines))),
        "u: hi | a: hello | u: go | a: call t1 | u: t1 gives done"
    );
}

#[test]
fn awaited_agents_are_those_of_the_last_entry() {
    let awaited = |agents: &[(&str, &str)]| {
        let agents: Vec<Value> =
            agents.iter().map(|(agent, call)| json!({"agentId": agent, "toolUseId": call})).collect();
        json!({"type": "awaited-agents", "agents": agents, "sessionId": "s"})
    };
    let lines = [
        user("1", None, "Start two."),
        call("2", "1", "c1"),
        awaited(&[("a1", "c1")]),
        result("3", "2", "c1", "started"),
        call("4", "3", "c2"),
        awaited(&[("a1", "c1"), ("a2", "c2")]),
        result("5", "4", "c2", "started"),
    ];
    let ids = |until: &LoadRange, lines: &[Value]| -> Vec<String> {
        let loaded = load(Cursor::new(bytes(lines)), until).unwrap();
        loaded.awaited_agents.into_iter().map(|agent| agent.agent_id).collect()
    };
    assert_eq!(ids(&LoadRange::default(), &lines), ["a1", "a2"]);
    let early = LoadRange { last_message: Some("3".into()), dropped_prompt: None };
    assert_eq!(ids(&early, &lines), ["a1"], "the second one was started later");
    let reported = [&lines[..], &[user("6", Some("5"), "Both are done."), awaited(&[])]].concat();
    assert!(ids(&LoadRange::default(), &reported).is_empty());
    let before_report = LoadRange { last_message: Some("5".into()), dropped_prompt: None };
    assert_eq!(ids(&before_report, &reported), ["a1", "a2"], "the reports came later");
    let unseen = [&lines[..], &[awaited(&[("a3", "elsewhere")])]].concat();
    assert!(ids(&LoadRange::default(), &unseen).is_empty(), "its call is not in the conversation");
}
