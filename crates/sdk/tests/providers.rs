//! Keys, URLs and headers on their way to a provider; recordings; what a failed request says.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use whimbrel::model::Provider;
use whimbrel::{Agent, Engine, Environment, TurnError, query};

/// A request that reached the server.
#[derive(Debug, Clone)]
struct SeenRequest {
    path: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// A server on loopback that speaks the Messages API and Chat Completions, and keeps its requests.
struct ModelServer {
    url: String,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
}

type Reply = (StatusCode, &'static str, String);

#[derive(Clone)]
struct Served {
    reply: Reply,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
}

impl ModelServer {
    async fn start(reply: Reply) -> Self {
        let requests = Arc::<Mutex<Vec<SeenRequest>>>::default();
        let served = Served { reply, requests: Arc::clone(&requests) };
        let router = Router::new().fallback(answer).with_state(served);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The only request.
    fn request(&self) -> SeenRequest {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests[0].clone()
    }
}

async fn answer(
    State(served): State<Served>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    served.requests.lock().unwrap().push(SeenRequest { path: uri.path().to_owned(), headers, body });
    let (status, content_type, text) = served.reply;
    (status, [("content-type", content_type), ("request-id", "req_7")], text)
}

fn events(events: &[Value]) -> Reply {
    let line = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    (StatusCode::OK, "text/event-stream", events.iter().map(line).collect())
}

fn messages_reply(text: &str) -> Reply {
    events(&[
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "x",
            "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ])
}

fn chat_reply(text: &str) -> Reply {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let (status, kind, mut text) =
        events(&[chunk(json!({"role": "assistant", "content": text}), None), chunk(json!({}), Some("stop"))]);
    text.push_str("data: [DONE]\n\n");
    (status, kind, text)
}

fn refusal() -> Reply {
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "not this"}});
    (StatusCode::BAD_REQUEST, "application/json", error.to_string())
}

fn agent() -> Agent {
    Agent::new().cwd(std::env::temp_dir()).persist_session(false).tools([""; 0])
}

#[tokio::test]
async fn key_of_the_agent_wins_over_those_of_the_environment() {
    let server = ModelServer::start(messages_reply("hello")).await;
    let environment = Environment::from_iter([
        ("ANTHROPIC_API_KEY", "another key"),
        ("ANTHROPIC_AUTH_TOKEN", "a token of the service"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "an account of the service"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
    ]);
    let agent = agent().api_key("the key of the customer").base_url(&server.url);
    assert_eq!(query("hi", &agent.environment(environment)).await.unwrap().text(), "hello");
    let request = server.request();
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.headers.get("x-api-key").map(String::as_str), Some("the key of the customer"));
    assert_eq!(request.headers.get("authorization"), None);
}

#[tokio::test]
async fn provider_given_as_a_value_is_asked() {
    let messages = ModelServer::start(messages_reply("from messages")).await;
    let chat = ModelServer::start(chat_reply("from chat")).await;
    let engine = Engine::builder()
        .provider(Provider::anthropic("k1").base_url(&messages.url).header("x-team", "42"))
        .provider(Provider::chat("own", format!("{}/v1", chat.url)).key("k2").header("x-team", "43"))
        .build();
    let agent = agent().engine(engine);
    assert_eq!(query("hi", &agent).await.unwrap().text(), "from messages");
    assert_eq!(query("hi", &agent.model("own:llama3")).await.unwrap().text(), "from chat");
    let header = |request: &SeenRequest, name: &str| request.headers.get(name).cloned();
    let request = messages.request();
    assert_eq!(
        (header(&request, "x-api-key"), header(&request, "x-team")),
        (Some("k1".into()), Some("42".into()))
    );
    let request = chat.request();
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.body["model"], "llama3");
    assert_eq!(
        (header(&request, "authorization"), header(&request, "x-team")),
        (Some("Bearer k2".into()), Some("43".into()))
    );
}

#[tokio::test]
async fn recording_replays_without_the_provider() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recording.jsonl");
    let server = ModelServer::start(messages_reply("recorded")).await;
    let provider = Provider::anthropic("k").base_url(&server.url);
    let recording = agent().engine(Engine::builder().provider(provider).record_to(&file).build());
    assert_eq!(query("hi", &recording).await.unwrap().text(), "recorded");
    let replaying = agent().engine(Engine::builder().replay_from(&file).build());
    assert_eq!(query("hi", &replaying).await.unwrap().text(), "recorded");
    assert_eq!(server.requests().len(), 1);
    let other = agent().engine(Engine::builder().replay_from(&file).build());
    let error = query("something else", &other).await.unwrap_err();
    assert!(matches!(&error, TurnError::Api(_)), "{error:?}");
}

#[tokio::test]
async fn failed_request_names_its_id() {
    let server = ModelServer::start(refusal()).await;
    let error = query("hi", &agent().api_key("k").base_url(&server.url)).await.unwrap_err();
    let TurnError::Api(api) = &error else { panic!("{error:?}") };
    assert_eq!((api.status, api.request_id.as_deref()), (Some(400), Some("req_7")));
    assert!(api.message.contains("not this") && !api.is_retryable(), "{api:?}");
}
