//! Sessions with a sandbox. The kernel must let this user make namespaces.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, has_exited, tool_call, wait_for_number, wait_until};

/// A working directory with a file outside of it that no command may change.
struct SandboxTest {
    dirs: TestDir,
    outside: tempfile::TempDir,
}

impl SandboxTest {
    fn new() -> Self {
        Self { dirs: TestDir::new(), outside: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    fn escape(&self) -> String {
        format!("echo x > {}", self.target().display())
    }

    fn target(&self) -> PathBuf {
        self.outside.path().join("evil")
    }

    fn start(&self, sandbox: &Value, replies: Vec<Value>, more: &[&str]) -> TestSession {
        let mut settings = json!({"enabled": true});
        settings.as_object_mut().unwrap().extend(sandbox.as_object().unwrap().clone());
        let settings = json!({"sandbox": settings}).to_string();
        let replies: Vec<Value> = replies.into_iter().chain([json!("done")]).collect();
        let args = [&["--settings", settings.as_str()], more].concat();
        let mut command = self.dirs.session_command(&Value::from(replies), &args);
        command.env("IS_SANDBOX", "1").env("TMPDIR", self.dirs.temp_dir());
        let mut session = TestSession::start(command);
        session.send_prompt("go");
        session
    }

    /// Runs to the end in bypass mode and returns all frames.
    fn run(&self, sandbox: &Value, replies: Vec<Value>) -> Vec<Value> {
        let session = self.start(sandbox, replies, &["--permission-mode", "bypassPermissions"]);
        let (code, frames, stderr) = session.finish();
        assert_eq!(code, Some(0), "{frames:?} {stderr}");
        frames
    }

    fn names_in(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn bash(command: &str) -> Value {
    tool_call("Bash", &json!({"command": command}))
}

fn results(frames: &[Value]) -> String {
    let results = frames.iter().filter(|frame| frame["type"] == "user");
    results.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// S-01, S-08, S-10, S-24.
#[test]
fn confined_commands_stay_inside_and_reports_name_what_was_refused() {
    let test = SandboxTest::new();
    let work = "touch ran; mktemp >/dev/null && echo made; cd sub; env";
    std::fs::create_dir(test.dirs.work_dir().join("sub")).unwrap();
    let frames = test.run(&json!({}), vec![bash(&test.escape()), bash(work), bash("pwd")]);
    assert!(!test.target().exists() && test.dirs.work_dir().join("ran").exists(), "{frames:?}");
    let init = frames.iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(init["sandbox"]["enabled"], true);
    let text = results(&frames);
    let named = format!("write: {} is read-only here", test.target().display());
    assert!(text.contains("<sandbox_violations>") && text.contains(&named), "{text}");
    assert!(text.contains("made") && text.contains("HTTP_PROXY="), "{text}");
    assert!(text.contains("work/sub\""), "the directory is kept: {text}");
    let reports = frames.iter().map(|frame| &frame["tool_use_result"]["sandbox"]);
    let reports: Vec<&Value> = reports.filter(|report| !report.is_null()).collect();
    let nothing = json!({"confined": true, "violations": []});
    assert_eq!(
        reports,
        [&json!({"confined": true, "violations": [format!("{named} (likely)")]}), &nothing, &nothing]
    );
}

/// S-26.
#[test]
fn the_flag_counts_only_where_the_settings_allow_it() {
    for (allowed, escapes) in [(true, true), (false, false)] {
        let test = SandboxTest::new();
        let call = tool_call("Bash", &json!({"command": test.escape(), "dangerouslyDisableSandbox": true}));
        test.run(&json!({"allowUnsandboxedCommands": allowed}), vec![call]);
        assert_eq!(test.target().exists(), escapes, "{allowed}");
    }
}

#[test]
fn permission_rules_hold_for_what_programs_do() {
    let test = SandboxTest::new();
    let work = test.dirs.work_dir();
    std::fs::create_dir(work.join("secrets")).unwrap();
    std::fs::write(work.join("secrets/key"), "CANARY").unwrap();
    std::fs::write(work.join("keep"), "kept").unwrap();
    std::fs::write(work.join("p.sh"), "cat s*/k*; echo evil > k*p; true\n").unwrap();
    let session = test.start(
        &json!({}),
        vec![bash("sh p.sh")],
        &["--permission-mode", "bypassPermissions", "--disallowedTools", "Read(./secrets/**),Edit(./keep)"],
    );
    let (_, frames, _) = session.finish();
    assert!(!results(&frames).contains("CANARY"), "{frames:?}");
    assert_eq!(std::fs::read_to_string(work.join("keep")).unwrap(), "kept");
}

/// S-28.
#[test]
fn bad_settings_refuse_the_session_and_name_the_key() {
    let rows = [
        (json!({"enabled": "yes"}), "sandbox.enabled"),
        (json!({"network": {"allowedDomains": ["*"]}}), "sandbox.network.allowedDomains"),
        (json!({"network": {"deniedDomains": ["a b"]}}), "sandbox.network.deniedDomains"),
        (json!({"network": {"tlsTerminate": {}}}), "sandbox.network.tlsTerminate"),
        (json!({"filesystem": {"denyRead": "x"}}), "sandbox.filesystem.denyRead"),
        (json!({"filesystem": {"denyRead": ["/**/key"]}}), "(--settings): sandbox.filesystem.denyRead"),
        (json!({"filesystem": {"denyWrite": ["/a/[x"]}}), "(--settings): sandbox.filesystem.denyWrite"),
        (json!({"filesystem": {"allowWrite": ["/"]}}), "(--settings): sandbox.filesystem.allowWrite"),
        (
            json!({"filesystem": {"allowWrite": ["/proc/../**"]}}),
            "(--settings): sandbox.filesystem.allowWrite",
        ),
    ];
    for (settings, named) in rows {
        let test = SandboxTest::new();
        let (code, frames, stderr) = test.start(&settings, vec![bash(&test.escape())], &[]).finish();
        let text = Value::from(frames).to_string() + &stderr;
        assert!(code != Some(0) && text.contains(named), "{named}: {text}");
    }
}

/// S-03.
#[test]
fn covers_and_temporary_files_end_with_the_session() {
    let test = SandboxTest::new();
    let command = "echo evil > .mcp.json; mkdir .vscode && touch .vscode/tasks.json; touch $TMPDIR/x";
    test.run(&json!({}), vec![bash(command)]);
    assert_eq!(test.names_in(&test.dirs.work_dir()), Vec::<String>::new());
    assert_eq!(test.names_in(&test.dirs.temp_dir()), Vec::<String>::new());
}

/// S-03, S-05: what a command in the background left behind is removed and reported, and Write can create covered names.
#[test]
fn background_commands_are_swept_and_report_in_their_output() {
    let test = SandboxTest::new();
    let command = format!("mkdir objects refs; touch HEAD; git init -q .; {}; true", test.escape());
    let call = tool_call("Bash", &json!({"command": command, "run_in_background": true}));
    let mut session = test.start(&json!({}), vec![call], &["--permission-mode", "bypassPermissions"]);
    let ended = session.next_frame("task_notification");
    let output = std::fs::read_to_string(ended["output_file"].as_str().unwrap()).unwrap();
    for line in ["git: ", "/HEAD was removed", "/.git is new", "evil is read-only here"] {
        assert!(output.contains(line), "{line}: {output}");
    }
    assert!(!test.dirs.work_dir().join("HEAD").exists() && !test.dirs.work_dir().join("objects").exists());
    session.close_input();
    session.finish();
}

#[test]
fn covered_names_can_be_written_by_tools_and_are_gone_after_the_turn() {
    let test = SandboxTest::new();
    let path = test.dirs.work_dir().join(".envrc");
    let write = tool_call("Write", &json!({"file_path": path, "content": "kept\n"}));
    let session = test.start(
        &json!({}),
        vec![bash("true"), write, bash("echo evil > .envrc; true")],
        &["--permission-mode", "bypassPermissions"],
    );
    session.next_frame("result");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept\n");
    assert_eq!(test.names_in(&test.dirs.work_dir()), [".envrc"]);
    session.finish();
}

/// S-26.
#[test]
fn excluded_commands_run_outside_if_all_their_parts_are_excluded() {
    for (rest, escapes) in [("", true), ("; true", false)] {
        let test = SandboxTest::new();
        let command = format!("touch {}{rest}", test.target().display());
        test.run(&json!({"excludedCommands": ["touch *"]}), vec![bash(&command)]);
        assert_eq!(test.target().exists(), escapes, "{command}");
    }
}

#[test]
fn a_policy_can_be_tried_by_hand() {
    let test = SandboxTest::new();
    let config = test.dirs.work_dir().join("../home/.claude");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join(".credentials.json"), "CANARY").unwrap();
    let script = format!(
        "cat; echo $ANTHROPIC_API_KEY; cat ~/.claude/.credentials.json; {}; touch ran; exit 7",
        test.escape()
    );
    let mut command = test.dirs.command(&["sandbox", "run", "--", "sh", "-c", &script]);
    command.env("ANTHROPIC_API_KEY", "CANARY").env("TMPDIR", test.dirs.temp_dir());
    let output = crate::harness::run_command(command, "from stdin\n");
    assert_eq!(output.code, Some(7), "{output:?}");
    assert!(output.stdout.starts_with("from stdin\n") && !output.stdout.contains("CANARY"), "{output:?}");
    assert!(!test.target().exists());
    assert_eq!(test.names_in(&test.dirs.work_dir()), ["ran"]);
    assert_eq!(test.names_in(&test.dirs.temp_dir()), Vec::<String>::new());
    let status = test.dirs.run(&["sandbox", "status", "--json"], "");
    let tiers: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!((status.code, &tiers[0]["works"]), (Some(0), &json!(true)), "{status:?}");
}

/// S-03, S-14, S-29.
#[test]
fn killed_engine_leaves_no_process_and_the_next_session_cleans_up() {
    let test = SandboxTest::new();
    let command = "setsid sleep 86399 & echo $PPID > started; sleep 86398";
    let call = tool_call("Bash", &json!({"command": command, "run_in_background": true}));
    let mut session = test.start(&json!({}), vec![call], &["--permission-mode", "bypassPermissions"]);
    session.next_frame("result");
    wait_for_number(&test.dirs.work_dir().join("started"));
    let launchers = confined_children(session.child.id());
    assert!(!launchers.is_empty());
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    wait_until("the end of the launchers", || launchers.iter().all(|pid| has_exited(*pid)).then_some(()));
    assert!(test.names_in(&test.dirs.work_dir()).contains(&".vscode".to_owned()), "a cover is left");
    test.run(&json!({}), vec![bash("true")]);
    assert_eq!(test.names_in(&test.dirs.work_dir()), ["started"]);
    assert_eq!(test.names_in(&test.dirs.temp_dir()), Vec::<String>::new());
}

/// The launchers that an engine has started.
fn confined_children(engine: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{engine}/task/{engine}/children")).unwrap();
    let is_launcher = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("__sandbox-launcher"))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_launcher).collect()
}

#[test]
fn a_session_without_a_sandbox_knows_nothing_of_it() {
    let test = SandboxTest::new();
    let frames = test.run(&json!({"enabled": false}), vec![bash(&test.escape())]);
    assert!(test.target().exists());
    let init = frames.iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert!(init["sandbox"].is_null() && !results(&frames).contains("sandbox"), "{frames:?}");
    assert_eq!(test.names_in(&test.dirs.temp_dir()), Vec::<String>::new());
}
