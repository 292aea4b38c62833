//! The test host, with the engine in this process.

use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{Interrupt, SetModel};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionResult;

#[tokio::test]
async fn script_plays_with_and_without_network() {
    for backend in ["http", "scripted"] {
        let builder = Host::with_script([Reply::text("Hello."), Reply::text("Again.")]);
        let builder = if backend == "http" { builder } else { builder.without_network() };
        let mut host = builder.start().await.unwrap();
        assert_eq!(host.run("Hi.").await.unwrap().result.as_deref(), Some("Hello."), "{backend}");
        assert_eq!(host.run("Hi again.").await.unwrap().result.as_deref(), Some("Again."), "{backend}");
        assert!(
            host.model_requests()[1].contains_text("Hi again.")
                && !host.model_requests()[0].contains_text("Hi again."),
            "{backend}"
        );
        assert_eq!(host.finish().await.unwrap().code, 0, "{backend}");
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
    let rejected = host.send_raw_request(json!({"subtype": "no_such_thing"})).await.unwrap();
    assert!(serde_json::to_string(&rejected).unwrap().contains("no_such_thing"));
}

#[tokio::test]
async fn timeout_error_lists_the_received_frames() {
    let script = [Reply::text("never complete").stall_after(2)];
    let mut host = Host::with_script(script).timeout(Duration::from_secs(3)).start().await.unwrap();
    let error = host.run("Hi.").await.unwrap_err().to_string();
    assert!(error.contains("within 3s") && error.contains("\"init\""), "{error}");
}

#[tokio::test]
async fn wait_fails_when_the_engine_exits() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.finish_input();
    let error = host.next_result().await.unwrap_err().to_string();
    assert!(error.contains("exited without"), "{error}");
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
    assert!(
        host.frames()
            .any(|frame| matches!(frame, Frame::Assistant(assistant) if assistant.aborted == Some(true)))
    );
}

#[tokio::test]
async fn failed_start_returns_exit_code_one() {
    let options = Options { session_id: Some("not a uuid".into()), ..Options::default() };
    let mut host = Host::with_script(Script::from([])).options(options).start().await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    assert_eq!(host.finish().await.unwrap().code, 1);
}
