//! The Messages API client against a local test server.

use std::time::Duration;

use serde_json::json;
use whimbrel_wire::{Block, Role};

use super::*;
use crate::assemble::ReplyAssembler;
use crate::event::ReplyEvent;
use crate::history::History;
use crate::model_call::{CallStep, CallTimeouts, ModelCall};
use crate::request::RequestPrefix;
use crate::retry::RetryPolicy;
use crate::test_server::{ResponseAction, TestServer, chunk, last_chunk, response, stream_head};

fn request() -> Request {
    let mut history = History::new();
    history.push(Role::User, &Block::text("hi"));
    Request {
        session_id: "s1".into(),
        ..Request::new(
            "claude-x",
            Arc::new(RequestPrefix::new(vec!["Be brief.".into()], vec![])),
            history.snapshot(),
        )
    }
}

fn model(server: &TestServer) -> Anthropic {
    Anthropic::new(&server.url, Some("key".into()), HttpClient::from_env(|_| None))
}

/// SSE bytes of a reply with one text.
fn event_stream(text: &str) -> Vec<u8> {
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "claude-x", "usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let event =
        |value: &serde_json::Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    events.iter().map(event).collect::<String>().into_bytes()
}

fn streamed_response(text: &str) -> Vec<ResponseAction> {
    vec![stream_head(), chunk(&event_stream(text)), last_chunk()]
}

/// Returns the texts of a reply, or the error that ended it.
async fn collect_texts(model: &Anthropic, request: Request) -> Result<Vec<String>, ModelError> {
    let mut stream = model.stream_reply(Arc::new(request));
    let mut assembler = ReplyAssembler::default();
    let mut texts = Vec::new();
    while let Some(item) = stream.next().await {
        if let Some(finished) = assembler.push_event(&item?.event)?
            && let Block::Text { text, .. } = finished.block
        {
            texts.push(text);
        }
    }
    assert!(assembler.complete);
    Ok(texts)
}

#[tokio::test]
async fn reply_is_decoded_however_it_is_split() {
    let split = |size: usize| {
        let pieces = event_stream("größe 🦀").chunks(size).map(chunk).collect::<Vec<_>>();
        [vec![stream_head()], pieces, vec![last_chunk()]].concat()
    };
    let server = TestServer::start([split(1), split(7), split(10_000)]).await;
    let model = model(&server);
    for _ in 0..3 {
        assert_eq!(collect_texts(&model, request()).await, Ok(vec!["größe 🦀".to_owned()]));
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let at_once = || {
        let writes = streamed_response("a").into_iter().flat_map(|action| match action {
            ResponseAction::Write(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        vec![ResponseAction::Write(writes.collect())]
    };
    let server = TestServer::start([at_once(), at_once(), at_once()]).await;
    let model = model(&server);
    for _ in 0..3 {
        collect_texts(&model, request()).await.unwrap();
        // Lets the connection task mark the connection as idle.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn request_has_the_configured_headers() {
    let server = TestServer::start([streamed_response("a"), streamed_response("b")]).await;
    let variables = |name: &str| match name {
        "ANTHROPIC_BASE_URL" => Some(format!("{}/", server.url)),
        "ANTHROPIC_AUTH_TOKEN" => Some("token".to_owned()),
        "ANTHROPIC_CUSTOM_HEADERS" => Some("X-Team: red\nno header\nanthropic-beta: mine-1".to_owned()),
        "ANTHROPIC_BETAS" => Some("mine-2,mine-3".to_owned()),
        _ => None,
    };
    let model = Anthropic::from_env(variables, HttpClient::from_env(|_| None));
    let request = Request { betas: vec!["theirs-1".into()], ..request() };
    collect_texts(&model, request.clone()).await.unwrap();
    model.mark_unsupported("claude-x", &OptionalPart::Beta("theirs-1".into()));
    collect_texts(&model, request.clone()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].request_line.trim(), "POST /v1/messages?beta=true HTTP/1.1");
    let expected = [
        ("authorization", Some("Bearer token")),
        ("x-api-key", None),
        ("anthropic-version", Some("2023-06-01")),
        ("content-type", Some("application/json")),
        ("anthropic-beta", Some("interleaved-thinking-2025-05-14,theirs-1,mine-1,mine-2,mine-3")),
        ("user-agent", Some(concat!("whimbrel/", env!("CARGO_PKG_VERSION")))),
        ("x-team", Some("red")),
        ("accept-encoding", Some("identity")),
    ];
    for (name, value) in expected {
        assert_eq!(requests[0].header(name), value, "{name}");
    }
    assert_eq!(
        requests[1].header("anthropic-beta"),
        Some("interleaved-thinking-2025-05-14,mine-1,mine-2,mine-3")
    );
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&requests[0].body).unwrap(),
        body::to_value(&request)
    );
}

#[tokio::test]
async fn oauth_token_is_sent_with_its_beta() {
    let server = TestServer::start([streamed_response("a")]).await;
    let variables = |name: &str| match name {
        "ANTHROPIC_BASE_URL" => Some(server.url.clone()),
        "CLAUDE_CODE_OAUTH_TOKEN" => Some("token".to_owned()),
        _ => None,
    };
    let model = Anthropic::from_env(variables, HttpClient::from_env(|_| None));
    collect_texts(&model, request()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer token"));
    assert_eq!(requests[0].header("x-api-key"), None);
    let betas = requests[0].header("anthropic-beta");
    assert_eq!(betas, Some("interleaved-thinking-2025-05-14,oauth-2025-04-20"));
}

#[tokio::test]
async fn environment_changes_the_body() {
    let server = TestServer::start([streamed_response("a")]).await;
    let send = async |extra: &'static str| {
        let variables = |name: &str| match name {
            "ANTHROPIC_BASE_URL" => Some(server.url.clone()),
            "ANTHROPIC_API_KEY" => Some("key".to_owned()),
            "CLAUDE_CODE_EXTRA_BODY" => Some(extra.to_owned()),
            "DISABLE_PROMPT_CACHING" => Some("1".to_owned()),
            _ => None,
        };
        let model = Anthropic::from_env(variables, HttpClient::from_env(|_| None));
        collect_texts(&model, request()).await
    };
    send(r#"{"service_tier": "auto", "metadata": {"user_id": "me"}}"#).await.unwrap();
    let error = send("{").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert!(error.message.starts_with("CLAUDE_CODE_EXTRA_BODY is not valid JSON"), "{error:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let sent: serde_json::Value = serde_json::from_slice(&requests[0].body).unwrap();
    let expected = json!({
        "model": "claude-x",
        "max_tokens": 32000,
        "metadata": {"user_id": "me"},
        "stream": true,
        "service_tier": "auto",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn missing_key_sends_no_request() {
    let model = Anthropic::from_env(|_| None, HttpClient::from_env(|_| None));
    let error = collect_texts(&model, request()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NoCredentials);
    for name in
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "openai:NAME"]
    {
        assert!(error.message.contains(name), "{name}");
    }
    assert_eq!(model.key_source(), "none");
}

#[tokio::test]
async fn responses_that_are_not_replies_are_classified() {
    use ModelErrorKind::*;
    let html = "content-type: text/html; charset=utf-8\r\n";
    let json = "content-type: application/json\r\n";
    let events = "content-type: text/event-stream\r\n";
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let table = [
        (
            "A29 a page",
            response(200, html, "<html><title>Log in</title></html>"),
            NotAStream,
            "<html><title>Log in",
        ),
        ("A30 nothing", response(200, events, ""), NotAStream, "empty"),
        ("A30 nothing at all", response(200, "", ""), NotAStream, "empty"),
        ("JSON that is no reply", response(200, json, r#"{"ok":true}"#), NotAStream, r#"{"ok":true}"#),
        ("an error with a good status", response(200, json, error), Overloaded, "Overloaded"),
        (
            "A18 an error in the stream",
            response(200, events, &format!("data: {error}\n\n")),
            Overloaded,
            "Overloaded",
        ),
        ("no event", response(200, events, "data: hello\n\n"), Protocol, "hello"),
        ("half an event", response(200, events, "data: {\"type\":"), NotAStream, "empty"),
        ("a page that refuses", response(502, html, "<html>Bad gateway</html>"), Server, "status 502"),
        ("elsewhere", response(301, "location: https://other/\r\n", ""), InvalidRequest, "https://other/"),
    ];
    for (name, response, kind, text) in table {
        let server = TestServer::start([response]).await;
        let error = collect_texts(&model(&server), request()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{name}: {}", error.message);
        assert!(error.message.contains(text), "{name}: {}", error.message);
    }
}

#[tokio::test]
async fn error_response_includes_its_headers() {
    let headers = "retry-after: 3\r\nx-should-retry: true\r\nrequest-id: req_7\r\n";
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#;
    let server = TestServer::start([response(429, headers, body)]).await;
    let expected = ModelError {
        status: Some(429),
        retry_after: Some(Duration::from_secs(3)),
        should_retry: Some(true),
        request_id: Some("req_7".into()),
        ..ModelError::new(ModelErrorKind::RateLimit, "Slow down")
    };
    assert_eq!(collect_texts(&model(&server), request()).await, Err(expected));
}

#[tokio::test]
async fn whole_reply_is_converted_to_events() {
    let body = r#"{"type":"message","id":"m","model":"x","content":[{"type":"text","text":"all at once"}],"stop_reason":"end_turn"}"#;
    let server = TestServer::start([response(200, "content-type: application/json\r\n", body)]).await;
    assert_eq!(collect_texts(&model(&server), request()).await, Ok(vec!["all at once".to_owned()]));
}

#[tokio::test]
async fn line_of_20_mb_is_read() {
    let text = "x".repeat(20 << 20);
    let server = TestServer::start([streamed_response(&text)]).await;
    assert_eq!(collect_texts(&model(&server), request()).await.unwrap()[0].len(), text.len());
}

#[tokio::test]
async fn endless_line_is_rejected() {
    let endless = ResponseAction::Repeat([b"100000\r\n".as_slice(), &vec![b'x'; 1 << 20], b"\r\n"].concat());
    let server = TestServer::start([vec![stream_head(), chunk(b"data: "), endless]]).await;
    let error = collect_texts(&model(&server), request()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.should_retry),
        (ModelErrorKind::Protocol, Some(false)),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn request_id_precedes_the_reply_in_every_form() {
    let body =
        r#"{"type":"message","id":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
    let whole = response(200, "content-type: application/json\r\nx-request-id: req_1\r\n", body);
    let head = "content-type: text/event-stream\r\nrequest-id: req_1\r\n";
    let streamed = response(200, head, std::str::from_utf8(&event_stream("a")).unwrap());
    let server = TestServer::start([whole, streamed, streamed_response("a")]).await;
    for (form, expected) in [("whole", Some("req_1")), ("streamed", Some("req_1")), ("without one", None)] {
        let first = model(&server).stream_reply(Arc::new(request())).next().await.unwrap().unwrap();
        let expected = ReplyEvent::Accepted { request_id: expected.map(str::to_owned) };
        assert_eq!(first, ReplyItem { event: expected, raw: None }, "{form}");
    }
}

#[tokio::test]
async fn raw_events_are_kept_on_request() {
    let server = TestServer::start([streamed_response("a"), streamed_response("a")]).await;
    for raw_events in [true, false] {
        let stream = model(&server).stream_reply(Arc::new(Request { raw_events, ..request() }));
        let items: Vec<ReplyItem> = stream.map(Result::unwrap).collect().await;
        let named = items.iter().filter(|item| !item.event.is_keepalive());
        assert!(named.clone().count() == 6 && named.clone().all(|item| item.raw.is_some() == raw_events));
    }
}

/// Runs a call; returns the number of retries and the final error kind.
async fn run_call(server: &TestServer, timeouts: CallTimeouts) -> (u64, Option<ModelErrorKind>) {
    let policy = RetryPolicy { initial_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    let mut call = ModelCall::new(Arc::new(model(server)), request(), policy, timeouts);
    let mut retries = 0;
    while let Some(step) = call.next().await {
        match step {
            Ok(CallStep::Item(_)) => {}
            Ok(CallStep::Retry(retry)) => retries = retry.attempt,
            Ok(CallStep::Truncated(error)) | Err(error) => return (retries, Some(error.kind)),
        }
    }
    (retries, None)
}

#[tokio::test]
async fn call_recovers_from_transient_failures() {
    let part = |bytes: usize, action: ResponseAction| {
        vec![stream_head(), chunk(&event_stream("abc")[..bytes]), action]
    };
    let overloaded = || response(529, "", "");
    let end = event_stream("abc").len();
    let default_timeouts = CallTimeouts::default();
    let short = CallTimeouts { bytes: Duration::from_millis(100), ..default_timeouts };
    let medium = CallTimeouts { bytes: Duration::from_secs(1), ..default_timeouts };
    let table = [
        (
            "A5 overloads",
            default_timeouts,
            vec![overloaded(), overloaded(), streamed_response("a")],
            (2, None),
        ),
        (
            "A20 a cut in the text",
            default_timeouts,
            vec![part(end * 2 / 3, ResponseAction::Close), streamed_response("a")],
            (1, None),
        ),
        (
            "A23 a cut before message_stop",
            default_timeouts,
            vec![part(end - 30, ResponseAction::Close)],
            (0, None),
        ),
        ("A31 a stall", medium, vec![part(end / 2, ResponseAction::Hang), streamed_response("a")], (1, None)),
        (
            "A31 stalls for ever",
            short,
            vec![part(end / 2, ResponseAction::Hang); 3],
            (2, Some(ModelErrorKind::Stalled)),
        ),
        (
            "A10 no such model",
            default_timeouts,
            vec![response(404, "", "")],
            (0, Some(ModelErrorKind::ModelNotFound)),
        ),
    ];
    for (name, timeouts, responses, expected) in table {
        assert_eq!(run_call(&TestServer::start(responses).await, timeouts).await, expected, "{name}");
    }
}
