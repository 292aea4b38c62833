//! HTTP server on loopback that answers as a test says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::task::AbortOnDropHandle;

#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl ReceivedRequest {
    /// JSON-RPC method of the body.
    pub(super) fn rpc_method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

pub(super) struct HttpReply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

enum Body {
    Whole(String),
    /// Events as long as the channel is open; then the connection is closed.
    Stream(UnboundedReceiver<String>),
    /// Never answers.
    Silence,
}

impl HttpReply {
    pub(super) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(String::new()) }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self { body: Body::Whole(value.to_string()), ..Self::status(200) }
            .with_header("content-type", "application/json")
    }

    pub(super) fn events(events: UnboundedReceiver<String>) -> Self {
        Self { body: Body::Stream(events), ..Self::status(200) }
            .with_header("content-type", "text/event-stream")
    }

    pub(super) fn silence() -> Self {
        Self { body: Body::Silence, ..Self::status(200) }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(super) fn with_body(self, text: &str) -> Self {
        Self { body: Body::Whole(text.into()), ..self }
    }
}

/// Channel that holds these events, with its sender.
pub(super) fn event_channel(events: &[String]) -> (UnboundedSender<String>, UnboundedReceiver<String>) {
    let (sender, receiver) = unbounded_channel();
    events.iter().for_each(|event| sender.send(event.clone()).unwrap());
    (sender, receiver)
}

/// Formats a message as an event.
pub(super) fn format_event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// HTTP server; dropping it closes all connections.
pub(super) struct HttpTestServer {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    _task: AbortOnDropHandle<()>,
}

impl HttpTestServer {
    pub(super) async fn new(answer: impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let recorded = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (recorded, answer) = (Arc::clone(&recorded), Arc::clone(&answer));
                connections.spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = read_request(&mut stream).await else { return };
                    recorded.lock().unwrap().push(request.clone());
                    let _ = write_reply(stream.into_inner(), answer(&request)).await;
                });
            }
        });
        Self { address, requests, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// JSON-RPC methods received, in order.
    pub(super) fn rpc_methods(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| request.rpc_method().to_owned())
            .filter(|method| !method.is_empty())
            .collect()
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest { method, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

async fn write_reply(mut stream: TcpStream, reply: HttpReply) -> std::io::Result<()> {
    if matches!(reply.body, Body::Silence) {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await?;
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {} Word\r\nconnection: close\r\n", reply.status);
    for (name, value) in reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    match reply.body {
        Body::Whole(text) => {
            head += &format!("content-length: {}\r\n\r\n{text}", text.len());
            stream.write_all(head.as_bytes()).await
        }
        Body::Stream(mut events) => {
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            while let Some(event) = events.recv().await {
                stream.write_all(event.as_bytes()).await?;
            }
            Ok(())
        }
        Body::Silence => Ok(()),
    }
}

/// Answers a JSON-RPC message as a small server does; `None` for notifications.
pub(super) fn answer_request(request: &Value) -> Option<Value> {
    let result = match request["method"].as_str()? {
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": format!("did {}", request["params"]["arguments"])}]})
        }
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}
