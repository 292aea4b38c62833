//! Plan mode and interactive tools: reminders and tools for the model, and requests that are open while something else
//! happens.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, Script, SessionDirs};
use whimbrel_wire::control::{ControlResponse, Initialize, Interrupt, SetPermissionMode};
use whimbrel_wire::message::Outcome;
use whimbrel_wire::options::{Options, PermissionPromptTool, SystemPrompt};
use whimbrel_wire::permission::PermissionMode::{self, AcceptEdits, Default as Usual, DontAsk, Plan};

const INTERACTIVE_TOOLS: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

fn exit_plan_call(text: &str) -> Reply {
    Reply::tool("ExitPlanMode", json!({"plan": text}))
}

fn write_call(file: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": file, "content": "x"}))
}

/// A host whose responses the test sends by hand.
fn host(mode: PermissionMode, script: impl Into<Script>) -> HostBuilder {
    let options = Options {
        permission_mode: Some(mode),
        permission_prompt_tool: Some(PermissionPromptTool::Stdio),
        ..Options::default()
    };
    Host::with_script(script).options(options).on_request(|_| HostResponse::NoResponse)
}

/// Waits for the permission request of this tool; returns its id.
async fn wait_for_permission_request(host: &mut Host, tool: &str) -> String {
    let request =
        json!({"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": tool}});
    host.next_matching(&request).await.unwrap()["request_id"].as_str().unwrap().to_owned()
}

async fn send_response(host: &mut Host, id: &str, reply: Value) {
    host.send_frame(ControlResponse::success(id, &reply)).await.unwrap();
}

/// The mode in the `init` frame of the next turn.
async fn mode_of_next_turn(host: &mut Host) -> Value {
    host.send_prompt("And now?").await.unwrap();
    let init =
        host.next_matching(&json!({"type": "system", "subtype": "init"})).await.unwrap()["permissionMode"]
            .clone();
    host.next_result().await.unwrap();
    init
}

/// Every mode reported by a `status` frame.
fn reported_modes(host: &Host) -> Vec<Value> {
    let lines = host.received().iter().map(|received| &received.json);
    let changes = lines.filter(|line| line["subtype"] == "status" && !line["permissionMode"].is_null());
    changes.map(|line| line["permissionMode"].clone()).collect()
}

/// Occurrences of a text in the messages of the last request.
fn count_in_last_request(host: &Host, text: &str) -> usize {
    json!(host.model_requests().last().unwrap().messages()).to_string().matches(text).count()
}

#[tokio::test]
async fn interactive_tools_need_a_responder_and_the_main_agent() {
    let no_responder = Options { permission_prompt_tool: None, ..Options::default() };
    let agent_call = Reply::tool("Agent", json!({"description": "look", "prompt": "Look."}));
    let script = [agent_call, Reply::text("Looked."), Reply::text("Done.")];
    let rows = [
        ("with a responder", host(Usual, script.clone()), true),
        ("without a responder", Host::with_script(script.clone()).options(no_responder), false),
        ("in dontAsk mode", host(DontAsk, script), false),
    ];
    for (name, builder, expected) in rows {
        let mut host = builder.start().await.unwrap();
        host.run("Go.").await.unwrap();
        let requests = host.model_requests();
        for tool in INTERACTIVE_TOOLS {
            assert_eq!(requests[0].tool_names().contains(&tool), expected, "{name}: {tool}");
            assert!(!requests[1].tool_names().contains(&tool), "{name}: the subagent has {tool}");
        }
        assert!(requests[1].contains_text("Look.") && requests[1].tool_names().contains(&"Read"), "{name}");
    }
}

#[tokio::test]
async fn interactive_tools_follow_the_mode() {
    let script = [Reply::text("One."), Reply::text("Two."), Reply::text("Three."), Reply::text("Four.")];
    let mut host = host(DontAsk, script).start().await.unwrap();
    for (mode, expected) in [(DontAsk, false), (Usual, true), (DontAsk, false), (Plan, true)] {
        host.send_request(SetPermissionMode { mode }).await.unwrap();
        host.send_prompt("Go.").await.unwrap();
        let init = host.next_matching(&json!({"type": "system", "subtype": "init"})).await.unwrap().clone();
        host.next_result().await.unwrap();
        let requests = host.model_requests();
        for tool in INTERACTIVE_TOOLS {
            assert_eq!(requests.last().unwrap().tool_names().contains(&tool), expected, "{mode}: {tool}");
            assert_eq!(init["tools"].as_array().unwrap().contains(&json!(tool)), expected, "{mode}: {tool}");
        }
    }
}

#[tokio::test]
async fn matching_hook_makes_interactive_tools_available() {
    let no_responder = || Options { permission_prompt_tool: None, ..Options::default() };
    let question_input = json!({"question": "Which color?", "header": "Color", "multiSelect": false,
        "options": [{"label": "Blue", "description": "b"}, {"label": "Red", "description": "r"}]});
    let answered = json!({"questions": [question_input], "answers": {"Which color?": "Blue"}});
    let script =
        || [Reply::tool("AskUserQuestion", json!({"questions": [question_input]})), Reply::text("I see.")];
    let rows = [
        ("named before calls", "PreToolUse", Some("AskUserQuestion"), &["AskUserQuestion"][..]),
        ("for every call", "PreToolUse", None, &[]),
        ("instead of the user", "PermissionRequest", None, &INTERACTIVE_TOOLS),
        ("plans", "PreToolUse", Some("ExitPlanMode"), &["EnterPlanMode", "ExitPlanMode"]),
    ];
    for (name, event, matcher, expected) in rows {
        let allow = json!({"hookEventName": event, "permissionDecision": "allow", "updatedInput": answered,
            "decision": {"behavior": "allow", "updatedInput": answered}});
        let mut host = Host::with_script(script())
            .options(no_responder())
            .on_request(move |_| HostResponse::Success(json!({"hookSpecificOutput": allow})))
            .start()
            .await
            .unwrap();
        let hooks = json!({"hooks": {event: [{"matcher": matcher, "hookCallbackIds": ["h"]}]}});
        host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
        host.run("Ask.").await.unwrap();
        let requests = host.model_requests();
        let offered: Vec<&str> =
            INTERACTIVE_TOOLS.into_iter().filter(|tool| requests[0].tool_names().contains(tool)).collect();
        assert_eq!(offered, expected, "{name}");
        let answered = expected.contains(&"AskUserQuestion");
        assert_eq!(
            requests[1].contains_text("Which color? → Blue"),
            answered,
            "{name}: {:?}",
            requests[1].messages()
        );
    }
}

#[tokio::test]
async fn first_plan_mode_request_stays_below_14_kib() {
    let mut host = host(Plan, [Reply::text("Hm.")]).start().await.unwrap();
    host.run("Plan it.").await.unwrap();
    let first = &host.model_requests()[0];
    assert!(first.contains_text("plan mode") && !first.system_prompt().contains("plan mode"));
    let size = first.body.to_string().len();
    assert!(size <= 14 * 1024, "{size} bytes: {}", first.body);
}

#[tokio::test]
async fn plan_mode_reminders_are_sent_once_per_change() {
    let script = [Reply::text("One."), Reply::text("Two."), Reply::text("Three."), Reply::text("Four.")];
    let mut host = host(Plan, script).start().await.unwrap();
    host.run("First.").await.unwrap();
    assert_eq!(count_in_last_request(&host, "in plan mode"), 1);
    host.run("Second.").await.unwrap();
    assert_eq!(
        (count_in_last_request(&host, "is in plan mode"), count_in_last_request(&host, "still in plan mode")),
        (1, 1)
    );
    host.send_request(SetPermissionMode { mode: Usual }).await.unwrap();
    host.run("Third.").await.unwrap();
    host.run("Fourth.").await.unwrap();
    assert_eq!(
        (
            count_in_last_request(&host, "still in plan mode"),
            count_in_last_request(&host, "Plan mode is over")
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn mode_switch_is_announced_with_the_next_model_request() {
    let mut host = host(Usual, [write_call("a.txt"), Reply::text("I see.")]).start().await.unwrap();
    host.send_prompt("Write it.").await.unwrap();
    let id = wait_for_permission_request(&mut host, "Write").await;
    host.send_request(SetPermissionMode { mode: Plan }).await.unwrap();
    send_response(&mut host, &id, json!({"behavior": "deny", "message": "Plan first."})).await;
    host.next_result().await.unwrap();
    let requests = host.model_requests();
    assert!(!requests[0].contains_text("plan mode") && requests[1].contains_text("is in plan mode"));
}

#[tokio::test]
async fn plan_mode_reminder_survives_compaction() {
    let script = [Reply::text("Hm."), Reply::text("The summary."), Reply::text("Still here.")];
    let mut host = host(Plan, script).start().await.unwrap();
    host.run("Plan it.").await.unwrap();
    host.run("/compact").await.unwrap();
    host.run("Go on.").await.unwrap();
    assert_eq!(count_in_last_request(&host, "The session is in plan mode"), 1);
}

#[tokio::test]
async fn plan_mode_is_announced_again_after_rejected_input() {
    let rejected = Reply::empty().status(400).error("invalid_request_error", "no");
    let mut host = host(Plan, [rejected, Reply::text("Hm.")]).start().await.unwrap();
    for prompt in ["Plan it.", "Plan it again."] {
        host.run(prompt).await.unwrap();
        assert_eq!(count_in_last_request(&host, "The session is in plan mode"), 1, "{prompt}");
    }
}

#[tokio::test]
async fn resumed_session_announces_its_plan_mode_state() {
    const OVER: &str = "Plan mode is over";
    const STARTED: &str = "The session is in plan mode";
    const PLAN_MODE_REMINDER: &str = "The session is still in plan mode";
    let rows = [
        ("plan mode is not restored", Plan, None, [1, 0, 1]),
        ("plan mode is requested again", Plan, Some(Plan), [1, 1, 0]),
        ("never in plan mode", Usual, None, [0, 0, 0]),
        ("plan mode starts", Usual, Some(Plan), [1, 0, 0]),
    ];
    for (name, before, after, expected) in rows {
        let dirs = SessionDirs::new().unwrap();
        let options = Options { permission_mode: Some(before), ..Options::default() };
        let mut host = dirs.host([Reply::text("Hm.")], options.clone()).start().await.unwrap();
        let session = host.run("Plan it.").await.unwrap().session_id;
        host.finish().await.unwrap();
        let options = Options { permission_mode: after, resume: Some(session), ..options };
        let mut host = dirs.host([Reply::text("Hm.")], options).start().await.unwrap();
        host.run("Go on.").await.unwrap();
        assert_eq!(
            [STARTED, PLAN_MODE_REMINDER, OVER].map(|text| count_in_last_request(&host, text)),
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn custom_plan_mode_instructions_replace_the_default() {
    let options = Options {
        permission_mode: Some(Plan),
        permission_prompt_tool: Some(PermissionPromptTool::Stdio),
        plan_mode_instructions: Some("List the risks first.".into()),
        system_prompt: Some(SystemPrompt::Text("Plain.".into())),
        ..Options::default()
    };
    let mut host = Host::with_script([Reply::text("Hm.")]).options(options).start().await.unwrap();
    host.run("Plan it.").await.unwrap();
    let first = &host.model_requests()[0];
    assert_eq!(first.system_prompt(), "Plain.");
    for (text, expected) in [
        ("is in plan mode", true),
        ("List the risks first.", true),
        ("call ExitPlanMode", true),
        ("1. Explore", false),
    ] {
        assert_eq!(first.contains_text(text), expected, "{text}");
    }
}

#[tokio::test]
async fn subagent_in_plan_mode_may_only_read() {
    let agent_call = Reply::tool("Agent", json!({"description": "look", "prompt": "Look."}));
    let mut host =
        host(Plan, [agent_call, Reply::text("Looked."), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let subagent_request = &host.model_requests()[1];
    assert!(
        subagent_request.contains_text("Look.")
            && subagent_request.contains_text("is in plan mode")
            && !subagent_request.contains_text("ExitPlanMode")
    );
}

#[tokio::test]
async fn interrupt_cancels_the_request_and_keeps_plan_mode() {
    let mut host = host(Plan, [exit_plan_call("1. Build."), Reply::text("Next.")]).start().await.unwrap();
    host.send_prompt("Plan it.").await.unwrap();
    let id = wait_for_permission_request(&mut host, "ExitPlanMode").await;
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::ErrorDuringExecution);
    let cancelled = json!({"type": "control_cancel_request", "request_id": id});
    assert!(host.received().iter().any(|received| received.json == cancelled));
    // A late response changes nothing.
    send_response(&mut host, &id, json!({"behavior": "allow"})).await;
    assert_eq!(mode_of_next_turn(&mut host).await, "plan");
    assert!(host.model_requests()[1].contains_text("still in plan mode"));
}

#[tokio::test]
async fn denied_plan_is_reported_and_keeps_plan_mode() {
    let mut host = host(Plan, [exit_plan_call("1. Build."), Reply::text("Better?"), Reply::text("Next.")])
        .start()
        .await
        .unwrap();
    host.send_prompt("Plan it.").await.unwrap();
    let id = wait_for_permission_request(&mut host, "ExitPlanMode").await;
    send_response(&mut host, &id, json!({"behavior": "deny", "message": "Too much."})).await;
    let result = host.next_result().await.unwrap();
    assert_eq!((result.subtype, result.permission_denials.len()), (Outcome::Success, 1));
    assert!(
        host.model_requests()[1].contains_text("Too much.")
            && !host.model_requests()[1].contains_text("Plan mode is over")
    );
    assert_eq!(mode_of_next_turn(&mut host).await, "plan");
}

#[tokio::test]
async fn denied_plan_can_end_the_turn() {
    let mut host = host(Plan, [exit_plan_call("1. Build."), Reply::text("Next.")]).start().await.unwrap();
    host.send_prompt("Plan it.").await.unwrap();
    let id = wait_for_permission_request(&mut host, "ExitPlanMode").await;
    send_response(&mut host, &id, json!({"behavior": "deny", "message": "Stop.", "interrupt": true})).await;
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::ErrorDuringExecution);
    assert_eq!(host.model_requests().len(), 1);
    assert_eq!(mode_of_next_turn(&mut host).await, "plan");
}

#[tokio::test]
async fn closed_input_does_not_approve_the_plan() {
    let mut host =
        host(Plan, [exit_plan_call("1. Build."), write_call("a.txt"), Reply::text("No approval.")])
            .start()
            .await
            .unwrap();
    host.send_prompt("Plan it.").await.unwrap();
    wait_for_permission_request(&mut host, "ExitPlanMode").await;
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert!(
        host.model_requests()[2].contains_text("can no longer answer")
            && !host.model_requests()[2].contains_text("Plan mode is over")
    );
    assert!(host.dirs().files().unwrap().is_empty());
}

#[tokio::test]
async fn approval_can_change_plan_and_mode() {
    let mut host = host(Plan, [exit_plan_call("1. Build."), write_call("a.txt"), Reply::text("Done.")])
        .start()
        .await
        .unwrap();
    host.send_prompt("Plan it.").await.unwrap();
    let id = wait_for_permission_request(&mut host, "ExitPlanMode").await;
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let reply = json!({"behavior": "allow", "updatedInput": {"plan": "1. Build less."}, "updatedPermissions": [mode]});
    send_response(&mut host, &id, reply).await;
    // The edit needs no permission request.
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::Success);
    let request = &host.model_requests()[1];
    assert!(
        request.contains_text("1. Build less.") && request.contains_text("Plan mode is over"),
        "{}",
        request.last_text()
    );
    assert_eq!(reported_modes(&host), ["acceptEdits"]);
    assert!(host.dirs().files().unwrap().contains_key("a.txt"));
}

#[tokio::test]
async fn mode_set_during_the_plan_request_is_kept() {
    let rows = [
        ("approved", json!({"behavior": "allow"}), "approved the plan"),
        (
            "approved with another plan",
            json!({"behavior": "allow", "updatedInput": {"plan": "2."}}),
            "following this version",
        ),
        ("denied", json!({"behavior": "deny", "message": "Just do it."}), "Just do it."),
    ];
    for (name, reply, expected_text) in rows {
        let script = [exit_plan_call("1. Build."), Reply::text("Go."), Reply::text("Next.")];
        let mut host = host(Usual, script).start().await.unwrap();
        host.send_request(SetPermissionMode { mode: Plan }).await.unwrap();
        host.send_prompt("Plan it.").await.unwrap();
        let id = wait_for_permission_request(&mut host, "ExitPlanMode").await;
        host.send_request(SetPermissionMode { mode: AcceptEdits }).await.unwrap();
        send_response(&mut host, &id, reply).await;
        host.next_result().await.unwrap();
        let request = &host.model_requests()[1];
        assert!(
            request.contains_text(expected_text) && request.contains_text("Plan mode is over"),
            "{name}: {}",
            request.last_text()
        );
        assert_eq!(mode_of_next_turn(&mut host).await, "acceptEdits", "{name}");
        assert_eq!(reported_modes(&host), ["plan", "acceptEdits"], "{name}");
    }
}

#[tokio::test]
async fn exit_plan_mode_fails_outside_plan_mode() {
    let mut host = host(Usual, [exit_plan_call("1. Build."), Reply::text("Oh.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("not in plan mode"));
    assert!(!host.received().iter().any(|received| received.json["type"] == "control_request"));
}

#[tokio::test]
async fn ask_user_question_always_reaches_the_user() {
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let color = json!({"question": "Which color?", "header": "Color", "options": options});
    let question_call =
        Reply::tool("AskUserQuestion", json!({"questions": [color], "answers": {"Which color?": "Red"}}));
    for mode in [PermissionMode::BypassPermissions, AcceptEdits, Plan] {
        let options = Options {
            permission_mode: Some(mode),
            permission_prompt_tool: Some(PermissionPromptTool::Stdio),
            allowed_tools: vec!["AskUserQuestion".into()],
            ..Options::default()
        };
        let builder = Host::with_script([question_call.clone(), Reply::text("Oh.")])
            .options(options)
            .env("IS_SANDBOX", "1");
        let mut host = builder.on_request(|_| HostResponse::NoResponse).start().await.unwrap();
        host.send_prompt("Go.").await.unwrap();
        let id = wait_for_permission_request(&mut host, "AskUserQuestion").await;
        send_response(&mut host, &id, json!({"behavior": "allow"})).await;
        host.next_result().await.unwrap();
        assert!(host.model_requests()[1].contains_text("The user did not answer"), "{mode}");
    }
}
