//! Servers in the host's own process.

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

use super::player::Player;
use super::stage::{LONG, Stage, surroundings};
use crate::ask::Ask;
use crate::mcp::connection::{Caller, Connection, Patience};
use crate::mcp::tool::call_tool;
use crate::mcp::transport::Letterbox;
use crate::mcp::{Fault, Surroundings};
use crate::outbox::Outbox;

/// What an answering host does with a message: answers it, refuses it, or stays silent.
type Answer = Option<Result<Value, String>>;

/// A host: hears the engine's questions, and answers them.
struct Host {
    ask: Ask,
    /// The methods that were asked for, in order.
    heard: Arc<Mutex<Vec<String>>>,
    /// Questions that were taken back.
    withdrawn: mpsc::UnboundedReceiver<String>,
}

impl Host {
    fn new(answer: impl Fn(&McpMessage) -> Answer + Send + 'static) -> Self {
        let (frames, mut sent) = mpsc::channel(64);
        let ask = Ask::new(Outbox::new("session".into(), frames, CancellationToken::new()));
        let (heard, answers) = (Arc::new(Mutex::new(Vec::new())), ask.clone());
        let (note, withdrawn) = mpsc::unbounded_channel();
        let methods = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Some(frame) = sent.recv().await {
                match frame {
                    Frame::ControlRequest(asked) => {
                        let Request::McpMessage(message) = &asked.request else { panic!("{asked:?}") };
                        let value: Value = message.message.read().unwrap();
                        methods.lock().unwrap().push(value["method"].as_str().unwrap_or("answer").to_owned());
                        match answer(message) {
                            Some(Ok(reply)) => {
                                let reply = json!({"mcp_response": reply});
                                answers
                                    .answered(ControlResponse::success(&asked.request_id, &reply).response);
                            }
                            Some(Err(error)) => {
                                answers.answered(ControlResponse::error(&asked.request_id, error).response);
                            }
                            None => {}
                        }
                    }
                    Frame::ControlCancel(cancel) => note.send(cancel.request_id).unwrap(),
                    other => panic!("{other:?}"),
                }
            }
        });
        Self { ask, heard, withdrawn }
    }

    async fn stage(&self) -> Stage {
        let ask = self.ask.clone();
        let entries = json!({"calc": {"type": "sdk", "name": "calculator"}});
        Stage::with(entries, |surroundings| Surroundings { ask: Some(ask), ..surroundings }).await
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn reply(message: &McpMessage, result: &Value) -> Answer {
    let asked: Value = message.message.read().unwrap();
    Some(Ok(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})))
}

/// The way in which simple hosts answer.
fn calculator(message: &McpMessage) -> Answer {
    assert_eq!(message.server_name, "calc");
    let asked: Value = message.message.read().unwrap();
    match asked["method"].as_str().unwrap() {
        "initialize" => {
            assert_eq!(asked["params"]["protocolVersion"], "2025-11-25");
            reply(
                message,
                &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}),
            )
        }
        "tools/list" => {
            reply(message, &json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}))
        }
        "tools/call" => match asked["params"]["arguments"]["a"].as_i64() {
            Some(a) => {
                reply(message, &json!({"content": [{"type": "text", "text": format!("sum={}", a + 3)}]}))
            }
            None => None,
        },
        // Notifications are acknowledged without an id.
        _ => Some(Ok(json!({"jsonrpc": "2.0", "result": {}}))),
    }
}

#[tokio::test]
async fn messages_are_questions_to_the_host() {
    let host = Host::new(calculator);
    let stage = host.stage().await;
    assert_eq!(stage.state("calc"), ("connected".into(), String::new()));
    assert_eq!(stage.status("calc").source.as_deref(), Some("sdk"));
    assert_eq!(stage.says("mcp__calc__add", json!({"a": 2})).await, "sum=5");
    assert_eq!(host.heard(), ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    stage.roster.close().await;
}

#[tokio::test]
async fn a_cancelled_call_takes_its_question_back_and_tells_the_server() {
    let mut host = Host::new(calculator);
    let stage = host.stage().await;
    let tool = stage.tool("mcp__calc__add");
    let call = tool.run(json!({}), stage.call());
    let (ended, ()) = tokio::join!(call, async {
        while host.ask.pending() == 0 {
            tokio::task::yield_now().await;
        }
        stage.cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().reason(), "MCP server calc: the call was cancelled.");
    tokio::time::timeout(LONG, host.withdrawn.recv()).await.unwrap().unwrap();
    while host.heard().last().unwrap() != "notifications/cancelled" {
        tokio::task::yield_now().await;
    }
    stage.roster.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_may_go_on_as_long_as_there_is_progress() {
    let token = Arc::new(Mutex::new(Value::Null));
    let noted = Arc::clone(&token);
    let host = Host::new(move |message| {
        let asked: Value = message.message.read().unwrap();
        if asked["method"] != "tools/call" {
            return calculator(message);
        }
        *noted.lock().unwrap() = asked["params"]["_meta"]["progressToken"].clone();
        None
    });
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { ask: Some(host.ask.clone()), ..surroundings(folder.path()) };
    let (config, letterbox) = (McpServerConfig::Sdk(SdkServer::default()), Letterbox::default());
    let connection = Connection::open(&"calc".into(), &config, &surroundings, &letterbox).await.unwrap();
    let (silence, step) = (Duration::from_secs(1), Duration::from_millis(800));
    let patience = Patience { total: LONG, silence: Some(silence) };
    let (began, never) = (Instant::now(), CancellationToken::new());
    let caller = Caller { tool: "add", tool_use_id: "", cancel: &never };
    let call = call_tool(&connection, "add", Map::new(), patience, caller);
    let (ended, ()) = tokio::join!(call, async {
        for progress in 1..=5 {
            tokio::time::sleep(step).await;
            let params = json!({"progressToken": *token.lock().unwrap(), "progress": progress});
            let news = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            assert!(letterbox.put(&RawJson::of(&news).unwrap()));
        }
    });
    assert_eq!(ended.unwrap_err(), Fault::Late(silence));
    let (took, least) = (began.elapsed(), step * 5 + silence);
    assert!((least..least + step).contains(&took), "{took:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_host_that_knows_no_such_server_or_talks_nonsense_is_quoted() {
    let unknown = Host::new(|_| Some(Err("SDK MCP server not found: calc".into())));
    let stage = unknown.stage().await;
    let (state, error) = stage.state("calc");
    assert_eq!(state, "failed");
    assert!(error.contains("SDK MCP server not found: calc"), "{error}");
    stage.roster.close().await;
    let nonsense = Host::new(|message| {
        let asked: Value = message.message.read().unwrap();
        if asked["method"] == "tools/call" { Some(Ok(json!("what?"))) } else { calculator(message) }
    });
    let stage = nonsense.stage().await;
    let said = stage.says("mcp__calc__add", json!({"a": 1})).await;
    assert_eq!(said, "error: the answer cannot be read: it is no JSON-RPC message");
    stage.roster.close().await;
}

#[tokio::test]
async fn a_host_that_is_gone_fails_calls_at_once() {
    let host = Host::new(calculator);
    let stage = host.stage().await;
    let tool = stage.tool("mcp__calc__add");
    let call = tool.run(json!({}), stage.call());
    let (ended, ()) = tokio::join!(call, async {
        while host.ask.pending() == 0 {
            tokio::task::yield_now().await;
        }
        host.ask.close();
    });
    assert_eq!(ended.unwrap_err().reason(), "MCP server calc: the host that runs it has closed its input.");
    stage.becomes("calc", "failed").await;
    stage.roster.close().await;
}

#[tokio::test]
async fn without_a_host_there_is_no_such_server() {
    let stage = Stage::of(json!({"calc": {"type": "sdk", "name": "calc"}})).await;
    assert_eq!(stage.state("calc"), ("failed".into(), "no host is there that could run it.".into()));
    stage.roster.close().await;
}

/// The host's end of a server made with rmcp: messages come and go by channels.
struct Bridge {
    from_engine: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleServer>>,
    to_engine: mpsc::UnboundedSender<Value>,
}

impl Transport<RoleServer> for Bridge {
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

/// Plays a whole server in the host's process, with all that it says by itself.
async fn with_server(server: impl ServerHandler) -> Stage {
    let (frames, mut sent) = mpsc::channel(64);
    let ask = Ask::new(Outbox::new("session".into(), frames, CancellationToken::new()));
    let (to_server, from_engine) = mpsc::unbounded_channel();
    let (to_engine, mut from_server) = mpsc::unbounded_channel::<Value>();
    tokio::spawn(async move {
        let running = serve_server(server, Bridge { from_engine, to_engine }).await.unwrap();
        running.waiting().await.unwrap();
    });
    let entries = json!({"play": {"type": "sdk", "name": "play"}});
    let answers = ask.clone();
    let stage = Stage::beginning(&entries, |surroundings| Surroundings { ask: Some(ask), ..surroundings });
    let roster = stage.roster.clone();
    tokio::spawn(async move {
        let mut open = std::collections::HashMap::new();
        loop {
            tokio::select! {
                Some(frame) = sent.recv() => {
                    let Frame::ControlRequest(asked) = frame else { continue };
                    let Request::McpMessage(message) = &asked.request else { continue };
                    let value: Value = message.message.read().unwrap();
                    match (value.get("method"), value.get("id")) {
                        (Some(_), Some(id)) => {
                            open.insert(id.to_string(), asked.request_id.clone());
                        }
                        _ => {
                            let done = json!({"mcp_response": {"jsonrpc": "2.0", "id": 0, "result": {}}});
                            answers.answered(ControlResponse::success(&asked.request_id, &done).response);
                        }
                    }
                    to_server.send(message.message.read().unwrap()).unwrap();
                }
                Some(value) = from_server.recv() => match (value.get("method"), value.get("id")) {
                    (None, Some(id)) => {
                        let question = open.remove(&id.to_string()).unwrap();
                        let reply = json!({"mcp_response": value});
                        answers.answered(ControlResponse::success(&question, &reply).response);
                    }
                    _ => {
                        roster.hosted_message("play", &RawJson::of(&value).unwrap()).unwrap();
                    }
                },
                else => return,
            }
        }
    });
    stage.roster.ready(LONG).await;
    stage
}

#[tokio::test]
async fn such_a_server_can_ask_and_tell_as_any_other() {
    let stage = with_server(Player::default()).await;
    assert_eq!(stage.state("play"), ("connected".into(), String::new()));
    assert_eq!(stage.says("mcp__play__echo", json!({"word": "hey"})).await, "echo:hey");
    let roots = stage.says("mcp__play__roots", json!({})).await;
    assert!(roots.contains(&format!("file://{}", stage.folder().display())), "{roots}");
    stage.says("mcp__play__grow", json!({})).await;
    stage.comes_true(|stage| stage.names().contains(&"mcp__play__grown".to_owned())).await;
    let garbage = RawJson::of(&json!({"hello": true})).unwrap();
    assert!(stage.roster.hosted_message("play", &garbage).unwrap_err().contains("cannot be read"));
    assert_eq!(stage.roster.hosted_message("other", &garbage).unwrap_err(), "Server not found: other");
    stage.roster.close().await;
}
