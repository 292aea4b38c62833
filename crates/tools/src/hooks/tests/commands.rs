//! Tests of command hooks.

use std::path::Path;

use serde_json::{Value, json};
use whimbrel_wire::hook::{HookEffort, HookPermissionDecision};

use super::super::{MergedOutput, ProgressPolicy, join_reasons};
use super::fixture::{TestHooks, blocking_command, command, input_builder, pre_tool_use, with_timeout};
use whimbrel_process::test_support::{exits, read_pid};

/// Decision on a Bash call, or the errors.
async fn decision_text(hook: super::super::CommandHook) -> String {
    let merged = TestHooks::with_commands(&[("PreToolUse", None, hook)]).run_bash_hooks().await;
    match merged.decision {
        Some(decision) => format!("{:?}: {}", decision.decision, join_reasons(&decision.reasons)),
        None => join_reasons(&merged.errors),
    }
}

#[tokio::test]
async fn a_command_gets_input_environment_and_directory() {
    let hook = command(
        r#"cat > seen; echo "$CLAUDE_PROJECT_DIR" > project; pwd > here; echo "$CLAUDE_EFFORT$OTEL_SECRET" > rest"#,
    );
    let fixture = TestHooks::with_commands(&[("PreToolUse", Some("Bash"), hook)]);
    let mut hook_call = pre_tool_use("Bash", &json!({"command": "echo \"ü\""}));
    hook_call.input.base.effort = Some(HookEffort { level: "high".into() });
    let input = serde_json::to_value(&hook_call.input).unwrap();
    assert_eq!(fixture.run(hook_call).await, MergedOutput::default());
    assert_eq!(serde_json::from_str::<Value>(&fixture.read("seen")).unwrap(), input);
    let root = format!("{}\n", fixture.deps.workspace.root().display());
    assert_eq!((fixture.read("project"), fixture.read("here")), (root.clone(), root));
    assert_eq!(fixture.read("rest"), "high\n");
}

#[tokio::test]
async fn a_command_gets_no_keys() {
    let hook = command("echo \"$ANTHROPIC_API_KEY,$OTHER\" > seen");
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, hook)]);
    let variables = ["ANTHROPIC_API_KEY", "OTHER"].map(|name| (name.to_owned(), "x".to_owned()));
    fixture.deps.workspace.set_variables(variables.into());
    fixture.run_bash_hooks().await;
    assert_eq!(fixture.read("seen"), ",x\n");
}

#[tokio::test]
async fn a_command_is_run_by_the_shell_prefix() {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command("cat > seen; exit 2"))]);
    std::fs::write(fixture.path("log.sh"), "printf %s \"$1\" >log; exec bash -c \"$1\"").unwrap();
    let prefix = ("CLAUDE_CODE_SHELL_PREFIX".to_owned(), "bash log.sh".to_owned());
    fixture.deps.workspace.set_variables([prefix].into());
    assert!(fixture.run_bash_hooks().await.decision.is_some());
    assert_eq!(fixture.read("log"), "cat > seen; exit 2");
    assert!(fixture.read("seen").contains("PreToolUse"));
}

#[tokio::test]
async fn only_events_of_the_environment_get_its_file() {
    let hook = || command("echo \"${CLAUDE_ENV_FILE-none}\" >> seen");
    let rows = [("CwdChanged", None, hook()), ("PreToolUse", None, hook())];
    let fixture = TestHooks::with_commands(&rows);
    fixture.run_bash_hooks().await;
    assert_eq!(fixture.read("seen"), "none\n");
    fixture.run(input_builder().cwd_changed(Path::new("/a"), Path::new("/b"))).await;
    let file = fixture.deps.workspace.hook_env_file().unwrap().display().to_string();
    assert_eq!(fixture.read("seen"), format!("none\n{file}\n"));
}

#[tokio::test]
async fn a_command_decides_by_exit_code_and_output() {
    let deny = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "json"}}'"#;
    for (hook, expected) in [
        (command("echo no >&2; exit 2"), "Deny: no"),
        (command(deny), "Deny: json"),
        (command("echo '{\"decision\": \"approve\"}'"), "Allow: "),
        (command("exit 1"), "it exited with code 1"),
        (command("kill -9 $$"), "it was killed by signal 9"),
        (command("exit 0"), ""),
        (blocking_command("exit 1"), "Deny: A required hook failed: it exited with code 1"),
        (
            blocking_command("echo '{broken}'"),
            "Deny: A required hook failed: its output is not valid: key must be a string at line 1 column 2",
        ),
        (
            blocking_command(r#"echo '{"decision": "block"'"#),
            "Deny: A required hook failed: its output is not valid: EOF while parsing an object at line 1 column 20",
        ),
        (
            blocking_command(r#"echo noise; echo '{"decision": "block"}'"#),
            "Deny: A required hook failed: it printed text instead of JSON output",
        ),
        (command("echo noise"), ""),
        (blocking_command("exit 0"), ""),
        (command("echo '{\"decision\": \"approve\"}'; exit 1"), "it exited with code 1"),
    ] {
        assert_eq!(decision_text(hook.clone()).await, expected, "{hook:?}");
    }
    let missing = decision_text(blocking_command("/nonexistent/guard")).await;
    assert!(missing.starts_with("Deny: A required hook failed: it exited with code 127"), "{missing}");
}

#[tokio::test]
async fn a_command_runs_although_its_directory_is_gone() {
    let fixture = TestHooks::with_commands(&[(
        "PreToolUse",
        None,
        command("pwd >&2; echo \"$CLAUDE_PROJECT_DIR\" >&2; exit 2"),
    )]);
    let root = fixture.deps.workspace.root().to_path_buf();
    std::fs::remove_dir_all(&root).unwrap();
    let decision = fixture.run_bash_hooks().await.decision.unwrap();
    let parent = root.parent().unwrap();
    assert_eq!(join_reasons(&decision.reasons), format!("{}\n{}", parent.display(), root.display()));
}

#[tokio::test]
async fn a_short_async_command_is_reported_as_async_result() {
    let script = r#"printf '{"async": true}\n{"systemMessage": "done"}\n'"#;
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command(script))]);
    let merged = fixture.run_bash_hooks().await;
    assert_eq!((merged.decision, merged.errors), (None, Vec::new()));
    fixture.executor.async_results().unwrap().wait_available().await;
    let results = fixture.executor.take_async_results(None);
    assert_eq!(results[0].system_message.as_deref(), Some("done"));
}

#[tokio::test]
async fn a_command_may_ignore_a_long_input() {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command("echo no >&2; exit 2"))]);
    let merged = fixture.run(pre_tool_use("Write", &json!({"content": "x".repeat(5_000_000)}))).await;
    assert_eq!(merged.decision.unwrap().decision, HookPermissionDecision::Deny);
}

#[tokio::test]
async fn a_timed_out_command_is_killed_with_its_children() {
    let slow = "trap '' TERM; sh -c 'echo $$ > pid; exec sleep 300'; true";
    for (hook, denied) in [(command(slow), false), (blocking_command(slow), true)] {
        let fixture = TestHooks::with_commands(&[("PreToolUse", None, with_timeout(2.0, hook))]);
        let merged = fixture.run_bash_hooks().await;
        assert!(exits(read_pid(&fixture.path("pid")).await).await);
        assert_eq!(merged.decision.is_some(), denied);
        let output =
            merged.decision.map_or(join_reasons(&merged.errors), |decision| join_reasons(&decision.reasons));
        assert!(output.contains("it did not finish within 2 s"), "{output}");
    }
}

#[tokio::test]
async fn an_interrupted_command_is_killed() {
    let fixture =
        TestHooks::with_commands(&[("PreToolUse", None, blocking_command("echo $$ > pid; sleep 300"))]);
    let interrupt = async {
        let pid = read_pid(&fixture.path("pid")).await;
        fixture.cancel.cancel();
        pid
    };
    let (merged, pid) = tokio::join!(fixture.run_bash_hooks(), interrupt);
    assert_eq!(merged, MergedOutput { interrupted: true, ..MergedOutput::default() });
    assert!(exits(pid).await);
}

#[tokio::test]
async fn the_end_of_the_session_ends_running_hooks() {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command("echo $$ > pid; sleep 300"))]);
    let end = async {
        let pid = read_pid(&fixture.path("pid")).await;
        fixture.deps.tasks.shutdown().await;
        pid
    };
    let (merged, pid) = tokio::join!(fixture.run_bash_hooks(), end);
    assert!(merged.interrupted);
    assert!(exits(pid).await);
    assert!(fixture.run_bash_hooks().await.interrupted);
}

#[tokio::test]
async fn duplicate_commands_run_once() {
    let count = command("echo x >> count");
    let fixture = TestHooks::with_commands(&[
        ("PreToolUse", None, count.clone()),
        ("PreToolUse", Some("Bash"), count.clone()),
        ("PreToolUse", Some("B.*"), count),
    ]);
    fixture.run_bash_hooks().await;
    assert_eq!(fixture.read("count"), "x\n");
}

#[tokio::test]
async fn commands_run_concurrently() {
    let fixture = TestHooks::with_commands(&[
        ("PreToolUse", None, command("echo one > pipe; echo a >&2; exit 2")),
        ("PreToolUse", None, command("read x < pipe; echo $x >&2; exit 2")),
    ]);
    fixture.create_fifo("pipe");
    assert_eq!(join_reasons(&fixture.run_bash_hooks().await.decision.unwrap().reasons), "a\none");
}

#[tokio::test]
async fn a_guard_runs_although_the_shell_directory_is_gone() {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command("pwd > here; exit 2"))]);
    fixture.deps.workspace.set_cwd(fixture.path("gone"));
    assert!(fixture.run_bash_hooks().await.decision.is_some());
    assert_eq!(fixture.read("here").trim(), fixture.deps.workspace.root().display().to_string());
}

#[tokio::test]
async fn session_start_output_is_context_and_long_output_is_saved() {
    let fixture = TestHooks::with_commands(&[
        ("SessionStart", Some("startup"), command("echo hello")),
        ("SessionStart", None, command("head -c 20000 /dev/zero | tr '\\0' x")),
    ]);
    let merged = fixture.run(input_builder().session_start("startup", None, None)).await;
    assert_eq!(merged.contexts[0], "hello");
    assert!(merged.contexts[1].len() < 3_000 && merged.contexts[1].contains("spill/hooks/"), "{merged:?}");
}

#[tokio::test]
async fn session_start_hooks_are_reported_to_the_host() {
    let hook = command("echo ready; echo oops >&2; exit 3");
    let mut fixture =
        TestHooks::with_commands(&[("SessionStart", None, hook.clone()), ("PreToolUse", None, hook)]);
    fixture.run_bash_hooks().await;
    fixture.run(input_builder().session_start("startup", None, None)).await;
    let (started, response) = (fixture.next_progress_frame().await, fixture.next_progress_frame().await);
    assert_eq!(
        (&started["subtype"], &started["hook_event"], &started["hook_name"]),
        (&json!("hook_started"), &json!("SessionStart"), &json!("SessionStart:startup"))
    );
    for (field, expected) in [
        ("subtype", json!("hook_response")),
        ("hook_id", started["hook_id"].clone()),
        ("stdout", json!("ready\n")),
        ("stderr", json!("oops\n")),
        ("exit_code", json!(3)),
        ("outcome", json!("error")),
    ] {
        assert_eq!(response[field], expected, "{field}");
    }
    let both: Vec<&str> = response["output"].as_str().unwrap().lines().collect();
    assert!(both.contains(&"ready") && both.contains(&"oops"), "{both:?}");
    assert!(fixture.frames.try_recv().is_err());
}

#[tokio::test]
async fn all_hooks_are_reported_with_progress_on_request() {
    let hook = command("echo half; read x < pipe; echo whole");
    let mut fixture = TestHooks::with_progress(ProgressPolicy::All, &[("PreToolUse", None, hook)]);
    fixture.create_fifo("pipe");
    let hooks = fixture.executor.clone();
    let run = tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &<_>::default()).await });
    assert_eq!(fixture.next_progress_frame().await["hook_name"], "PreToolUse:Bash");
    let progress = fixture.next_progress_frame().await;
    assert_eq!((&progress["subtype"], &progress["stdout"]), (&json!("hook_progress"), &json!("half\n")));
    fixture.release_fifo("pipe").await;
    let response = fixture.next_progress_frame().await;
    assert_eq!((&response["stdout"], &response["outcome"]), (&json!("half\nwhole\n"), &json!("success")));
    run.await.unwrap();
}

#[tokio::test]
async fn a_timed_out_hook_is_reported_as_cancelled() {
    let hook = with_timeout(0.2, command("sleep 300"));
    let mut fixture = TestHooks::with_commands(&[("SessionStart", None, hook)]);
    fixture.run(input_builder().session_start("startup", None, None)).await;
    assert_eq!(fixture.next_progress_frame().await["subtype"], "hook_started");
    let response = fixture.next_progress_frame().await;
    assert_eq!((&response["outcome"], response.get("exit_code")), (&json!("cancelled"), None));
}

#[tokio::test]
async fn a_dropped_hook_is_reported_as_cancelled() {
    let hook = command("echo working; read line < hold");
    let mut fixture = TestHooks::with_progress(ProgressPolicy::All, &[("PreToolUse", None, hook)]);
    fixture.create_fifo("hold");
    let hooks = fixture.executor.clone();
    let run = tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &<_>::default()).await });
    assert_eq!(fixture.next_progress_frame().await["subtype"], "hook_started");
    assert_eq!(fixture.next_progress_frame().await["subtype"], "hook_progress");
    run.abort();
    let response = fixture.next_progress_frame().await;
    assert_eq!(response["subtype"], "hook_response");
    assert_eq!((&response["outcome"], &response["stdout"]), (&json!("cancelled"), &json!("working\n")));
}
