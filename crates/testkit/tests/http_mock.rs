//! The HTTP mock, tested with a plain socket and with the engine's own clients.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use whimbrel_testkit::{Host, MockApi, Reply, Script};
use whimbrel_wire::options::Options;

/// A raw connection to the mock.
struct RawClient(TcpStream);

impl RawClient {
    async fn new(api: &MockApi) -> Self {
        Self(TcpStream::connect(api.url().trim_start_matches("http://")).await.unwrap())
    }

    /// Sends a request and reads until the response is complete or the connection closes.
    async fn post(&mut self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\nx-api-key: k\r\n\r\n", body.len());
        self.0.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"0\r\n\r\n") && self.0.read_buf(&mut answer).await.unwrap() > 0 {}
        String::from_utf8(answer).unwrap()
    }
}

fn prompt_body(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

#[tokio::test]
async fn script_is_served_in_both_api_formats() {
    let api =
        MockApi::start([Reply::text("one"), Reply::text("two"), Reply::text("three"), Reply::text("four")])
            .await
            .unwrap();
    let mut client = RawClient::new(&api).await;
    let streamed = client.post("/v1/messages?beta=true", &prompt_body(true)).await;
    assert!(streamed.starts_with("HTTP/1.1 200") && streamed.contains("event: message_start"), "{streamed}");
    assert!(streamed.contains(r#""text_delta","text":"one""#), "{streamed}");
    let whole = client.post("/v1/messages", &prompt_body(false)).await;
    assert!(whole.contains(r#""content":[{"type":"text","text":"two"}]"#), "{whole}");
    let chunks = client.post("/v1/chat/completions", &prompt_body(true)).await;
    assert!(chunks.contains(r#"{"content":"three"}"#) && chunks.contains("data: [DONE]"), "{chunks}");
    let completion = client.post("/v1/chat/completions", &prompt_body(false)).await;
    assert!(completion.contains(r#"{"role":"assistant","content":"four"}"#), "{completion}");
    assert!(api.is_script_exhausted());
    let requests = api.requests();
    assert_eq!((requests.len(), api.connections()), (4, 1));
    assert_eq!((requests[0].query.as_str(), requests[0].headers["x-api-key"].as_str()), ("beta=true", "k"));
    assert!(requests.iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn other_requests_do_not_use_the_script() {
    let api = MockApi::start([Reply::text("one")]).await.unwrap();
    let mut client = RawClient::new(&api).await;
    assert!(client.post("/v1/messages/count_tokens", &prompt_body(false)).await.contains("input_tokens"));
    assert!(client.post("/elsewhere", &prompt_body(false)).await.starts_with("HTTP/1.1 404"));
    assert_eq!((api.model_requests().len(), api.requests().len(), api.is_script_exhausted()), (0, 2, false));
}

#[tokio::test]
async fn cut_reply_ends_without_terminator() {
    let api = MockApi::start([Reply::text("one").cut_after(2)]).await.unwrap();
    let answer = RawClient::new(&api).await.post("/v1/messages", &prompt_body(true)).await;
    assert!(answer.contains("content_block_start") && !answer.contains("content_block_delta"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn disconnect_from_a_stalled_reply_is_counted() {
    let api = MockApi::start([Reply::text("one").stall_after(1)]).await.unwrap();
    let mut client = RawClient::new(&api).await;
    let body = prompt_body(true).to_string();
    let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.0.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    api.wait_for_model_requests(1).await.unwrap();
    drop(client);
    api.wait_for_disconnects(1).await.unwrap();
}

#[tokio::test]
async fn held_reply_waits_for_its_release() {
    let api = MockApi::start([Reply::text("one").hold_until("go")]).await.unwrap();
    let mut client = RawClient::new(&api).await;
    let asking = tokio::spawn(async move { client.post("/v1/messages", &prompt_body(true)).await });
    api.wait_for_model_requests(1).await.unwrap();
    assert!(!asking.is_finished());
    api.release("go");
    assert!(asking.await.unwrap().contains("message_stop"));
}

#[tokio::test]
async fn requests_record_their_connection() {
    let api = MockApi::start(Script::from_fn(|request| Reply::text(format!("reply {}", request.number))))
        .await
        .unwrap();
    let (mut one, mut other) = (RawClient::new(&api).await, RawClient::new(&api).await);
    for (number, client) in [&mut one, &mut other].into_iter().enumerate() {
        let answer = client.post("/v1/messages", &prompt_body(false)).await;
        assert!(answer.contains(&format!("reply {number}")), "{answer}");
    }
    one.post("/v1/messages", &prompt_body(false)).await;
    let on: Vec<usize> = api.requests().iter().map(|request| request.connection).collect();
    assert_eq!((on, api.connections()), (vec![0, 1, 0], 2));
}

#[tokio::test]
async fn engine_uses_both_api_formats() {
    for model in ["claude-opus-4-5-20251101", "openai:kimi"] {
        let options = Options { model: Some(model.into()), ..Options::default() };
        let script = [Reply::tool("Read", json!({"file_path": "note.txt"})), Reply::text("It says hello.")];
        let host = Host::with_script(script).options(options).file("note.txt", "hello");
        let mut host = host.start().await.unwrap();
        let result = host.run("What does it say?").await.unwrap();
        assert_eq!(result.result.as_deref(), Some("It says hello."), "{model}");
        assert!(host.model_requests()[1].last_text().contains("hello"), "{model}");
        assert!(host.model_requests()[0].tool_names().contains(&"Read"), "{model}");
        assert!(!host.model_requests()[0].system_prompt().is_empty(), "{model}");
    }
}
