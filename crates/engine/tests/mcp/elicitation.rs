//! Elicitations and progress notifications of servers.

use serde_json::{Value, json};
use whimbrel_testkit::{HostResponse, Reply};
use whimbrel_wire::control::{Interrupt, Request};

use crate::fixture::{host, word_call};

/// Runs a session in which the server sends an elicitation, with these hooks; returns the answer it received.
async fn elicitation_result(hooks: Value, reply: Value) -> String {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("Done.")])
        .on_request(move |request| match request {
            Request::Elicitation(elicitation) => {
                assert_eq!(
                    (elicitation.mcp_server_name.as_str(), elicitation.message.as_str()),
                    ("sh", "Who?")
                );
                HostResponse::Success(reply.clone())
            }
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .configure(|options| options.settings = Some(json!({"hooks": hooks}).to_string()))
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    host.model_requests()[1].last_text()
}

#[tokio::test]
async fn elicitation_goes_to_hooks_and_host() {
    let echo_hook =
        |text: &str| json!([{"hooks": [{"type": "command", "command": format!("echo '{text}'")}]}]);
    let hook_output = |event: &str, name: &str| {
        json!({"hookSpecificOutput": {"hookEventName": event, "action": "accept", "content": {"name": name}}})
            .to_string()
    };
    let accept = json!({"action": "accept", "content": {"name": "Ann"}});
    let rows = [
        ("the host answers", json!({}), accept.clone(), "name:Ann"),
        ("the host declines", json!({}), json!({"action": "decline"}), "action:decline"),
        (
            "a hook answers",
            json!({"Elicitation": echo_hook(&hook_output("Elicitation", "Bob"))}),
            accept.clone(),
            "name:Bob",
        ),
        (
            "a hook changes the answer",
            json!({"ElicitationResult": echo_hook(&hook_output("ElicitationResult", "Cy"))}),
            accept.clone(),
            "name:Cy",
        ),
        (
            "a hook blocks",
            json!({"Elicitation": echo_hook(r#"{"decision":"block","reason":"no"}"#)}),
            accept,
            "action:decline",
        ),
    ];
    for (name, hooks, reply, expected) in rows {
        let text = elicitation_result(hooks, reply).await;
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[tokio::test]
async fn elicitation_is_cancelled_without_a_responder() {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("action:cancel"),
        "{}",
        host.model_requests()[1].last_text()
    );
}

#[tokio::test]
async fn interrupt_cancels_a_pending_elicitation() {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("After.")])
        .on_request(|request| match request {
            Request::Elicitation(_) => HostResponse::NoResponse,
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    let request = host.next_matching(&json!({"request": {"subtype": "elicitation"}})).await.unwrap();
    let id = request["request_id"].clone();
    host.send_request(Interrupt::default()).await.unwrap();
    host.next_matching(&json!({"type": "control_cancel_request", "request_id": id})).await.unwrap();
}

#[tokio::test]
async fn tool_progress_reaches_the_host() {
    let mut host = host([word_call("mcp__sh__step", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let progress = host.received().iter().find(|received| received.json["type"] == "tool_progress").unwrap();
    assert_eq!(progress.json["tool_name"], "mcp__sh__step");
    assert!(host.model_requests()[1].contains_text("stepped"));
}

#[tokio::test]
async fn url_elicitation_completion_reaches_the_host() {
    let mut host = host([word_call("mcp__sh__send", ""), Reply::text("Done.")])
        .on_request(|request| match request {
            Request::Elicitation(elicitation) => {
                assert_eq!(
                    (elicitation.mode.as_deref(), elicitation.url.as_deref()),
                    (Some("url"), Some("https://pay.test/"))
                );
                assert_eq!(elicitation.elicitation_id.as_deref(), Some("e1"));
                HostResponse::Success(json!({"action": "accept"}))
            }
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("sent"));
    let completions =
        host.received().iter().filter(|received| received.json["subtype"] == "elicitation_complete");
    let completions: Vec<_> = completions
        .map(|received| (&received.json["mcp_server_name"], &received.json["elicitation_id"]))
        .collect();
    assert_eq!(
        completions,
        [(&json!("sh"), &json!("e1"))],
        "one completion, and only for a known elicitation"
    );
}
