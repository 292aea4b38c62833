//! Web addresses as hooks.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::HookPermissionDecision;

use super::super::{Folded, HookSet, HttpHook, joined};
use super::stage::Stage;

/// An address that answers once, and what it is told.
async fn address(status: &str, body: &str) -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=secret", listener.local_addr().unwrap());
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let told = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            stream.read_line(&mut head).await.unwrap();
            if let Some(value) = head[start..].to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (url, told)
}

async fn asked(hook: HttpHook) -> Folded {
    let mut set = HookSet::default();
    set.add_http("PreToolUse", None, &hook, "the user's settings").unwrap();
    Stage::with(set).before_bash().await
}

#[tokio::test]
async fn an_address_is_told_what_happens_and_has_its_say() {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "not here"}});
    let (url, told) = address("200 OK", &deny.to_string()).await;
    let headers = [("X-Who".to_owned(), "$PATH me".to_owned())].into();
    let folded = asked(HttpHook { url, headers, ..HttpHook::default() }).await;
    let ruling = folded.ruling.unwrap();
    assert_eq!((ruling.decision, joined(&ruling.reasons)), (HookPermissionDecision::Deny, "not here".into()));
    let (head, told) = told.await.unwrap();
    assert!(head.starts_with("POST /hook?key=secret ") && head.contains("x-who:  me\r\n"), "{head}");
    assert_eq!((&told["tool_name"], &told["tool_input"]["command"]), (&json!("Bash"), &json!("ls")));
}

#[tokio::test]
async fn whatever_is_no_success_is_a_failure() {
    for (status, body, words) in [
        ("204 No Content", "", ""),
        ("200 OK", "fine", ""),
        ("500 Internal Server Error", "{}", "it answered 500"),
        ("302 Found", "", "it answered 302"),
        ("200 OK", "{\"decision\": 5}", "decision"),
    ] {
        let (url, told) = address(status, body).await;
        let folded = asked(HttpHook { url: url.clone(), ..HttpHook::default() }).await;
        told.await.unwrap();
        assert_eq!(folded.ruling, None, "{status} {body}");
        let faults = joined(&folded.faults);
        assert_eq!(faults.is_empty(), words.is_empty(), "{status} {body}: {faults}");
        assert!(
            faults.contains(words) && !format!("{folded:?}").contains("secret"),
            "{status} {body}: {folded:?}"
        );
        // Nobody listens there any more.
        let strict = HttpHook { url, on_failure: Some(OnFailure::Block), ..HttpHook::default() };
        assert_eq!(asked(strict).await.ruling.unwrap().decision, HookPermissionDecision::Deny);
    }
}
