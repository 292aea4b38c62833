//! Tests of async hooks.

use whimbrel_wire::hook::HookEvent;

use super::super::{AsyncResult, CommandHook, MergedOutput};
use super::fixture::{TestHooks, background_command, blocking_command, command, input_builder, with_timeout};
use whimbrel_process::test_support::{exits, read_pid};

const CONTEXT: &str = r#"echo '{"systemMessage": "m", "decision": "block", "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "c"}}'"#;

async fn only_result(fixture: &TestHooks) -> AsyncResult {
    let available = fixture.executor.async_results().unwrap().wait_available();
    tokio::time::timeout(std::time::Duration::from_secs(60), available).await.unwrap();
    let mut results = fixture.executor.take_async_results(None);
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(fixture.executor.take_async_results(None), []);
    results.remove(0)
}

fn with_fifo(hook: CommandHook) -> TestHooks {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, hook)]);
    fixture.create_fifo("pipe");
    fixture
}

#[tokio::test]
async fn an_async_hook_delivers_its_output_later() {
    for (name, hook) in [
        ("by settings", background_command(&format!("cat > seen; read x < pipe; {CONTEXT}"))),
        (
            "by its output",
            command(&format!("cat > seen; echo '{{\"async\": true}}'; read x < pipe; {CONTEXT}")),
        ),
        (
            "with its own timeout",
            with_timeout(
                30.0,
                command(&format!(
                    "cat > seen; echo '{{\"async\": true, \"asyncTimeout\": 60000}}'; read x < pipe; {CONTEXT}"
                )),
            ),
        ),
    ] {
        let fixture = with_fifo(hook);
        assert_eq!(fixture.run_bash_hooks().await, MergedOutput::default(), "{name}");
        assert_eq!(fixture.executor.take_async_results(None), [], "{name}");
        fixture.release_fifo("pipe").await;
        let result = only_result(&fixture).await;
        assert_eq!(result.event, HookEvent::PreToolUse, "{name}");
        assert_eq!(
            (result.context.as_deref(), result.system_message.as_deref()),
            (Some("c"), Some("m")),
            "{name}"
        );
        assert_eq!(result.error, None, "{name}");
        assert!(fixture.read("seen").contains("toolu_1"), "{name}");
    }
}

#[tokio::test]
async fn an_interrupt_does_not_cancel_async_hooks() {
    let fixture = with_fifo(background_command(&format!("read x < pipe; {CONTEXT}")));
    fixture.run_bash_hooks().await;
    fixture.cancel.cancel();
    fixture.release_fifo("pipe").await;
    assert_eq!(only_result(&fixture).await.context.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_timed_out_async_hook_is_ended_and_reported() {
    for (name, hook) in [
        ("by settings", with_timeout(2.0, background_command("echo $$ > pid; exec sleep 300"))),
        (
            "by its output",
            command("echo $$ > pid; echo '{\"async\": true, \"asyncTimeout\": 2000}'; exec sleep 300"),
        ),
    ] {
        let fixture = TestHooks::with_commands(&[("PreToolUse", None, hook)]);
        assert_eq!(fixture.run_bash_hooks().await, MergedOutput::default(), "{name}");
        assert_eq!(
            only_result(&fixture).await.error.as_deref(),
            Some("it did not finish within 2 s"),
            "{name}"
        );
        assert!(exits(read_pid(&fixture.path("pid")).await).await, "{name}");
    }
}

#[tokio::test]
async fn only_failures_of_async_hooks_are_reported() {
    let fixture = TestHooks::with_commands(&[
        ("PreToolUse", None, background_command("echo just text")),
        ("PreToolUse", None, background_command("echo tests fail >&2; exit 1")),
    ]);
    fixture.run_bash_hooks().await;
    let result = only_result(&fixture).await;
    assert_eq!(result.error.as_deref(), Some("it exited with code 1: tests fail"));
    assert_eq!((result.context, &*result.hook), (None, "echo tests fail >&2; exit 1"));
}

#[tokio::test]
async fn the_end_of_the_session_ends_async_hooks() {
    let fixture =
        TestHooks::with_commands(&[("PreToolUse", None, background_command("echo $$ > pid; sleep 300"))]);
    fixture.run_bash_hooks().await;
    let pid = read_pid(&fixture.path("pid")).await;
    fixture.deps.tasks.shutdown().await;
    assert!(exits(pid).await);
    assert_eq!(fixture.executor.take_async_results(None), []);
}

#[tokio::test]
async fn a_required_hook_may_go_async() {
    let fixture = with_fifo(blocking_command("echo '{\"async\": true}'; read x < pipe"));
    assert_eq!(fixture.run_bash_hooks().await, MergedOutput::default());
    fixture.release_fifo("pipe").await;
}

#[tokio::test]
async fn session_end_hooks_are_awaited_even_if_async() {
    let fixture = TestHooks::with_commands(&[("SessionEnd", None, background_command("echo done > done"))]);
    fixture.run(input_builder().session_end("other")).await;
    assert_eq!(fixture.read("done"), "done\n");
}

#[tokio::test]
async fn an_interrupted_turn_starts_no_hooks() {
    let fixture = TestHooks::with_commands(&[("PreToolUse", None, command("touch ran"))]);
    fixture.cancel.cancel();
    assert_eq!(fixture.run_bash_hooks().await, MergedOutput { interrupted: true, ..MergedOutput::default() });
    assert!(!fixture.path("ran").exists());
}
