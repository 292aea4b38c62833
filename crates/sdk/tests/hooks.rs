//! Hooks as async closures, with the engine in this process: their effects, by event.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel::wire::hook::{HookEvent, HookEventInput, HookInput, HookOutput};
use whimbrel::wire::message::{TerminalReason, TurnResult};
use whimbrel::wire::permission::{PermissionMode, PermissionResult};
use whimbrel::{Agent, Hook, Scripted, Session, query};

/// A scripted agent in an empty directory, and the script, which records its requests.
struct Fixture {
    agent: Agent,
    script: Arc<Scripted>,
    work_dir: TempDir,
}

impl Fixture {
    fn new(replies: Value) -> Self {
        let work_dir = tempfile::tempdir().unwrap();
        let script = Arc::new(Scripted::replies(replies).unwrap());
        let agent = Agent::new().cwd(work_dir.path()).persist_session(false).script(Arc::clone(&script));
        Self { agent, script, work_dir }
    }

    fn hook(mut self, event: HookEvent, answer: Value) -> Self {
        self.agent = self.agent.hook(Hook::on(event, move |_| std::future::ready(parse_output(&answer))));
        self
    }

    /// Result of the run, whether it succeeded or not.
    async fn run(&self) -> TurnResult {
        match with_timeout(query("go", &self.agent)).await {
            Ok(answer) => answer.into_result(),
            Err(error) => error.result().unwrap().clone(),
        }
    }

    fn has_made_dir(&self) -> bool {
        self.work_dir.path().join("made").exists()
    }

    /// Last request to the model.
    fn last_request(&self) -> String {
        self.script.requests().last().unwrap().to_string()
    }
}

fn parse_output(answer: &Value) -> HookOutput {
    serde_json::from_value(answer.clone()).unwrap()
}

fn specific_output(event: HookEvent, mut more: Value) -> Value {
    more["hookEventName"] = json!(event);
    json!({"hookSpecificOutput": more})
}

fn mkdir_call() -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": {"command": "mkdir made"}}])
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap()
}

#[tokio::test]
async fn pre_tool_use_hook_decides_before_the_rules() {
    let decide = |decision: &str| {
        specific_output(
            HookEvent::PreToolUse,
            json!({"permissionDecision": decision, "permissionDecisionReason": "the hook's words"}),
        )
    };
    let rows = [
        ("allow", PermissionMode::Default, true, 0),
        ("deny", PermissionMode::BypassPermissions, false, 1),
        ("ask", PermissionMode::Default, false, 1),
    ];
    for (decision, mode, made, denials) in rows {
        let fixture =
            Fixture::new(json!([mkdir_call(), "done"])).hook(HookEvent::PreToolUse, decide(decision));
        let agent = fixture.agent.clone().permission_mode(mode).env("IS_SANDBOX", "1");
        let fixture = Fixture { agent, ..fixture };
        let result = fixture.run().await;
        assert_eq!(result.result.as_deref(), Some("done"), "{decision}");
        assert_eq!((fixture.has_made_dir(), result.permission_denials.len()), (made, denials), "{decision}");
        assert_eq!(fixture.last_request().contains("the hook's words"), decision == "deny", "{decision}");
    }
}

#[tokio::test]
async fn input_changed_by_a_hook_is_checked_again() {
    let change = |decision: Option<&str>| {
        let mut answer = json!({"updatedInput": {"command": "mkdir made"}});
        if let Some(decision) = decision {
            answer["permissionDecision"] = json!(decision);
        }
        specific_output(HookEvent::PreToolUse, answer)
    };
    for (decision, rules, made) in
        [(None, &[][..], false), (None, &["Bash(mkdir *)"][..], true), (Some("allow"), &[][..], true)]
    {
        let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]);
        let fixture = Fixture::new(json!([call, "done"])).hook(HookEvent::PreToolUse, change(decision));
        let fixture =
            Fixture { agent: fixture.agent.clone().allowed_tools(rules.iter().copied()), ..fixture };
        fixture.run().await;
        assert_eq!(fixture.has_made_dir(), made, "{decision:?} {rules:?}");
    }
    let fixture =
        Fixture::new(json!([mkdir_call(), "done"])).hook(HookEvent::PreToolUse, change(Some("allow")));
    let fixture = Fixture { agent: fixture.agent.clone().disallowed_tools(["Bash(mkdir *)"]), ..fixture };
    fixture.run().await;
    assert!(!fixture.has_made_dir(), "a rule that denies holds against a hook");
}

#[tokio::test]
async fn hook_ends_the_turn_or_defers_a_call() {
    let stop = json!({"continue": false, "stopReason": "enough"});
    for event in [HookEvent::PreToolUse, HookEvent::PostToolUse] {
        let fixture = Fixture::new(json!([mkdir_call(), "never said"])).hook(event, stop.clone());
        let fixture = Fixture { agent: fixture.agent.clone().allowed_tools(["Bash"]), ..fixture };
        let result = fixture.run().await;
        assert!(fixture.has_made_dir(), "{event}");
        assert_eq!(result.terminal_reason, Some(TerminalReason::HookStopped), "{event}");
        assert_eq!((result.is_error, result.result.as_deref()), (false, Some("")), "{event}");
    }
    let defer = specific_output(HookEvent::PreToolUse, json!({"permissionDecision": "defer"}));
    let fixture = Fixture::new(json!([mkdir_call(), "never said"])).hook(HookEvent::PreToolUse, defer);
    let result = fixture.run().await;
    assert!(!fixture.has_made_dir());
    assert_eq!(result.terminal_reason, Some(TerminalReason::ToolDeferred));
    assert_eq!(result.deferred_tool_use.unwrap()["input"], json!({"command": "mkdir made"}));
}

#[tokio::test]
async fn only_a_single_call_can_be_deferred() {
    let list = json!({"type": "tool_use", "name": "Bash", "input": {"command": "ls"}});
    let make = json!({"type": "tool_use", "name": "Bash", "input": {"command": "mkdir made"}});
    let defer = specific_output(HookEvent::PreToolUse, json!({"permissionDecision": "defer"}));
    let fixture = Fixture::new(json!([[list, make], "done"])).hook(HookEvent::PreToolUse, defer);
    let fixture = Fixture { agent: fixture.agent.clone().allowed_tools(["Bash"]), ..fixture };
    let result = fixture.run().await;
    assert!(fixture.has_made_dir(), "the rules decide");
    assert_eq!((result.result.as_deref(), result.deferred_tool_use), (Some("done"), None));
}

#[tokio::test]
async fn call_too_long_to_show_is_not_run() {
    let command = format!("mkdir made # {}", "x".repeat(1_000_000));
    let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}]);
    let fixture = Fixture::new(json!([call, "done"]));
    let fixture = Fixture {
        agent: fixture.agent.clone().can_use_tool(|_| async { PermissionResult::allow() }),
        ..fixture
    };
    fixture.run().await;
    assert!(!fixture.has_made_dir() && fixture.last_request().contains("too long for a permission request"));
}

#[tokio::test]
async fn input_changed_by_a_permission_hook_is_asked_again() {
    let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "touch other"}}]);
    let decision = json!({"decision": {"behavior": "allow", "updatedInput": {"command": "mkdir made"}}});
    let fixture = Fixture::new(json!([call, "done"]))
        .hook(HookEvent::PermissionRequest, specific_output(HookEvent::PermissionRequest, decision));
    let agent = fixture.agent.clone().can_use_tool(|asked| async move {
        match asked.input["command"] == "mkdir made" {
            true => PermissionResult::allow(),
            false => std::future::pending().await,
        }
    });
    let fixture = Fixture { agent, ..fixture };
    assert_eq!(fixture.run().await.result.as_deref(), Some("done"));
    assert!(fixture.has_made_dir());
}

#[tokio::test]
async fn hook_context_follows_the_tool_results() {
    let two = json!([
        {"type": "tool_use", "name": "Bash", "input": {"command": "echo one"}},
        {"type": "tool_use", "name": "Bash", "input": {"command": "echo two"}},
    ]);
    let fixture = Fixture::new(json!([two, "done"]))
        .hook(
            HookEvent::PostToolUse,
            specific_output(HookEvent::PostToolUse, json!({"additionalContext": "AFTER-CALL"})),
        )
        .hook(
            HookEvent::PostToolBatch,
            specific_output(HookEvent::PostToolBatch, json!({"additionalContext": "AFTER-ALL"})),
        )
        .hook(
            HookEvent::UserPromptSubmit,
            specific_output(HookEvent::UserPromptSubmit, json!({"additionalContext": "WITH-PROMPT"})),
        );
    fixture.run().await;
    let sent = fixture.last_request();
    let at = |text: &str| sent.rfind(text).unwrap_or_else(|| panic!("{text} is missing: {sent}"));
    assert!(at("WITH-PROMPT") < at("tool_result") && at("tool_result") < at("AFTER-CALL"), "{sent}");
    assert!(at("AFTER-CALL") < at("AFTER-ALL"), "{sent}");
    assert_eq!(sent.matches("AFTER-CALL").count(), 2);
}

#[tokio::test]
async fn blocked_prompt_never_reaches_the_model() {
    let fixture = Fixture::new(json!(["never said"]))
        .hook(HookEvent::UserPromptSubmit, json!({"decision": "block", "reason": "not today"}));
    let result = fixture.run().await;
    assert!(result.result.unwrap().contains("not today"));
    assert!(fixture.script.requests().is_empty());
}

#[tokio::test]
async fn stop_hook_continues_the_turn_with_a_limit() {
    let (seen, active) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let count = (Arc::clone(&seen), Arc::clone(&active));
    let fixture = Fixture::new(json!(vec!["still done"; 9]));
    let hook = Hook::on(HookEvent::Stop, move |input: HookInput| {
        count.0.fetch_add(1, Ordering::SeqCst);
        if let HookEventInput::Stop(stop) = &input.event {
            count.1.fetch_add(u32::from(stop.stop_hook_active), Ordering::SeqCst);
        }
        async { Hook::block("KEEP GOING") }
    });
    let fixture = Fixture { agent: fixture.agent.clone().hook(hook), ..fixture };
    assert_eq!(fixture.run().await.result.as_deref(), Some("still done"));
    assert_eq!((seen.load(Ordering::SeqCst), active.load(Ordering::SeqCst)), (9, 8));
    assert!(fixture.last_request().contains("KEEP GOING"));
}

#[tokio::test]
async fn permission_hook_answers_and_the_request_is_cancelled() {
    for (behavior, made) in [("allow", true), ("deny", false)] {
        let decision = json!({"decision": {"behavior": behavior, "message": "no"}});
        let fixture = Fixture::new(json!([mkdir_call(), "done"]))
            .hook(HookEvent::PermissionRequest, specific_output(HookEvent::PermissionRequest, decision));
        let agent = fixture.agent.clone().can_use_tool(|_| std::future::pending::<PermissionResult>());
        let fixture = Fixture { agent, ..fixture };
        assert_eq!(fixture.run().await.result.as_deref(), Some("done"), "{behavior}");
        assert_eq!(fixture.has_made_dir(), made, "{behavior}");
    }
}

#[tokio::test]
async fn failing_hook_blocks_only_with_block_on_failure() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for block_on_failure in [false, true] {
        let fixture = Fixture::new(json!([mkdir_call(), "done"]));
        let hook = Hook::on(HookEvent::PreToolUse, |_| async { panic!("broken") });
        let hook = if block_on_failure { hook.block_on_failure() } else { hook };
        let fixture = Fixture { agent: fixture.agent.clone().allowed_tools(["Bash"]).hook(hook), ..fixture };
        fixture.run().await;
        assert_eq!(fixture.has_made_dir(), !block_on_failure, "{block_on_failure}");
    }
    std::panic::set_hook(quiet);
}

#[tokio::test]
async fn permission_request_ends_by_mode_change_or_timeout() {
    let fixture = Fixture::new(json!([
        [{"type": "tool_use", "name": "Write", "input": {"file_path": "made", "content": ""}}], "done"
    ]));
    let (ask, asked) = tokio::sync::oneshot::channel();
    let ask = Mutex::new(Some(ask));
    let agent = fixture.agent.clone().can_use_tool(move |_| {
        ask.lock().unwrap().take().unwrap().send(()).unwrap();
        std::future::pending::<PermissionResult>()
    });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    with_timeout(asked).await.unwrap();
    session.controls().set_permission_mode(PermissionMode::AcceptEdits).await.unwrap();
    assert_eq!(with_timeout(session.result()).await.unwrap().result.as_deref(), Some("done"));
    assert!(fixture.has_made_dir());

    let fixture = Fixture::new(json!([mkdir_call(), "done"]));
    let agent = fixture.agent.clone().can_use_tool(|_| std::future::pending::<PermissionResult>());
    let fixture = Fixture { agent: agent.permission_timeout(Duration::from_millis(20)), ..fixture };
    assert_eq!(fixture.run().await.permission_denials.len(), 1);
    assert!(
        !fixture.has_made_dir() && fixture.last_request().contains("in time"),
        "{}",
        fixture.last_request()
    );
}

#[tokio::test]
async fn subagent_has_the_same_hooks_and_identifies_itself() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let start = json!([{"type": "tool_use", "name": "Agent",
        "input": {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}}]);
    let look = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "echo seen"}}]);
    let fixture = Fixture::new(json!([start, look, "the report", "done"]));
    let mut agent = fixture.agent.clone();
    for event in [HookEvent::SubagentStart, HookEvent::PreToolUse, HookEvent::SubagentStop, HookEvent::Stop] {
        let events = Arc::clone(&events);
        agent = agent.hook(Hook::on(event, move |input: HookInput| {
            assert!(input.base.prompt_id.is_some(), "{event}");
            events.lock().unwrap().push((event, input.base.agent_id.is_some(), input.base.agent_type));
            async { Hook::no_opinion() }
        }));
    }
    let fixture = Fixture { agent, ..fixture };
    assert_eq!(fixture.run().await.result.as_deref(), Some("done"));
    let kind = || Some("general-purpose".to_owned());
    let expected = [
        (HookEvent::PreToolUse, false, None),
        (HookEvent::SubagentStart, true, kind()),
        (HookEvent::PreToolUse, true, kind()),
        (HookEvent::SubagentStop, true, kind()),
        (HookEvent::Stop, false, None),
    ];
    assert_eq!(*events.lock().unwrap(), expected);
}

#[tokio::test]
async fn hook_for_an_unknown_event_is_reported() {
    use whimbrel::Frame;
    let fixture = Fixture::new(json!(["done"]));
    let mut session = Session::open(&fixture.agent).await.unwrap();
    let hooks = json!({"NoSuchEvent": [{"hookCallbackIds": ["x"]}]});
    session
        .controls()
        .call(serde_json::from_value::<whimbrel::wire::control::Initialize>(json!({"hooks": hooks})).unwrap())
        .await
        .unwrap();
    session.send("go").await.unwrap();
    let mut is_reported = false;
    while let Some(frame) = with_timeout(session.next()).await {
        let frame = frame.unwrap();
        is_reported |= serde_json::to_string(&frame).unwrap().contains("NoSuchEvent");
        if matches!(frame, Frame::Result(_)) {
            break;
        }
    }
    assert!(is_reported);
}
