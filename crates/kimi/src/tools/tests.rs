//! Documented calls of Kimi: each is translated for the engine and back.

use serde_json::{Value, json};

use super::to_engine::PAGE_QUESTION;
use super::{to_engine, to_kimi};

/// A name, a call of Kimi and the same call of the engine.
type Row = (&'static str, (&'static str, Value), (&'static str, Value));

fn assert_translated<const N: usize>(rows: [Row; N]) {
    for (name, (kimi, input), (engine, expected)) in rows {
        let translated = to_engine(kimi, input.clone());
        assert_eq!(translated, (engine, expected), "{name}");
        assert_eq!(to_kimi(engine, &translated.1), (kimi, input), "{name}, back");
    }
}

#[test]
fn commands_are_translated_and_back() {
    let full = |timeout: u32| json!({"command": "ls", "timeout": timeout, "run_in_background": true, "description": "d"});
    let output = |timeout: u32| json!({"task_id": "b1", "block": true, "timeout": timeout});
    assert_translated([
        ("command", ("Shell", json!({"command": "ls"})), ("Bash", json!({"command": "ls"}))),
        ("seconds", ("Shell", full(60)), ("Bash", full(60_000))),
        ("half a second", ("Shell", json!({"timeout": 0.5})), ("Bash", json!({"timeout": 500}))),
        ("no timeout", ("Shell", json!({"timeout": null})), ("Bash", json!({"timeout": null}))),
        ("output of a task", ("TaskOutput", output(30)), ("TaskOutput", output(30_000))),
        ("end of a task", ("TaskStop", json!({"task_id": "b1"})), ("TaskStop", json!({"task_id": "b1"}))),
    ]);
}

#[test]
fn file_tools_are_translated_and_back() {
    let kimi_edit = |edit: Value| ("StrReplaceFile", json!({"path": "a", "edit": edit}));
    let edit = |edits: Value| ("Edit", json!({"file_path": "a", "edits": edits}));
    assert_translated([
        ("file", ("ReadFile", json!({"path": "a"})), ("Read", json!({"file_path": "a"}))),
        (
            "end of a file",
            ("ReadFile", json!({"path": "a", "line_offset": -20, "n_lines": 10})),
            ("Read", json!({"file_path": "a", "offset": -20, "limit": 10})),
        ),
        (
            "appended text",
            ("WriteFile", json!({"path": "a", "content": "x", "mode": "append"})),
            ("Write", json!({"file_path": "a", "content": "x", "mode": "append"})),
        ),
        (
            "one edit",
            kimi_edit(json!({"old": "a", "new": "b"})),
            ("Edit", json!({"file_path": "a", "old_string": "a", "new_string": "b"})),
        ),
        (
            "edit of all matches",
            kimi_edit(json!({"old": "a", "new": "b", "replace_all": true})),
            ("Edit", json!({"file_path": "a", "old_string": "a", "new_string": "b", "replace_all": true})),
        ),
        (
            "several edits",
            kimi_edit(json!([{"old": "a", "new": "b"}, {"old": "c", "new": "", "replace_all": false}])),
            edit(json!([
                {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "", "replace_all": false},
            ])),
        ),
        (
            "list of one edit",
            kimi_edit(json!([{"old": "a", "new": "b"}])),
            edit(json!([{"old_string": "a", "new_string": "b"}])),
        ),
        (
            "names",
            ("Glob", json!({"pattern": "*", "directory": "src", "include_dirs": false})),
            ("Glob", json!({"pattern": "*", "path": "src", "include_dirs": false})),
        ),
        (
            "counted matches",
            ("Grep", json!({"pattern": "a", "path": ".", "output_mode": "count_matches", "-i": true})),
            ("Grep", json!({"pattern": "a", "path": ".", "output_mode": "count", "-i": true})),
        ),
        (
            "matching lines",
            ("Grep", json!({"pattern": "a", "output_mode": "content", "-A": 1, "-n": true, "head_limit": 5})),
            ("Grep", json!({"pattern": "a", "output_mode": "content", "-A": 1, "-n": true, "head_limit": 5})),
        ),
    ]);
}

#[test]
fn other_tools_are_translated_and_back() {
    let url = "https://a.org";
    let choice = json!([{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]);
    let question =
        |flag: &str| json!({"questions": [{"question": "?", "header": "h", "options": choice, flag: true}]});
    let agent = |kind: &str| {
        ("Agent", json!({"description": "d", "prompt": "p", "subagent_type": kind, "timeout": 9}))
    };
    assert_translated([
        (
            "to-do list",
            (
                "SetTodoList",
                json!({"todos": [
                    {"title": "a", "status": "done"}, {"title": "b", "status": "in_progress"},
                ]}),
            ),
            (
                "TodoWrite",
                json!({"todos": [
                    {"content": "a", "status": "completed", "activeForm": "a"},
                    {"content": "b", "status": "in_progress", "activeForm": "b"},
                ]}),
            ),
        ),
        ("no to-do list", ("SetTodoList", json!({})), ("TodoWrite", json!({}))),
        (
            "page",
            ("FetchURL", json!({"url": url})),
            ("WebFetch", json!({"url": url, "prompt": PAGE_QUESTION})),
        ),
        ("search", ("SearchWeb", json!({"query": "birds"})), ("WebSearch", json!({"query": "birds"}))),
        (
            "questions",
            ("AskUserQuestion", question("multi_select")),
            ("AskUserQuestion", question("multiSelect")),
        ),
        ("agent", agent("coder"), agent("general-purpose")),
        ("reading agent", agent("explore"), agent("Explore")),
        ("planning agent", agent("plan"), agent("Plan")),
        ("agent of the host", agent("reviewer"), agent("reviewer")),
        ("plan", ("ExitPlanMode", json!({"plan": "p"})), ("ExitPlanMode", json!({"plan": "p"}))),
        ("MCP tool", ("mcp__a__b", json!({"path": "a"})), ("mcp__a__b", json!({"path": "a"}))),
    ]);
}
