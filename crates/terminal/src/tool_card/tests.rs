use serde_json::json;

use super::*;
use crate::diff::Fold;
use crate::text::Line;
use crate::theme::Theme;

fn call<'a>(name: &'a str, input: &'a Value) -> Call<'a> {
    Call { name, input, cwd: Path::new("/w") }
}

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
}

fn done(name: &str, input: &Value, text: &str, is_error: bool, structured: &Value) -> Vec<String> {
    let outcome =
        Outcome { text, is_error, structured: Some(structured), elapsed: Duration::from_millis(300) };
    texts(&finished(&call(name, input), &outcome, 60, &Theme::DARK, Fold::At(6)))
}

#[test]
fn titles_show_the_most_telling_input() {
    let rows = [
        ("Bash", json!({"command": "git status\nls"}), "Bash git status …"),
        ("Read", json!({"file_path": "/w/src/a.rs"}), "Read src/a.rs"),
        ("Read", json!({"file_path": "/x/a.rs", "offset": 5, "limit": 10}), "Read /x/a.rs:5-14"),
        ("Grep", json!({"pattern": "fn main", "path": "/w/src"}), "Grep fn main in src"),
        (
            "Agent",
            json!({"description": "look around", "subagent_type": "explore", "prompt": "p"}),
            "Agent explore: look around",
        ),
        ("mcp__git__log", json!({"count": 3, "all": true}), "git: log count: 3, all: true"),
        ("TaskList", json!({}), "TaskList"),
    ];
    for (name, input, expected) in rows {
        assert_eq!(title(&call(name, &input), &Theme::DARK).text(), expected);
    }
}

#[test]
fn finished_calls_say_what_came_of_them() {
    let file = json!({"type": "text", "file": {"numLines": 120}});
    let patch = json!({"structuredPatch": [{"oldStart": 7, "newStart": 7, "lines": [" a", "-b", "+c"]}]});
    let rows = [
        (
            done("Read", &json!({"file_path": "/w/a.rs"}), "1 x", false, &file),
            vec!["✓ Read a.rs · 120 lines"],
        ),
        (
            done("Bash", &json!({"command": "cargo test"}), "Exit code 101\nerror: no", true, &Value::Null),
            vec!["✗ Bash cargo test · exit 101", "  │ error: no"],
        ),
        (
            done("Edit", &json!({"file_path": "/w/a.rs"}), "ok", false, &patch),
            vec!["✓ Edit a.rs · +1 -1", "  7   a", "  8 - b", "  8 + c"],
        ),
        (
            done(
                "Write",
                &json!({"file_path": "/w/a.rs", "content": "x\n"}),
                "ok",
                false,
                &json!({"type": "create"}),
            ),
            vec!["✓ Write a.rs · +1 -0", "  1 + x"],
        ),
        (
            done("Grep", &json!({"pattern": "x"}), "a", false, &json!({"numFiles": 1})),
            vec!["✓ Grep x · 1 file"],
        ),
    ];
    for (lines, expected) in rows {
        assert_eq!(lines, expected);
    }
}

#[test]
fn long_output_is_folded_at_its_telling_end() {
    let output: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
    let success = done("Bash", &json!({"command": "x"}), &output.join("\n"), false, &Value::Null);
    assert_eq!(success[1..3], ["  │ line 1", "  │ line 2"]);
    assert_eq!(success.last().unwrap(), "  │ … 14 more lines (Ctrl+O shows all)");
    let failure = done(
        "Bash",
        &json!({"command": "x"}),
        &format!("Exit code 1\n{}", output.join("\n")),
        true,
        &Value::Null,
    );
    assert_eq!(failure[1], "  │ … 14 lines above (Ctrl+O shows all)");
    assert_eq!(failure.last().unwrap(), "  │ line 20");
}

#[test]
fn output_cannot_control_the_terminal() {
    let lines =
        done("Bash", &json!({"command": "x"}), "\x1b[31mred\x1b[0m \x1b[2J\x1b]0;t\x07", false, &Value::Null);
    assert_eq!(lines[1], "  │ red \\x1b[2J\\x1b]0;t\\x07");
}

#[test]
fn running_call_shows_its_time_and_output() {
    let input = json!({"command": "sleep 100"});
    let live = ["a".to_owned()];
    let lines = running(&call("Bash", &input), Duration::from_secs(75), '⠋', &live, 60, &Theme::DARK);
    assert_eq!(texts(&lines), ["⠋ Bash sleep 100 · 1 min 15 s", "  │ a"]);
}

#[test]
fn requests_show_everything() {
    let long = format!("echo {} && rm -rf /", "x".repeat(200));
    let input = json!({"command": long, "description": "Says x"});
    assert_eq!(
        texts(&request(&call("Bash", &input), None, &Theme::DARK)),
        ["  Bash".to_owned(), "  Says x".to_owned(), format!("  {long}")]
    );
    let edit = json!({"file_path": "/w/a.rs", "old_string": "b", "new_string": "c"});
    assert_eq!(
        texts(&request(&call("Edit", &edit), Some("a\nb\n"), &Theme::DARK)),
        ["  Edit", "  a.rs  +1 -1", "  1   a", "  2 - b", "  2 + c"]
    );
    let write = json!({"file_path": "/w/n.txt", "content": "one\n"});
    assert_eq!(
        texts(&request(&call("Write", &write), None, &Theme::DARK)),
        ["  Write", "  n.txt  +1 -0  new file", "  1 + one"]
    );
    let append = json!({"file_path": "/w/n.txt", "content": "two\n", "mode": "append"});
    assert_eq!(
        texts(&request(&call("Write", &append), Some("one\n"), &Theme::DARK)),
        ["  Write", "  n.txt  +1 -0", "  1   one", "  2 + two"]
    );
    let tool = json!({"branch": "main", "text": "a\nb"});
    assert_eq!(
        texts(&request(&call("mcp__git__push", &tool), None, &Theme::DARK)),
        ["  mcp__git__push", "  server: git", "  tool: push", "  branch: main", "  text:", "    a", "    b"]
    );
}

#[test]
fn requests_wrap_long_lines_of_a_change() {
    let content = format!("{}rm -rf /\n", " ".repeat(200));
    let write = json!({"file_path": "/w/n.sh", "content": content});
    let edit = json!({"file_path": "/w/n.sh", "old_string": "x", "new_string": content});
    for (name, input, current) in [("Write", write, None), ("Edit", edit, Some("x"))] {
        let lines = request(&call(name, &input), current, &Theme::DARK);
        let rows: Vec<Line> = lines.iter().flat_map(|line| line.wrapped(40)).collect();
        let shown: String = rows.iter().map(Line::text).collect();
        let letters: String = shown.chars().filter(|letter| *letter != ' ').collect();
        assert!(letters.contains("rm-rf/"), "{name}: {:?}", texts(&rows));
    }
}
