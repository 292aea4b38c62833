//! Hooks that nobody waits for.

use whimbrel_wire::hook::HookEvent;

use super::super::{CommandHook, Folded, LateAnswer};
use super::stage::{Stage, background, command, hasty, scene, strict};
use crate::tasks::tests::{gone, pid_from};

const CONTEXT: &str = r#"echo '{"systemMessage": "m", "decision": "block", "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "c"}}'"#;

async fn only_late(stage: &Stage) -> LateAnswer {
    let arrived = stage.hooks.late().unwrap().arrived();
    tokio::time::timeout(std::time::Duration::from_secs(60), arrived).await.unwrap();
    let mut late = stage.hooks.take_late(None);
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(stage.hooks.take_late(None), []);
    late.remove(0)
}

fn waiting(hook: CommandHook) -> Stage {
    let stage = Stage::with_commands(&[("PreToolUse", None, hook)]);
    stage.hold("pipe");
    stage
}

#[tokio::test]
async fn the_turn_goes_on_and_the_answer_comes_later() {
    for (name, hook) in [
        ("by settings", background(&format!("cat > seen; read x < pipe; {CONTEXT}"))),
        (
            "by its own word",
            command(&format!("cat > seen; echo '{{\"async\": true}}'; read x < pipe; {CONTEXT}")),
        ),
        (
            "for as long as it says",
            hasty(
                30.0,
                command(&format!(
                    "cat > seen; echo '{{\"async\": true, \"asyncTimeout\": 60000}}'; read x < pipe; {CONTEXT}"
                )),
            ),
        ),
    ] {
        let stage = waiting(hook);
        assert_eq!(stage.before_bash().await, Folded::default(), "{name}");
        assert_eq!(stage.hooks.take_late(None), [], "{name}");
        stage.let_go("pipe").await;
        let late = only_late(&stage).await;
        assert_eq!(late.event, HookEvent::PreToolUse, "{name}");
        assert_eq!(
            (late.context.as_deref(), late.system_message.as_deref()),
            (Some("c"), Some("m")),
            "{name}"
        );
        assert_eq!(late.fault, None, "{name}");
        assert!(stage.read("seen").contains("toolu_1"), "{name}");
    }
}

#[tokio::test]
async fn an_interrupt_does_not_stop_what_nobody_waits_for() {
    let stage = waiting(background(&format!("read x < pipe; {CONTEXT}")));
    stage.before_bash().await;
    stage.cancel.cancel();
    stage.let_go("pipe").await;
    assert_eq!(only_late(&stage).await.context.as_deref(), Some("c"));
}

#[tokio::test]
async fn one_that_takes_too_long_is_ended_and_reported() {
    for (name, hook) in [
        ("by settings", hasty(2.0, background("echo $$ > pid; exec sleep 300"))),
        (
            "by its own word",
            command("echo $$ > pid; echo '{\"async\": true, \"asyncTimeout\": 2000}'; exec sleep 300"),
        ),
    ] {
        let stage = Stage::with_commands(&[("PreToolUse", None, hook)]);
        assert_eq!(stage.before_bash().await, Folded::default(), "{name}");
        assert_eq!(only_late(&stage).await.fault.as_deref(), Some("it did not end within 2 s"), "{name}");
        assert!(gone(pid_from(&stage.path("pid")).await).await, "{name}");
    }
}

#[tokio::test]
async fn a_failure_is_reported_and_silence_is_not() {
    let stage = Stage::with_commands(&[
        ("PreToolUse", None, background("echo just text")),
        ("PreToolUse", None, background("echo tests fail >&2; exit 1")),
    ]);
    stage.before_bash().await;
    let late = only_late(&stage).await;
    assert_eq!(late.fault.as_deref(), Some("it ended with code 1: tests fail"));
    assert_eq!((late.context, &*late.hook), (None, "echo tests fail >&2; exit 1"));
}

#[tokio::test]
async fn the_end_of_the_session_ends_them() {
    let stage = Stage::with_commands(&[("PreToolUse", None, background("echo $$ > pid; sleep 300"))]);
    stage.before_bash().await;
    let pid = pid_from(&stage.path("pid")).await;
    stage.desk.tasks.shutdown().await;
    assert!(gone(pid).await);
    assert_eq!(stage.hooks.take_late(None), []);
}

#[tokio::test]
async fn one_that_must_agree_and_asks_for_time_has_not_failed() {
    let stage = waiting(strict("echo '{\"async\": true}'; read x < pipe"));
    assert_eq!(stage.before_bash().await, Folded::default());
    stage.let_go("pipe").await;
}

#[tokio::test]
async fn at_the_end_of_a_session_there_is_no_later() {
    let stage = Stage::with_commands(&[("SessionEnd", None, background("echo done > done"))]);
    stage.raise(scene().session_end("other")).await;
    assert_eq!(stage.read("done"), "done\n");
}

#[tokio::test]
async fn an_interrupted_turn_starts_no_hooks() {
    let stage = Stage::with_commands(&[("PreToolUse", None, command("touch ran"))]);
    stage.cancel.cancel();
    assert_eq!(stage.before_bash().await, Folded { interrupted: true, ..Folded::default() });
    assert!(!stage.path("ran").exists());
}
