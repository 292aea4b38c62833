//! Tests of servers in the host's process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::{ControlResponse, McpMessage, Request};
use whimbrel_wire::options::{McpServerConfig, SdkServer};
use whimbrel_wire::{Frame, RawJson};

use super::fixture::{TEST_TIMEOUT, TestServers, test_deps};
use super::test_server::TestMcpServer;
use crate::connection::{Connection, RequestOrigin};
use crate::limits::RequestTimeouts;
use crate::server_tool::call_tool;
use crate::transport::HostedInbox;
use crate::{McpError, ServerDeps};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;

/// Result, error or silence of a host.
type HostAnswer = Option<Result<Value, String>>;

/// Host that records and answers control requests.
struct TestHost {
    requests: HostRequests,
    /// Methods requested so far, in order.
    methods: Arc<Mutex<Vec<String>>>,
    /// Ids of cancelled requests.
    cancelled: mpsc::UnboundedReceiver<String>,
}

impl TestHost {
    fn new(answer: impl Fn(&McpMessage) -> HostAnswer + Send + 'static) -> Self {
        let (frames, mut sent) = mpsc::channel(64);
        let requests =
            HostRequests::new(FrameSender::new("session".into(), frames, CancellationToken::new()));
        let (methods, responder) = (Arc::new(Mutex::new(Vec::new())), requests.clone());
        let (cancelled_sender, cancelled) = mpsc::unbounded_channel();
        let recorded = Arc::clone(&methods);
        tokio::spawn(async move {
            while let Some(frame) = sent.recv().await {
                match frame {
                    Frame::ControlRequest(control_request) => {
                        let Request::McpMessage(message) = &control_request.request else {
                            panic!("{control_request:?}")
                        };
                        let value: Value = message.message.decode().unwrap();
                        recorded
                            .lock()
                            .unwrap()
                            .push(value["method"].as_str().unwrap_or("answer").to_owned());
                        match answer(message) {
                            Some(Ok(reply)) => {
                                let reply = json!({"mcp_response": reply});
                                responder.handle_response(
                                    ControlResponse::success(&control_request.request_id, &reply).response,
                                );
                            }
                            Some(Err(error)) => {
                                responder.handle_response(
                                    ControlResponse::error(&control_request.request_id, error).response,
                                );
                            }
                            None => {}
                        }
                    }
                    Frame::ControlCancel(cancel) => cancelled_sender.send(cancel.request_id).unwrap(),
                    other => panic!("{other:?}"),
                }
            }
        });
        Self { requests, methods, cancelled }
    }

    async fn start_servers(&self) -> TestServers {
        let host = self.requests.clone();
        let entries = json!({"calc": {"type": "sdk", "name": "calculator"}});
        TestServers::start_with(entries, |deps| ServerDeps { host: Some(host), ..deps }).await
    }

    fn methods(&self) -> Vec<String> {
        self.methods.lock().unwrap().clone()
    }
}

fn result_reply(message: &McpMessage, result: &Value) -> HostAnswer {
    let request: Value = message.message.decode().unwrap();
    Some(Ok(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})))
}

/// Answers as a simple host does.
fn answer_calculator(message: &McpMessage) -> HostAnswer {
    assert_eq!(message.server_name, "calc");
    let request: Value = message.message.decode().unwrap();
    match request["method"].as_str().unwrap() {
        "initialize" => {
            assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
            result_reply(
                message,
                &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}),
            )
        }
        "tools/list" => {
            result_reply(message, &json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}))
        }
        "tools/call" => match request["params"]["arguments"]["a"].as_i64() {
            Some(a) => result_reply(
                message,
                &json!({"content": [{"type": "text", "text": format!("sum={}", a + 3)}]}),
            ),
            None => None,
        },
        // Notifications are acknowledged without an id.
        _ => Some(Ok(json!({"jsonrpc": "2.0", "result": {}}))),
    }
}

#[tokio::test]
async fn messages_are_control_requests_to_the_host() {
    let host = TestHost::new(answer_calculator);
    let servers = host.start_servers().await;
    assert_eq!(servers.status_and_error("calc"), ("connected".into(), String::new()));
    assert_eq!(servers.status("calc").source.as_deref(), Some("sdk"));
    assert_eq!(servers.call_text("mcp__calc__add", json!({"a": 2})).await, "sum=5");
    assert_eq!(host.methods(), ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    servers.registry.close().await;
}

#[tokio::test]
async fn cancelling_a_call_cancels_the_control_request() {
    let mut host = TestHost::new(answer_calculator);
    let servers = host.start_servers().await;
    let tool = servers.tool("mcp__calc__add");
    let call = tool.call(servers.request(json!({})));
    let (ended, ()) = tokio::join!(call, async {
        while host.requests.pending_count() == 0 {
            tokio::task::yield_now().await;
        }
        servers.cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().text(), "MCP server calc: the call was cancelled.");
    tokio::time::timeout(TEST_TIMEOUT, host.cancelled.recv()).await.unwrap().unwrap();
    while host.methods().last().unwrap() != "notifications/cancelled" {
        tokio::task::yield_now().await;
    }
    servers.registry.close().await;
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_idle_timeout() {
    let token = Arc::new(Mutex::new(Value::Null));
    let recorded_token = Arc::clone(&token);
    let host = TestHost::new(move |message| {
        let request: Value = message.message.decode().unwrap();
        if request["method"] != "tools/call" {
            return answer_calculator(message);
        }
        *recorded_token.lock().unwrap() = request["params"]["_meta"]["progressToken"].clone();
        None
    });
    let dir = tempfile::tempdir().unwrap();
    let deps = ServerDeps { host: Some(host.requests.clone()), ..test_deps(dir.path()) };
    let (config, inbox) = (McpServerConfig::Sdk(SdkServer::default()), HostedInbox::default());
    let connection = Connection::open(&"calc".into(), &config, &deps, &inbox).await.unwrap();
    let (idle, step) = (Duration::from_secs(1), Duration::from_millis(800));
    let timeouts = RequestTimeouts { total: TEST_TIMEOUT, idle: Some(idle) };
    let (started_at, never) = (Instant::now(), CancellationToken::new());
    let caller = RequestOrigin { tool: "add", tool_use_id: "", cancel: &never, details: None };
    let call = call_tool(&connection, "add", Map::new(), timeouts, caller);
    let (ended, ()) = tokio::join!(call, async {
        for progress in 1..=5 {
            tokio::time::sleep(step).await;
            let params = json!({"progressToken": *token.lock().unwrap(), "progress": progress});
            let notification =
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            assert!(inbox.deliver(&RawJson::from_value(&notification).unwrap()));
        }
    });
    assert_eq!(ended.unwrap_err(), McpError::Timeout(idle));
    let (elapsed, minimum) = (started_at.elapsed(), step * 5 + idle);
    assert!((minimum..minimum + step).contains(&elapsed), "{elapsed:?}");
    connection.close().await;
}

#[tokio::test]
async fn host_errors_and_invalid_responses_are_reported() {
    let failing = TestHost::new(|_| Some(Err("SDK MCP server not found: calc".into())));
    let servers = failing.start_servers().await;
    let (state, error) = servers.status_and_error("calc");
    assert_eq!(state, "failed");
    assert!(error.contains("SDK MCP server not found: calc"), "{error}");
    servers.registry.close().await;
    let invalid = TestHost::new(|message| {
        let request: Value = message.message.decode().unwrap();
        if request["method"] == "tools/call" { Some(Ok(json!("what?"))) } else { answer_calculator(message) }
    });
    let servers = invalid.start_servers().await;
    let text = servers.call_text("mcp__calc__add", json!({"a": 1})).await;
    assert_eq!(text, "error: the response is not valid: not a JSON-RPC message");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_closed_host_fails_calls_at_once() {
    let host = TestHost::new(answer_calculator);
    let servers = host.start_servers().await;
    let tool = servers.tool("mcp__calc__add");
    let call = tool.call(servers.request(json!({})));
    let (ended, ()) = tokio::join!(call, async {
        while host.requests.pending_count() == 0 {
            tokio::task::yield_now().await;
        }
        host.requests.close();
    });
    assert_eq!(ended.unwrap_err().text(), "MCP server calc: the host that runs it has closed its input.");
    servers.wait_status("calc", "failed").await;
    servers.registry.close().await;
}

#[tokio::test]
async fn without_a_host_the_server_fails() {
    let servers = TestServers::start(json!({"calc": {"type": "sdk", "name": "calc"}})).await;
    assert_eq!(servers.status_and_error("calc"), ("failed".into(), "no host is connected to run it.".into()));
    servers.registry.close().await;
}

/// Host side of an rmcp server: messages travel over channels.
struct ChannelTransport {
    from_engine: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleServer>>,
    to_engine: mpsc::UnboundedSender<Value>,
}

impl Transport<RoleServer> for ChannelTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.to_engine.send(serde_json::to_value(item).unwrap());
        async move { sent.map_err(std::io::Error::other) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.from_engine.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Runs a complete server in the host's process, including server-initiated messages.
async fn start_hosted(server: impl ServerHandler) -> TestServers {
    let (frames, mut sent) = mpsc::channel(64);
    let host = HostRequests::new(FrameSender::new("session".into(), frames, CancellationToken::new()));
    let (to_server, from_engine) = mpsc::unbounded_channel();
    let (to_engine, mut from_server) = mpsc::unbounded_channel::<Value>();
    tokio::spawn(async move {
        let running = serve_server(server, ChannelTransport { from_engine, to_engine }).await.unwrap();
        running.waiting().await.unwrap();
    });
    let entries = json!({"play": {"type": "sdk", "name": "play"}});
    let responder = host.clone();
    let servers =
        TestServers::start_without_waiting(&entries, |deps| ServerDeps { host: Some(host), ..deps });
    let registry = servers.registry.clone();
    tokio::spawn(async move {
        let mut pending = std::collections::HashMap::new();
        loop {
            tokio::select! {
                Some(frame) = sent.recv() => {
                    let Frame::ControlRequest(control_request) = frame else { continue };
                    let Request::McpMessage(message) = &control_request.request else { continue };
                    let value: Value = message.message.decode().unwrap();
                    match (value.get("method"), value.get("id")) {
                        (Some(_), Some(id)) => {
                            pending.insert(id.to_string(), control_request.request_id.clone());
                        }
                        _ => {
                            let acknowledgment = json!({"mcp_response": {"jsonrpc": "2.0", "id": 0, "result": {}}});
                            responder.handle_response(ControlResponse::success(&control_request.request_id, &acknowledgment).response);
                        }
                    }
                    to_server.send(message.message.decode().unwrap()).unwrap();
                }
                Some(value) = from_server.recv() => match (value.get("method"), value.get("id")) {
                    (None, Some(id)) => {
                        let request_id = pending.remove(&id.to_string()).unwrap();
                        let reply = json!({"mcp_response": value});
                        responder.handle_response(ControlResponse::success(&request_id, &reply).response);
                    }
                    _ => {
                        registry.handle_host_message("play", &RawJson::from_value(&value).unwrap()).unwrap();
                    }
                },
                else => return,
            }
        }
    });
    servers.registry.wait_ready(TEST_TIMEOUT).await;
    servers
}

#[tokio::test]
async fn a_hosted_server_can_send_requests_and_notifications() {
    let servers = start_hosted(TestMcpServer::default()).await;
    assert_eq!(servers.status_and_error("play"), ("connected".into(), String::new()));
    assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "hey"})).await, "echo:hey");
    let roots = servers.call_text("mcp__play__roots", json!({})).await;
    assert!(roots.contains(&format!("file://{}", servers.dir().display())), "{roots}");
    servers.call_text("mcp__play__grow", json!({})).await;
    servers.wait_until(|servers| servers.tool_names().contains(&"mcp__play__grown".to_owned())).await;
    let invalid = RawJson::from_value(&json!({"hello": true})).unwrap();
    assert!(servers.registry.handle_host_message("play", &invalid).unwrap_err().contains("not valid"));
    assert_eq!(
        servers.registry.handle_host_message("other", &invalid).unwrap_err(),
        "Server not found: other"
    );
    servers.registry.close().await;
}
