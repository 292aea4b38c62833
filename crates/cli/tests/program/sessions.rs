//! Stored sessions, as a user manages them.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, tool_call};
use crate::pty::PtySession;

/// Runs a session with one prompt, and returns its id.
fn run_session(test_dir: &TestDir, prompt: &str, replies: &Value) -> String {
    let mut session = test_dir.start_session(replies, &["--allowedTools", "Bash"]);
    session.send_prompt(prompt);
    let id = session.next_frame("result")["session_id"].as_str().unwrap().to_owned();
    assert_eq!(session.finish().0, Some(0));
    id
}

#[track_caller]
fn run_ok(test_dir: &TestDir, args: &[&str]) -> String {
    let out = test_dir.run(&[&["sessions"], args].concat(), "");
    assert_eq!(out.code, Some(0), "{args:?}: {}", out.stderr);
    out.stdout
}

#[track_caller]
fn run_failing(test_dir: &TestDir, args: &[&str]) -> String {
    let out = test_dir.run(&[&["sessions"], args].concat(), "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
    out.stderr
}

fn projects_dir(test_dir: &TestDir) -> PathBuf {
    test_dir.work_dir().join("../home/.claude/projects").canonicalize().unwrap()
}

#[test]
fn files_are_rewound_to_a_prompt_without_a_turn() {
    let test_dir = TestDir::new();
    let file = test_dir.work_dir().join("birds.txt");
    let write = tool_call("Write", &json!({"file_path": file, "content": "two curlews"}));
    let mut command = test_dir
        .session_command(&json!([write, "done"]), &["--allowedTools", "Write", "--replay-user-messages"]);
    command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let mut session = TestSession::start(command);
    session.send_prompt("count");
    let prompt = session.next_frame("user")["uuid"].as_str().unwrap().to_owned();
    let id = session.next_frame("result")["session_id"].as_str().unwrap().to_owned();
    assert_eq!(session.finish().0, Some(0));
    assert!(file.exists());

    let rewind = |prompt: &str| test_dir.run(&["--resume", &id, "--rewind-files", prompt], "");
    let out = rewind("99999999-2222-4333-8444-555555555555");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("No file checkpoint found"), "{}", out.stderr);
    let out = rewind(&prompt);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    assert!(
        out.stdout.starts_with("1 file is as it was at this prompt:\n") && !file.exists(),
        "{}",
        out.stdout
    );
}

#[test]
fn session_is_resumed_by_its_title() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["one"]));
    let run = |args: &[&str]| test_dir.run(&[&["-p", "--model", &model], args].concat(), "");
    assert_eq!(run(&["--name", "Count the birds", "first"]).code, Some(0));
    let out = run(&["--resume", "count THE birds", "again"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "one\n"), "{}", out.stderr);
    let out = run(&["--resume", "count the fish", "again"]);
    assert!(
        out.code == Some(1) && out.stderr.contains("No conversation found with the title"),
        "{}",
        out.stderr
    );
}

#[test]
fn sessions_are_listed_shown_found_and_renamed() {
    let test_dir = TestDir::new();
    let first = run_session(
        &test_dir,
        "Count the curlews",
        &json!([tool_call("Bash", &json!({"command": "echo two"})), "There are two."]),
    );
    let second = run_session(&test_dir, "And the\u{1b}[2J godwits?", &json!(["None."]));
    let listed = run_ok(&test_dir, &[]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(lines[0].starts_with(&second[..8]) && lines[1].starts_with(&first[..8]), "{listed}");
    assert!(lines[1].contains("just now") && lines[1].contains("Count the curlews"), "{listed}");
    assert!(!listed.contains('\u{1b}'), "a title cannot command the terminal");

    let shown = run_ok(&test_dir, &["show", &first[..8]]);
    for part in ["> Count the curlews", "• Bash  echo two", "    two", "There are two."] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let found = run_ok(&test_dir, &["search", "GODWITS"]);
    assert!(found.contains(&second[..8]) && !found.contains(&first[..8]), "{found}");
    assert!(run_failing(&test_dir, &["search", "avocets"]).contains("No session contains this text"));

    run_ok(&test_dir, &["rename", &first, "Waders", "of", "the", "coast"]);
    run_ok(&test_dir, &["tag", &first, "birds"]);
    let json: Value = serde_json::from_str(&run_ok(&test_dir, &["list", "--json"])).unwrap();
    let row = json.as_array().unwrap().iter().find(|row| row["sessionId"] == first.as_str()).unwrap();
    assert_eq!((&row["customTitle"], &row["tag"]), (&json!("Waders of the coast"), &json!("birds")));
    assert_eq!(row["cwd"], json!(test_dir.work_dir().canonicalize().unwrap()));
}

#[test]
fn output_of_a_forked_skill_is_shown() {
    let test_dir = TestDir::new();
    let dir = test_dir.work_dir().join(".claude/skills/count");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("SKILL.md"), "---\ndescription: d\ncontext: fork\n---\nCount.").unwrap();
    let id = run_session(&test_dir, "/count waders", &json!(["There are two."]));
    let shown = run_ok(&test_dir, &["show", &id]);
    assert!(
        shown.contains("/count") && shown.contains("waders") && shown.contains("There are two."),
        "{shown}"
    );
}

#[test]
fn export_never_overwrites_a_file() {
    let test_dir = TestDir::new();
    let id =
        run_session(&test_dir, "Count", &json!([tool_call("Bash", &json!({"command": "echo two"})), "Two."]));
    let document = run_ok(&test_dir, &["export", "last"]);
    assert!(
        document.starts_with("# Count\n") && document.contains("**Bash** command: `echo two`"),
        "{document}"
    );
    let file = test_dir.work_dir().join("out.json");
    let name = file.to_str().unwrap();
    assert_eq!(run_ok(&test_dir, &["export", &id, "--format", "json", "--output", name]), "");
    let messages: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert!(run_failing(&test_dir, &["export", &id, "-o", name]).contains("exists already"));
}

#[test]
fn delete_asks_for_confirmation() {
    let test_dir = TestDir::new();
    let id = run_session(&test_dir, "Count", &json!(["Two."]));
    assert!(run_failing(&test_dir, &["delete", &id]).contains("--yes"));
    for (keys, expected, code) in [("n\r", "Nothing was deleted", 1), ("y\r", "Deleted", 0)] {
        let mut command = test_dir.command(&["sessions", "delete", &id]);
        command.env("TERM", "xterm");
        let mut pty = PtySession::start(command, 100);
        pty.wait_for_text("Delete permanently? [y/N]");
        pty.type_keys(keys);
        assert_eq!(pty.wait_for_exit().code(), Some(code), "{}", pty.output());
        assert!(pty.output().contains(expected), "{}", pty.output());
    }
    assert!(run_failing(&test_dir, &["delete", &id, "--yes"]).contains("no session"));
    let dir = std::fs::read_dir(projects_dir(&test_dir)).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn errors_are_reported_with_a_remedy() {
    let test_dir = TestDir::new();
    assert_eq!(run_ok(&test_dir, &["list", "--json"]), "[\n]\n");
    assert!(test_dir.run(&["sessions"], "").stderr.contains("There are no sessions"));
    assert!(run_ok(&test_dir, &["--help"]).contains("whimbrel sessions delete"));
    for (args, words) in [
        (&["show", "last"][..], "whimbrel sessions"),
        (&["show", "../../etc"], "is not a session"),
        (&["paint"], "sessions --help"),
        (&["list", "--color"], "--color"),
    ] {
        assert!(run_failing(&test_dir, args).contains(words), "{args:?}");
    }
}

#[test]
fn unreadable_session_does_not_hide_the_others() {
    let test_dir = TestDir::new();
    let id = run_session(&test_dir, "Count", &json!(["Two."]));
    let dir = std::fs::read_dir(projects_dir(&test_dir)).unwrap().next().unwrap().unwrap().path();
    for (number, bytes) in [&b""[..], b"\0\0\0", b"{\"type\":\"user\""].iter().enumerate() {
        std::fs::write(dir.join(format!("{number}aaaaaaa-2222-4333-8444-555555555555.jsonl")), bytes)
            .unwrap();
    }
    std::fs::create_dir(dir.join("9aaaaaaa-2222-4333-8444-555555555555.jsonl")).unwrap();
    let listed = run_ok(&test_dir, &[]);
    assert!(listed.lines().count() == 1 && listed.starts_with(&id[..8]), "{listed}");
    assert_eq!(run_ok(&test_dir, &["show", "0aaaaaaa", "--json"]), "[\n]\n");
}
