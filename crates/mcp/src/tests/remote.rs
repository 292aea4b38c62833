//! Tests of remote servers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::fixture::{TEST_TIMEOUT, TestServers};
use super::http_server::{
    HttpReply, HttpTestServer, ReceivedRequest, answer_request, event_channel, format_event,
};
use crate::server_lifecycle::ServerPhase;
use crate::{McpLimits, ServerDeps};

/// Answers as a small server does.
fn answer_default(request: &ReceivedRequest) -> HttpReply {
    match (request.method.as_str(), answer_request(&request.body)) {
        ("POST", Some(answer)) => HttpReply::json(&answer).with_header("mcp-session-id", "session-1"),
        ("POST", None) => HttpReply::status(202),
        _ => HttpReply::status(405),
    }
}

async fn connect(http_server: &HttpTestServer) -> TestServers {
    let headers = json!({"Authorization": "Bearer secret"});
    TestServers::start(json!({"web": {"type": "http", "url": http_server.url("/mcp"), "headers": headers}}))
        .await
}

#[tokio::test]
async fn a_server_is_reached_by_streamable_http() {
    let http_server = HttpTestServer::new(answer_default).await;
    let servers = connect(&http_server).await;
    assert_eq!(servers.status_and_error("web"), ("connected".into(), String::new()));
    assert_eq!(servers.call_text("mcp__web__go", json!({"a": 1})).await, r#"did {"a":1}"#);
    servers.registry.close().await;
    let requests = http_server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.headers["authorization"] == "Bearer secret" && request.path == "/mcp")
    );
    let call = requests.iter().find(|request| request.rpc_method() == "tools/call").unwrap();
    assert_eq!(call.headers["mcp-session-id"], "session-1");
    assert_eq!(call.headers["mcp-protocol-version"], "2025-06-18");
    assert!(
        call.headers["accept"].contains("text/event-stream")
            && call.headers["user-agent"].starts_with("whimbrel/")
    );
    // The session is deleted at the server.
    let last = requests.last().unwrap();
    assert_eq!((last.method.as_str(), last.headers["mcp-session-id"].as_str()), ("DELETE", "session-1"));
}

#[tokio::test]
async fn responses_can_arrive_as_events() {
    let http_server = HttpTestServer::new(|request| match (request.method.as_str(), answer_request(&request.body)) {
        ("POST", Some(answer)) => {
            let ping = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            HttpReply::events(event_channel(&[": hello\n\n".into(), format_event(&ping), format_event(&answer)]).1)
        }
        ("POST", None) => HttpReply::status(202),
        _ => HttpReply::status(405),
    })
    .await;
    let servers = connect(&http_server).await;
    assert_eq!(servers.call_text("mcp__web__go", json!({})).await, "did {}");
    servers.registry.close().await;
}

#[tokio::test]
async fn http_401_is_shown_as_needs_auth() {
    for kind in ["http", "sse"] {
        let http_server =
            HttpTestServer::new(|_| HttpReply::status(401).with_header("www-authenticate", "Bearer")).await;
        let servers = TestServers::start(json!({"web": {"type": kind, "url": http_server.url("/")}})).await;
        let (state, error) = servers.status_and_error("web");
        assert_eq!(state, "needs-auth", "{kind}");
        assert_eq!(
            error,
            "it requires a login: it answered HTTP 401. Run `whimbrel mcp login` with its name, or set a token in its `headers`; then reconnect.",
            "{kind}"
        );
        assert_eq!(http_server.requests().len(), 1, "{kind}");
        servers.registry.close().await;
    }
}

#[tokio::test]
async fn a_missing_scope_is_reported_with_its_name() {
    let scope_error = || {
        let challenge = r#"Bearer error="insufficient_scope", scope="birds:count""#;
        HttpReply::status(403).with_header("www-authenticate", challenge)
    };
    for kind in ["http", "sse"] {
        let http_server = HttpTestServer::new(move |_| scope_error()).await;
        let servers = TestServers::start(json!({"web": {"type": kind, "url": http_server.url("/")}})).await;
        let (state, error) = servers.status_and_error("web");
        assert_eq!((state.as_str(), http_server.requests().len()), ("needs-auth", 1), "{kind}: {error}");
        assert!(error.contains("\"birds:count\"") && error.contains("`oauth.scopes`"), "{error}");
        servers.registry.close().await;
    }
    let http_server =
        HttpTestServer::new(move |request| match request.body["params"]["arguments"]["all"] == true {
            true => scope_error(),
            false => answer_default(request),
        })
        .await;
    let servers = connect(&http_server).await;
    let text = servers.call_text("mcp__web__go", json!({"all": true})).await;
    assert!(text.contains("\"birds:count\"") && text.contains("whimbrel mcp login"), "{text}");
    assert_eq!(servers.call_text("mcp__web__go", json!({})).await, "did {}");
    assert_eq!(servers.status_and_error("web"), ("connected".into(), String::new()));
    // The scope error is not recorded as the connection's error.
    let ServerPhase::Connected(connection) = servers.registry.enabled_servers()[0].wait_settled().await.phase
    else {
        panic!()
    };
    assert_eq!(connection.state.last_error(), None);
    servers.registry.close().await;
}

#[tokio::test]
async fn an_expired_session_is_reinitialized_once() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sessions);
    let http_server = HttpTestServer::new(move |request| {
        let Some(answer) = answer_request(&request.body) else {
            return HttpReply::status(if request.method == "POST" { 202 } else { 405 });
        };
        if request.rpc_method() == "initialize" {
            let session = count.fetch_add(1, Ordering::SeqCst) + 1;
            return HttpReply::json(&answer).with_header("mcp-session-id", session.to_string());
        }
        // Each session expires with its first call, reported in two ways.
        match (request.rpc_method(), request.headers["mcp-session-id"].as_str()) {
            ("tools/call", "1") => HttpReply::status(404),
            ("tools/call", "2") if request.body["params"]["arguments"]["second"] == true => {
                HttpReply::json(&error_without_id("Bad Request: No valid session ID provided"))
                    .with_status(400)
            }
            _ => HttpReply::json(&answer),
        }
    })
    .await;
    let servers = connect(&http_server).await;
    assert_eq!(servers.call_text("mcp__web__go", json!({})).await, "did {}");
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    assert_eq!(servers.call_text("mcp__web__go", json!({"second": true})).await, r#"did {"second":true}"#);
    assert_eq!(sessions.load(Ordering::SeqCst), 3);
    servers.registry.close().await;
}

/// Error response without an id.
fn error_without_id(message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": message}})
}

#[tokio::test]
async fn an_error_without_id_ends_the_call() {
    for status in [200, 400, 500] {
        let http_server = HttpTestServer::new(move |request| match request.rpc_method() {
            "tools/call" => HttpReply::json(&error_without_id("not today")).with_status(status),
            _ => answer_default(request),
        })
        .await;
        let servers = connect(&http_server).await;
        let text =
            tokio::time::timeout(TEST_TIMEOUT, servers.call_text("mcp__web__go", json!({}))).await.unwrap();
        assert_eq!(text, "error: not today", "{status}");
        servers.registry.close().await;
    }
}

#[tokio::test]
async fn an_oversized_response_is_an_error() {
    let http_server = HttpTestServer::new(|request| match request.rpc_method() {
        "tools/call" => HttpReply::json(&json!({})).with_body(&" ".repeat(40 << 20)),
        _ => answer_default(request),
    })
    .await;
    let servers = connect(&http_server).await;
    let text = servers.call_text("mcp__web__go", json!({})).await;
    assert!(text.starts_with("error: MCP server web: "), "{text}");
    servers.registry.close().await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = HttpTestServer::new(answer_default).await;
    let target_url = target.url("/taken?token=x");
    let http_server =
        HttpTestServer::new(move |_| HttpReply::status(307).with_header("location", target_url.clone()))
            .await;
    let servers = connect(&http_server).await;
    let (state, error) = servers.status_and_error("web");
    assert_eq!(state, "failed");
    assert!(error.contains("HTTP 307") && error.contains("/taken.") && !error.contains("token=x"), "{error}");
    assert!(target.requests().is_empty());
    servers.registry.close().await;
}

#[tokio::test]
async fn responses_of_other_servers_are_reported() {
    type Answers = fn(&ReceivedRequest) -> HttpReply;
    let cases: [(&str, Answers, &str); 4] = [
        (
            "a page",
            |_| HttpReply::status(200).with_header("content-type", "text/html").with_body("<html>"),
            "text/html, which is neither",
        ),
        (
            "an error",
            |_| HttpReply::status(500).with_body("out of order"),
            "HTTP 500 Internal Server Error: out of order",
        ),
        (
            "not found",
            |_| HttpReply::status(404).with_body("no such page"),
            "HTTP 404 Not Found: no such page",
        ),
        ("other JSON", |_| HttpReply::json(&json!({"hello": 1})), "not a JSON-RPC message: {\"hello\":1}"),
    ];
    for (name, answers, expected) in cases {
        let http_server = HttpTestServer::new(answers).await;
        let servers = connect(&http_server).await;
        let (state, error) = servers.status_and_error("web");
        assert!(state == "failed" && error.contains(expected), "{name}: {state} {error}");
        servers.registry.close().await;
    }
    let closed = HttpTestServer::new(answer_default).await.url("/");
    let servers = TestServers::start(
        json!({"web": {"type": "http", "url": closed}, "old": {"type": "sse", "url": closed}}),
    )
    .await;
    for name in ["web", "old"] {
        assert!(
            servers.status_and_error(name).1.starts_with("Could not connect to 127.0.0.1"),
            "{:?}",
            servers.status_and_error(name)
        );
    }
    servers.registry.close().await;
}

#[tokio::test]
async fn an_idle_server_times_out_and_gets_a_cancellation() {
    let http_server = HttpTestServer::new(|request| {
        if request.rpc_method() == "tools/call" { HttpReply::silence() } else { answer_default(request) }
    })
    .await;
    let entry = json!({"web": {"type": "http", "url": http_server.url("/")}});
    let servers = TestServers::start_with(entry, |deps| ServerDeps {
        limits: McpLimits { idle_timeout: Duration::from_secs(2), ..deps.limits },
        ..deps
    })
    .await;
    let text = servers.call_text("mcp__web__go", json!({})).await;
    assert_eq!(text, "error: MCP server web: it did not answer within 2 s.");
    let received = async {
        while http_server.rpc_methods().last().unwrap() != "notifications/cancelled" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, received).await.unwrap();
    servers.registry.close().await;
}

#[tokio::test]
async fn a_truncated_response_is_an_error() {
    let http_server = HttpTestServer::new(|request| {
        if request.rpc_method() == "tools/call" {
            HttpReply::events(event_channel(&[": almost\n\n".into(), "data: {\"jsonrpc\":".into()]).1)
        } else {
            answer_default(request)
        }
    })
    .await;
    let servers = connect(&http_server).await;
    let text =
        tokio::time::timeout(TEST_TIMEOUT, servers.call_text("mcp__web__go", json!({}))).await.unwrap();
    assert!(text.starts_with("error: "), "{text}");
    servers.registry.close().await;
}

/// Server with the SSE transport: responses to posts arrive in the stream.
struct SseTestServer {
    http_server: HttpTestServer,
    stream: Arc<Mutex<Option<UnboundedSender<String>>>>,
}

impl SseTestServer {
    async fn new(endpoint: &'static str) -> Self {
        let stream = Arc::new(Mutex::new(None::<UnboundedSender<String>>));
        let shared_stream = Arc::clone(&stream);
        let http_server = HttpTestServer::new(move |request| {
            if request.method == "GET" {
                let (sender, events) = event_channel(&[format!("event: endpoint\ndata: {endpoint}\n\n")]);
                *shared_stream.lock().unwrap() = Some(sender);
                return HttpReply::events(events);
            }
            if let (Some(answer), Some(sender)) =
                (answer_request(&request.body), &*shared_stream.lock().unwrap())
            {
                let _ = sender.send(format_event(&answer));
            }
            HttpReply::status(202).with_body("Accepted")
        })
        .await;
        Self { http_server, stream }
    }

    async fn start_servers(&self) -> TestServers {
        let headers = json!({"X-Key": "secret"});
        TestServers::start(
            json!({"old": {"type": "sse", "url": self.http_server.url("/a/sse"), "headers": headers}}),
        )
        .await
    }
}

#[tokio::test]
async fn a_server_is_reached_by_sse() {
    let sse_server = SseTestServer::new("messages?session=1").await;
    let servers = sse_server.start_servers().await;
    assert_eq!(servers.status_and_error("old"), ("connected".into(), String::new()));
    assert_eq!(servers.call_text("mcp__old__go", json!({"a": 2})).await, r#"did {"a":2}"#);
    assert_eq!(
        sse_server.http_server.rpc_methods(),
        ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    );
    let requests = sse_server.http_server.requests();
    assert!(requests.iter().all(|request| request.headers["x-key"] == "secret"));
    assert!(requests.iter().skip(1).all(|request| request.path == "/a/messages?session=1"));
    // Closing the stream makes the client reconnect.
    sse_server.stream.lock().unwrap().take();
    let streams =
        || sse_server.http_server.requests().iter().filter(|request| request.method == "GET").count();
    servers.wait_until(|servers| streams() == 2 && servers.status_and_error("old").0 == "connected").await;
    assert_eq!(servers.call_text("mcp__old__go", json!({})).await, "did {}");
    servers.registry.close().await;
}

#[tokio::test]
async fn messages_are_not_sent_to_another_origin() {
    let sse_server = SseTestServer::new("http://127.0.0.1:9/messages").await;
    let servers = sse_server.start_servers().await;
    let (state, error) = servers.status_and_error("old");
    assert_eq!(state, "failed");
    assert_eq!(error, "its message endpoint http://127.0.0.1:9 is on another server.");
    assert_eq!(sse_server.http_server.rpc_methods(), Vec::<String>::new());
    servers.registry.close().await;
    let page = HttpTestServer::new(|_| {
        HttpReply::status(200).with_header("content-type", "text/html").with_body("<html>")
    })
    .await;
    let servers = TestServers::start(json!({"old": {"type": "sse", "url": page.url("/")}})).await;
    assert!(
        servers.status_and_error("old").1.contains("text/html instead of an event stream: <html>"),
        "{:?}",
        servers.status_and_error("old")
    );
    let status: Value = serde_json::to_value(servers.registry.status()).unwrap();
    assert_eq!(status[0]["config"]["url"], page.url("/"));
    servers.registry.close().await;
}
