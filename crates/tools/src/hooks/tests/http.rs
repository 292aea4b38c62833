//! Tests of HTTP hooks.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use whimbrel_config::settings::hooks::HttpHookConfig;
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::HookPermissionDecision;

use super::super::{HookSet, MergedOutput, join_reasons};
use super::fixture::{TestHooks, settings_origin};

/// Server that answers once, and the request that it received.
async fn serve_once(status: &str, body: &str) -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=secret", listener.local_addr().unwrap());
    let response =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let request = tokio::spawn(async move {
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
        stream.write_all(response.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (url, request)
}

async fn run_hook(hook: HttpHookConfig) -> MergedOutput {
    let mut set = HookSet::default();
    set.add_http("PreToolUse", None, &hook, &settings_origin("the user's settings")).unwrap();
    TestHooks::with_set(set).run_bash_hooks().await
}

#[tokio::test]
async fn an_http_hook_receives_the_input_and_decides() {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "not here"}});
    let (url, request) = serve_once("200 OK", &deny.to_string()).await;
    let headers = [("X-Who".to_owned(), "$PATH me".to_owned())].into();
    let merged = run_hook(HttpHookConfig { url, headers, ..HttpHookConfig::default() }).await;
    let decision = merged.decision.unwrap();
    assert_eq!(
        (decision.decision, join_reasons(&decision.reasons)),
        (HookPermissionDecision::Deny, "not here".into())
    );
    let (head, request) = request.await.unwrap();
    assert!(head.starts_with("POST /hook?key=secret ") && head.contains("x-who:  me\r\n"), "{head}");
    assert_eq!((&request["tool_name"], &request["tool_input"]["command"]), (&json!("Bash"), &json!("ls")));
}

#[tokio::test]
async fn every_status_but_success_is_a_failure() {
    for (status, body, expected) in [
        ("204 No Content", "", ""),
        ("200 OK", "fine", ""),
        ("500 Internal Server Error", "{}", "it responded with 500"),
        ("302 Found", "", "it responded with 302"),
        ("200 OK", "{\"decision\": 5}", "decision"),
    ] {
        let (url, request) = serve_once(status, body).await;
        let merged = run_hook(HttpHookConfig { url: url.clone(), ..HttpHookConfig::default() }).await;
        request.await.unwrap();
        assert_eq!(merged.decision, None, "{status} {body}");
        let errors = join_reasons(&merged.errors);
        assert_eq!(errors.is_empty(), expected.is_empty(), "{status} {body}: {errors}");
        assert!(
            errors.contains(expected) && !format!("{merged:?}").contains("secret"),
            "{status} {body}: {merged:?}"
        );
        // The server is closed by now.
        let strict = HttpHookConfig { url, on_failure: Some(OnFailure::Block), ..HttpHookConfig::default() };
        assert_eq!(run_hook(strict).await.decision.unwrap().decision, HookPermissionDecision::Deny);
    }
}
