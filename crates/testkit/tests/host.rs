//! The test host, with the engine in this process.

use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{Interrupt, SetModel};
use whimbrel_wire::message::{Outcome, TerminalReason};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionResult;

#[tokio::test]
async fn script_plays_with_and_without_network() {
    for way in ["http", "scripted"] {
        let builder = Host::with_script([Reply::text("Hello."), Reply::text("Again.")]);
        let builder = if way == "http" { builder } else { builder.without_network() };
        let mut host = builder.start().await.unwrap();
        assert_eq!(host.run("Hi.").await.unwrap().result.as_deref(), Some("Hello."), "{way}");
        assert_eq!(host.run("Hi again.").await.unwrap().result.as_deref(), Some("Again."), "{way}");
        assert!(
            host.model_requests()[1].contains_text("Hi again.")
                && !host.model_requests()[0].contains_text("Hi again."),
            "{way}"
        );
        assert_eq!(host.finish().await.unwrap().code, 0, "{way}");
    }
}

#[tokio::test]
async fn closure_responds_to_permission_requests() {
    let script = [
        Reply::tool("Bash", json!({"command": "touch first"})),
        Reply::tool("Bash", json!({"command": "touch second"})),
        Reply::text("Done."),
    ];
    let decide = |ask: &whimbrel_wire::control::CanUseTool| match ask.input["command"].as_str() {
        Some("touch first") => PermissionResult::allow(),
        _ => PermissionResult::deny("once is enough"),
    };
    let mut host = Host::with_script(script).can_use_tool(decide).start().await.unwrap();
    let result = host.run("Touch both.").await.unwrap();
    assert_eq!(result.permission_denials.len(), 1);
    assert!(host.model_requests()[2].contains_text("once is enough"));
    let files = host.dirs().files().unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["first"]);
}

#[tokio::test]
async fn control_requests_have_typed_responses() {
    let mut host = Host::with_script(Script::from([])).start().await.unwrap();
    let reply = host.send_request(SetModel { model: Some("haiku".into()) }).await.unwrap();
    assert!(reply.model.unwrap().contains("haiku"));
    let refused = host.send_raw_request(json!({"subtype": "no_such_thing"})).await.unwrap();
    assert!(serde_json::to_string(&refused).unwrap().contains("no_such_thing"));
}

#[tokio::test]
async fn timeout_error_lists_the_received_frames() {
    let script = [Reply::text("never complete").stall_after(2)];
    let mut host = Host::with_script(script).timeout(Duration::from_millis(200)).start().await.unwrap();
    let error = host.run("Hi.").await.unwrap_err().to_string();
    assert!(error.contains("within 200ms") && error.contains("\"init\""), "{error}");
}

#[tokio::test]
async fn wait_fails_when_the_engine_exits() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.finish_input();
    let error = host.next_result().await.unwrap_err().to_string();
    assert!(error.contains("ended without"), "{error}");
}

#[tokio::test]
async fn frames_can_be_awaited_by_pattern() {
    let options = Options { include_partial_messages: true, ..Options::default() };
    let script = [Reply::text("one two three").chunk_size(4).stall_after(3).skip_after_faults()];
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Count.").await.unwrap();
    host.next_matching(&json!({"type": "stream_event", "event": {"type": "content_block_delta"}}))
        .await
        .unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    host.api().unwrap().wait_for_disconnects(1).await.unwrap();
    assert!(host.frames().any(|frame| matches!(frame, Frame::Assistant(said) if said.aborted == Some(true))));
}

#[tokio::test]
async fn interrupt_after_a_prompt_ends_the_turn_before_any_request() {
    for cancel_queued in [None, Some(true)] {
        let mut host = Host::with_script([Reply::text("Later.")]).start().await.unwrap();
        host.send_prompt("Never mind.").await.unwrap();
        let reply = host.send_request(Interrupt { cancel_queued }).await.unwrap();
        let cancelled = cancel_queued.map(|_| json!([]));
        assert_eq!((reply.still_queued, reply.cancelled), (Vec::new(), cancelled));
        let result = host.next_result().await.unwrap();
        assert_eq!(result.subtype, Outcome::ErrorDuringExecution);
        assert_eq!(result.terminal_reason, Some(TerminalReason::AbortedStreaming));
        assert!(host.model_requests().is_empty());
        assert_eq!(host.run("Go on.").await.unwrap().result.as_deref(), Some("Later."));
        assert!(
            host.model_requests()[0].contains_text("Never mind.")
                && host.model_requests()[0].contains_text("interrupted")
        );
    }
}

#[tokio::test]
async fn interrupt_before_any_prompt_has_no_effect() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.run("Hi.").await.unwrap().result.as_deref(), Some("Hello."));
}

#[tokio::test]
async fn failed_start_returns_exit_code_one() {
    let options = Options { session_id: Some("not a uuid".into()), ..Options::default() };
    let mut host = Host::with_script(Script::from([])).options(options).start().await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    assert_eq!(host.finish().await.unwrap().code, 1);
}

#[tokio::test]
async fn session_reuses_one_connection() {
    let read = || Reply::tool("Read", json!({"file_path": "a.txt"}));
    let script = [read(), read(), read(), Reply::text("one"), Reply::text("two"), Reply::text("three")];
    let mut host = Host::with_script(script).file("a.txt", "text").start().await.unwrap();
    for _ in 0..3 {
        host.run("Go.").await.unwrap();
    }
    assert_eq!(host.model_requests().len(), 6);
    assert_eq!(host.api().unwrap().connections(), 1);
}
