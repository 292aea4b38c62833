//! Questions beside the conversation.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply, SessionDirs};
use whimbrel_wire::control::{Cancel, CancelReason, GetSessionCost, GetUsage, Interrupt, SideQuestion};
use whimbrel_wire::options::{Options, PermissionPromptTool};

fn question(text: &str) -> SideQuestion {
    SideQuestion { question: text.into() }
}

#[tokio::test]
async fn question_is_answered_and_not_part_of_the_conversation() {
    let dirs = SessionDirs::new().unwrap();
    let script = [Reply::text("Paris."), Reply::text("It is the capital."), Reply::text("You're welcome.")];
    let mut host = dirs.host(script.to_vec(), Options::default()).start().await.unwrap();
    let session = host.run("Where?").await.unwrap().session_id;
    let answer = host.send_request(question("Why that one?")).await.unwrap();
    assert_eq!(answer.response.as_deref(), Some("It is the capital."));
    host.run("Thanks.").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[1].contains_text("Paris.") && requests[1].last_text().ends_with("Why that one?"));
    assert_eq!(requests[1].body["system"], requests[0].body["system"]);
    assert_eq!(requests[1].body["tools"], requests[0].body["tools"]);
    for text in ["Why that one?", "capital"] {
        assert!(!requests[2].contains_text(text), "{text}");
    }
    host.finish().await.unwrap();
    let mut resumed = dirs
        .host([Reply::text("Again.")].to_vec(), Options { resume: Some(session), ..Options::default() })
        .start()
        .await
        .unwrap();
    let answer = resumed.send_request(question("And before the first prompt?")).await.unwrap();
    assert_eq!(answer.response.as_deref(), Some("Again."));
    let request = &resumed.model_requests()[0];
    assert!(request.contains_text("You're welcome.") && !request.contains_text("Why that one?"));
}

#[tokio::test]
async fn answer_is_charged_to_the_session() {
    let mut host = Host::with_script([Reply::text("One."), Reply::text("Two.")]).start().await.unwrap();
    let result = host.run("Go.").await.unwrap();
    host.send_request(question("How much?")).await.unwrap();
    let usage = host.send_request(GetUsage::default()).await.unwrap().session;
    assert!(usage.total_cost_usd > result.total_cost_usd, "{usage:?}");
    let text = host.send_request(GetSessionCost {}).await.unwrap().text;
    assert!(text.contains("of which side questions:"), "{text}");
}

#[tokio::test]
async fn question_is_answered_while_the_model_replies() {
    // The stalled reply is served in full to the question.
    let script = [Reply::text("A story about a bird.").stall_after(3)];
    let options = Options { include_partial_messages: true, ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Tell me a story.").await.unwrap();
    host.next_matching(&json!({"type": "stream_event", "event": {"type": "content_block_delta"}}))
        .await
        .unwrap();
    let answer = host.send_request(question("What is it about?")).await.unwrap();
    assert_eq!(answer.response.as_deref(), Some("A story about a bird."));
    assert!(host.model_requests()[1].contains_text("Tell me a story."));
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
}

#[tokio::test]
async fn running_tool_call_is_part_of_the_question() {
    let script = [Reply::bash("make it"), Reply::text("I build it."), Reply::text("Built.")];
    let options = Options { permission_prompt_tool: Some(PermissionPromptTool::Stdio), ..Options::default() };
    let mut host = Host::with_script(script)
        .options(options)
        .on_request(|_| HostResponse::NoResponse)
        .start()
        .await
        .unwrap();
    host.send_prompt("Build.").await.unwrap();
    let asked = host.next_matching(&json!({"request": {"subtype": "can_use_tool"}})).await.unwrap();
    let request_id = asked["request_id"].as_str().unwrap().to_owned();
    let answer = host.send_request(question("What are you doing?")).await.unwrap();
    assert_eq!(answer.response.as_deref(), Some("I build it."));
    let request = host.model_requests()[1].body.to_string();
    assert!(request.contains("make it") && request.contains("This call has not finished yet."), "{request}");
    let denial = json!({"type": "control_response", "response": {"subtype": "success", "request_id": request_id,
        "response": {"behavior": "deny", "message": "Not now."}}});
    host.send_line(&denial.to_string()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Built."));
    assert!(!host.model_requests()[2].contains_text("What are you doing?"));
}

#[tokio::test]
async fn question_can_be_withdrawn() {
    let script = [Reply::text("Hello."), Reply::text("Never said.").stall_after(1)];
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    let line = json!({"type": "control_request", "request_id": "q1",
        "request": {"subtype": "side_question", "question": "Why?"}});
    host.send_line(&line.to_string()).await.unwrap();
    host.send_frame(Cancel { request_id: "q1".into(), reason: CancelReason::Unspecified }).await.unwrap();
    let response: Value =
        host.next_matching(&json!({"response": {"request_id": "q1"}})).await.unwrap().clone();
    assert!(response["response"]["error"].as_str().unwrap().contains("withdrawn"), "{response}");
}

#[tokio::test]
async fn question_needs_text_and_a_conversation() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    let error = host.send_request(question("Why?")).await.unwrap_err().to_string();
    assert!(error.contains("send a prompt first"), "{error}");
    host.run("Hi.").await.unwrap();
    let error = host.send_request(question("  ")).await.unwrap_err().to_string();
    assert!(error.contains("empty"), "{error}");
    assert_eq!(host.model_requests().len(), 1);
}
