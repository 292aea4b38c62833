//! HTTP test server on loopback: plays a list of responses and records its requests.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The server; it stops with the test's runtime.
pub(crate) struct TestServer {
    /// Base URL.
    pub(crate) url: String,
    state: Arc<Mutex<ServerState>>,
}

#[derive(Default)]
struct ServerState {
    responses: VecDeque<Vec<ResponseAction>>,
    connections: usize,
    requests: Vec<RecordedRequest>,
}

/// A received request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedRequest {
    /// The request line.
    pub(crate) request_line: String,
    /// Headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An action of the server within a response.
#[derive(Debug, Clone)]
pub(crate) enum ResponseAction {
    /// Writes the bytes.
    Write(Vec<u8>),
    /// Writes the bytes repeatedly until the client disconnects.
    Repeat(Vec<u8>),
    /// Keeps the connection open without writing.
    Hang,
    /// Closes the connection.
    Close,
}

impl TestServer {
    /// Starts a server that plays these responses in order. Without responses it accepts connections and never reads.
    pub(crate) async fn start(responses: impl IntoIterator<Item = Vec<ResponseAction>>) -> Self {
        let responses: VecDeque<_> = responses.into_iter().collect();
        let never_reads = responses.is_empty();
        let state = Arc::new(Mutex::new(ServerState { responses, ..ServerState::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = state.clone();
        tokio::spawn(async move {
            let mut streams = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                if never_reads {
                    streams.push(stream);
                } else {
                    tokio::spawn(serve(stream, shared.clone()));
                }
            }
        });
        Self { url, state }
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.state.lock().unwrap().requests.clone()
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<ServerState>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read_request(&mut stream).await?;
        let actions = {
            let mut state = state.lock().unwrap();
            state.requests.push(request);
            state.responses.pop_front()?
        };
        for action in actions {
            match action {
                ResponseAction::Write(bytes) => stream.write_all(&bytes).await.ok()?,
                ResponseAction::Repeat(bytes) => loop {
                    stream.write_all(&bytes).await.ok()?;
                },
                ResponseAction::Hang => std::future::pending().await,
                ResponseAction::Close => return None,
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<RecordedRequest> {
    let mut request = RecordedRequest::default();
    stream.read_line(&mut request.request_line).await.ok().filter(|size| *size > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|size| *size > 0)?;
        let Some((name, value)) = line.split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    request.body = vec![0; request.header("content-length").map_or(0, |size| size.parse().unwrap())];
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}

/// A response with head and complete body.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<ResponseAction> {
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    vec![ResponseAction::Write([head.as_bytes(), body.as_bytes()].concat())]
}

/// Head of an event stream with a chunked body.
pub(crate) fn stream_head() -> ResponseAction {
    ResponseAction::Write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
    )
}

/// One chunk of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> ResponseAction {
    ResponseAction::Write([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// End of a chunked body.
pub(crate) fn last_chunk() -> ResponseAction {
    ResponseAction::Write(b"0\r\n\r\n".to_vec())
}
