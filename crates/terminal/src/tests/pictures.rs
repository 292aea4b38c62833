//! Pictures for `docs/terminal.md`, drawn by the code that draws the terminal. `WHIMBREL_BLESS=1` draws them again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::diff::{self, FileDiff, Fold};
use crate::pickers::{self, SessionScope};
use crate::present::Presenter;
use crate::prompts::Prompt;
use crate::screen::emulator::Emulator;
use crate::screen::{FrameWriter, Live, Reflow, Size, svg};
use crate::sessions::StoredSession;
use crate::text::{Line, Style};
use crate::theme::{ColorLevel, Theme};
use crate::transcript::{FinishedCall, Item, PromptEntry};

const SIZE: Size = Size { columns: 84, rows: 24 };
const COLUMNS: usize = 84;

/// Draws a screen and compares it with the picture in the documentation.
fn check(name: &str, title: &str, finished: &[Line], live: &Live) {
    let [_, mut emulator] = Emulator::both(SIZE);
    emulator.write(&FrameWriter::new(SIZE, ColorLevel::True, Reflow::Yes).frame(finished, live));
    let picture = svg::draw(&emulator, COLUMNS, title);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal").join(format!("{name}.svg"));
    if std::env::var_os("WHIMBREL_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &picture).unwrap();
    }
    let drawn = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        drawn == picture,
        "docs/terminal/{name}.svg is not what the terminal shows; run this test with WHIMBREL_BLESS=1"
    );
}

fn presenter() -> Presenter {
    Presenter::new(Theme::TERMINAL, PathBuf::from("/work"))
}

fn call(name: &str, input: Value, text: &str, is_error: bool, structured: Value, seconds: u64) -> Item {
    Item::Call(Box::new(FinishedCall {
        id: "call".into(),
        name: name.into(),
        input,
        text: text.into(),
        is_error,
        structured: Some(structured),
        elapsed: Duration::from_secs(seconds),
    }))
}

/// The input line and the status line, as they stand below a session.
fn input(text: &str) -> Live {
    let theme = Theme::TERMINAL;
    let lines = vec![
        Line::empty(),
        Line::styled("› ", theme.accent).with(text, Style::PLAIN),
        Line::styled("sonnet · asks before edits · work (main) · 12% of context · $0.04", theme.dim),
    ];
    Live { lines, cursor: Some((1, 2 + text.len())) }
}

fn patch() -> Value {
    json!({"structuredPatch": [{"oldStart": 41, "newStart": 41, "lines": [
        " /// Splits a line into words.",
        " pub fn split(line: &str) -> Vec<&str> {",
        "-    line.split(' ').collect()",
        "+    line.split_whitespace().collect()",
        " }",
    ]}]})
}

const ANSWER: &str = "The test failed because `split` treated **every blank** as a separator, so two blanks made an \
    empty word.\n\n1. `split_whitespace` skips runs of blanks\n2. the signature is the same, so no caller changes\n\n\
    | text | before | after |\n|---|--:|--:|\n| `a b` | 2 | 2 |\n| `a  b` | 3 | 2 |\n\n\
    ```rust\n// Two blanks are one separator.\nassert_eq!(split(\"a  b\"), [\"a\", \"b\"]);\n```\n";

#[test]
fn picture_of_a_session() {
    let file = json!({"file_path": "/work/src/parser.rs"});
    let test = json!({"command": "cargo test parser"});
    let failure = "Exit code 101\ntest parser::two ... FAILED\n\nassertion `left == right` failed\n  left: 3\n right: 2";
    let items = [
        Item::User { text: "Fix the failing test of the parser".into(), entry: PromptEntry::Turn },
        call("Bash", test.clone(), failure, true, Value::Null, 12),
        call("Read", file.clone(), "", false, json!({"type": "text", "file": {"numLines": 120}}), 0),
        call("Edit", file, "", false, patch(), 0),
        call("Bash", test, "test result: ok. 4 passed; 0 failed", false, Value::Null, 3),
        Item::Answer(ANSWER.into()),
    ];
    let mut presenter = presenter();
    let lines: Vec<Line> = items.iter().flat_map(|item| presenter.item(item, COLUMNS)).collect();
    check(
        "session",
        "A session: a prompt, tool calls with a diff, and an answer with a table and code",
        &lines,
        &input(""),
    );
}

#[test]
fn picture_of_a_permission_request() {
    let rule = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "git push:*"}]});
    let command = json!({"command": "git push origin main", "description": "Push the fix"});
    let request =
        json!({"tool_name": "Bash", "tool_use_id": "t", "input": command, "permission_suggestions": [rule]});
    let mut prompt = Prompt::new(1, serde_json::from_value(request).unwrap(), String::new());
    prompt.show(Instant::now(), None);
    let theme = Theme::TERMINAL;
    let mut lines = vec![Line::empty()];
    lines.extend(presenter().request("Bash", &command));
    lines.push(Line::empty());
    lines.extend(prompt.menu().render(COLUMNS, 8, &theme).lines);
    check(
        "permission",
        "A permission request with the whole command and the rules it offers",
        &[],
        &Live { lines, cursor: None },
    );
}

#[test]
fn picture_of_a_diff() {
    let old = "use std::fs;\n\nfn main() {\n    let text = fs::read_to_string(\"in.txt\").unwrap();\n    println!(\"{}\", text.len());\n}\n";
    let new = "use std::fs;\n\nfn main() -> std::io::Result<()> {\n    let text = fs::read_to_string(\"in.txt\")?;\n    println!(\"{} bytes, 鷸\", text.len());\n    Ok(())\n}\n";
    let lines =
        diff::render(&FileDiff::from_texts("main.rs", Some(old), Some(new)), &Theme::TERMINAL, Fold::None);
    check("diff", "A diff with numbers, signs and marked words", &lines, &Live::default());
}

#[test]
fn picture_of_the_resume_picker() {
    let now = 1_000_000_000;
    let session = |title: &str, minutes: u64, branch: &str, bytes: u64| StoredSession {
        id: title.into(),
        title: title.into(),
        folder: "/work".into(),
        branch: branch.into(),
        modified_ms: now - minutes * 60_000 - 30_000,
        bytes,
        first_prompt: title.into(),
    };
    let sessions = [
        session("Fix the failing test of the parser", 5, "main", 48_000),
        session("Add a table of keys to the documentation", 190, "docs", 210_000),
        session("Why does the build take four minutes?", 1_600, "main", 95_000),
    ];
    let picker = pickers::resume(&sessions, SessionScope::ThisFolder, now);
    let rendered = picker.menu.render(COLUMNS, 10, &Theme::TERMINAL);
    check(
        "resume",
        "The list of sessions that can be resumed",
        &[],
        &Live { lines: rendered.lines, cursor: rendered.caret },
    );
}
