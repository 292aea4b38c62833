//! The Chat Completions client against a local server.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use whimbrel_wire::{Block, Role, StopReason};

use super::*;
use crate::assemble::ReplyAssembler;
use crate::history::History;
use crate::request::RequestPrefix;

/// Starts a server that accepts one request, writes the response in small pieces and closes the connection.
async fn serve(response: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !is_complete_request(&request) {
            socket.read_buf(&mut request).await.unwrap();
        }
        for chunk in response.as_bytes().chunks(7) {
            socket.write_all(chunk).await.unwrap();
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        String::from_utf8(request).unwrap()
    });
    (base, server)
}

fn is_complete_request(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn head(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n")
}

fn request() -> Request {
    let mut history = History::new();
    history.push(Role::User, &Block::text("hi"));
    Request::new("m", Arc::new(RequestPrefix::new(vec!["Be kind.".into()], vec![])), history.snapshot())
}

fn no_variables(_: &str) -> Option<String> {
    None
}

async fn collect_items(base: &str, request: Request) -> Vec<Result<ReplyItem, ModelError>> {
    let model = OpenAiChat::new(base, Some("secret".into()), HttpClient::from_env(no_variables));
    model.stream_reply(Arc::new(request)).collect().await
}

fn assemble(items: Vec<Result<ReplyItem, ModelError>>) -> (Vec<Block>, StopReason) {
    let mut assembler = ReplyAssembler::default();
    let events = items.into_iter().map(|item| item.unwrap().event);
    let blocks = events
        .filter_map(|event| assembler.push_event(&event).unwrap())
        .map(|finished| finished.block)
        .collect();
    assert!(assembler.complete);
    (blocks, assembler.stop_reason.unwrap())
}

#[tokio::test]
async fn streamed_reply_is_decoded() {
    let events = concat!(
        ": waiting\n\n",
        "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"größer\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":",
        "{\"name\":\"Read\",\"arguments\":\"{\\\"path\\\":\\\"ü\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\r\n\r\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n",
        "data: [DONE]",
    );
    let (base, server) =
        serve(head("200 OK", "content-type: text/event-stream; charset=utf-8\r\n") + events).await;
    let mut items = collect_items(&base, Request { raw_events: true, ..request() }).await;
    let received = server.await.unwrap();

    assert!(received.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{received}");
    assert!(received.contains("\r\nauthorization: Bearer secret\r\n"), "{received}");
    let body: Value = serde_json::from_str(received.split_once("\r\n\r\n").unwrap().1).unwrap();
    let messages = json!([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]);
    assert_eq!((&body["model"], &body["messages"]), (&json!("m"), &messages));

    items.retain(|item| item.as_ref().is_ok_and(|item| !item.event.is_keepalive()));
    let raw: Vec<Value> =
        items.iter().map(|item| item.as_ref().unwrap().raw.as_ref().unwrap().decode().unwrap()).collect();
    let kinds: Vec<&str> = raw.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(raw[4]["content_block"], json!({"type": "tool_use", "id": "a", "name": "Read", "input": {}}));
    assert_eq!(raw[7]["usage"]["output_tokens"], 4);
    let read = Block::ToolUse { id: "a".into(), name: "Read".into(), input: json!({"path": "ü"}) };
    assert_eq!(assemble(items), (vec![Block::text("größer"), read], StopReason::ToolUse));
}

#[tokio::test]
async fn whole_reply_is_decoded() {
    let body = r#"{"id":"r","model":"m","choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}"#;
    let (base, _server) = serve(head("200 OK", "content-type: application/json\r\n") + body).await;
    assert_eq!(
        assemble(collect_items(&base, request()).await),
        (vec![Block::text("hello")], StopReason::EndTurn)
    );
}

#[tokio::test]
async fn every_other_response_ends_in_one_error() {
    let stream = "content-type: text/event-stream\r\n";
    let refusal =
        r#"{"error":{"message":"Slow down, please","type":"requests","code":"rate_limit_exceeded"}}"#;
    let begun = r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#;
    let error = "event: error\ndata: out of memory\n\n";
    for (name, response, kind, message) in [
        (
            "a refusal",
            head("429 Too Many Requests", "retry-after: 3\r\nx-request-id: q\r\n") + refusal,
            ModelErrorKind::RateLimit,
            "Slow down, please",
        ),
        (
            "a page",
            head("200 OK", "content-type: text/html\r\n") + "<html></html>",
            ModelErrorKind::NotAStream,
            "text/html",
        ),
        ("nothing", head("200 OK", stream), ModelErrorKind::NotAStream, "empty"),
        (
            "half a reply",
            head("200 OK", stream) + begun + "\n\n",
            ModelErrorKind::Cut,
            "before the reply was complete",
        ),
        (
            "an error",
            head("200 OK", stream) + begun + "\n\n" + error,
            ModelErrorKind::Server,
            "out of memory",
        ),
        (
            "elsewhere",
            head("301 Moved", "location: https://x.test/\r\n"),
            ModelErrorKind::InvalidRequest,
            "https://x.test/",
        ),
    ] {
        let (base, _server) = serve(response).await;
        let mut items = collect_items(&base, request()).await;
        let error = items.pop().unwrap().expect_err(name);
        assert!(items.iter().all(Result::is_ok), "{name}");
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.message.contains(message), "{name}: {error}");
        if kind == ModelErrorKind::RateLimit {
            assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
            assert_eq!((error.status, error.request_id.as_deref()), (Some(429), Some("q")));
        }
    }
}

#[tokio::test]
async fn only_openai_requires_a_key() {
    let key = |model: &OpenAiChat| model.headers().map(|headers| headers.get(AUTHORIZATION).cloned());
    let env = |pairs: &'static [(&str, &str)]| {
        let get =
            |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        OpenAiChat::from_env(get, HttpClient::from_env(no_variables))
    };
    assert_eq!(key(&env(&[])).unwrap_err().kind, ModelErrorKind::NoCredentials);
    assert_eq!(key(&env(&[("OPENAI_API_KEY", " ")])).unwrap_err().kind, ModelErrorKind::NoCredentials);
    assert_eq!(key(&env(&[("OPENAI_BASE_URL", "http://localhost:11434")])).unwrap(), None);
    assert_eq!(key(&env(&[("OPENAI_API_KEY", "sk-1\n")])).unwrap().unwrap(), "Bearer sk-1");
    assert_eq!(key(&env(&[("OPENAI_API_KEY", "s\u{7}k")])).unwrap_err().kind, ModelErrorKind::NoCredentials);
    let items: Vec<_> = env(&[]).stream_reply(Arc::new(request())).collect().await;
    assert_eq!(items.len(), 1);
}

#[test]
fn base_url_is_accepted_in_every_form() {
    for (base, expected) in [
        (OPENAI_BASE_URL, "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
        (" https://api.moonshot.ai/v1/ ", "https://api.moonshot.ai/v1/chat/completions"),
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("localhost:8080/v1", "http://localhost:8080/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://x.test/v1beta/openai/", "https://x.test/v1beta/openai/chat/completions"),
        ("https://x.test/v1/chat/completions", "https://x.test/v1/chat/completions"),
        ("https://x.test/d/gpt?api-version=1", "https://x.test/d/gpt/chat/completions?api-version=1"),
    ] {
        assert_eq!(completions_url(base), expected, "{base}");
    }
}

#[test]
fn generated_id_fits_the_limit_of_every_provider() {
    assert!(format!("call_{}_{}", new_id_seed(), 999).len() <= 40);
    assert_ne!(new_id_seed(), new_id_seed());
}
