//! One client connection: reads requests in turn and runs the planned actions for each.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use super::action::Action;
use super::plan;
use super::request::{self, HttpRequest};
use super::{ReadMode, RecordedRequest, Shared, api_format_of};
use crate::script::ModelRequest;

/// Terminates a chunked body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Whether the connection accepts another request.
#[derive(PartialEq, Eq)]
enum ConnectionState {
    Open,
    Closed,
}

struct Connection {
    number: usize,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    shared: Arc<Shared>,
}

/// Serves a client until either side closes the connection.
pub(super) async fn serve_connection(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    // Small writes must arrive as they are made.
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    if shared.read_mode == ReadMode::Never {
        return std::future::pending().await;
    }
    let mut connection = Connection { number, reader: BufReader::new(reader), writer, shared };
    while let Ok(Some(request)) = request::read_request(&mut connection.reader).await {
        let actions = connection.record_and_plan(request);
        match connection.run_actions(actions).await {
            Ok(ConnectionState::Open) => {}
            Ok(ConnectionState::Closed) => return,
            Err(_) => {
                connection.shared.progress.send_modify(|progress| progress.disconnects += 1);
                return;
            }
        }
    }
}

impl Connection {
    /// Records a request and plans the actions for it.
    fn record_and_plan(&self, request: HttpRequest) -> Vec<Action> {
        let HttpRequest { method, path, query, headers, body } = request;
        let mut requests = self.shared.lock_requests();
        let request = RecordedRequest {
            number: requests.len(),
            connection: self.number,
            received_at: Instant::now(),
            method,
            path,
            query,
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let actions = match api_format_of(&request) {
            Some(api_format) => {
                let number = self.shared.progress.borrow().model_requests;
                let model_request = ModelRequest { number, api_format, body: request.body.clone() };
                plan::plan_reply(&model_request, &self.shared.script.select_reply(&model_request))
            }
            None => plan::plan_other(&request.method, &request.path, &body),
        };
        let is_reply = api_format_of(&request).is_some();
        requests.push(request);
        drop(requests);
        self.shared.progress.send_modify(|progress| {
            progress.requests += 1;
            progress.model_requests += usize::from(is_reply);
        });
        actions
    }

    /// Runs the actions. An error means that the client disconnected.
    async fn run_actions(&mut self, actions: Vec<Action>) -> io::Result<ConnectionState> {
        let last = actions.len().saturating_sub(1);
        for (index, action) in actions.into_iter().enumerate() {
            match action {
                Action::Head { status, headers } => {
                    self.writer.write_all(render_head(status, &headers).as_bytes()).await?;
                }
                Action::Send(bytes) if index == last => {
                    // One write for both, so that a client that stops at the last event does not miss the terminator.
                    self.writer.write_all(&[encode_chunk(&bytes), LAST_CHUNK.to_vec()].concat()).await?;
                    return Ok(ConnectionState::Open);
                }
                Action::Send(bytes) => self.writer.write_all(&encode_chunk(&bytes)).await?,
                Action::Wait(time) => self.wait_unless_disconnected(tokio::time::sleep(time)).await?,
                Action::Hold(name) => {
                    let mut released = self.shared.released_names.subscribe();
                    self.wait_unless_disconnected(async {
                        drop(released.wait_for(|names| names.contains(&name)).await);
                    })
                    .await?;
                }
                Action::Repeat { bytes, every } => loop {
                    self.writer.write_all(&encode_chunk(&bytes)).await?;
                    self.wait_unless_disconnected(tokio::time::sleep(every)).await?;
                },
                Action::Drip { bytes, every } => {
                    for byte in bytes {
                        self.wait_unless_disconnected(tokio::time::sleep(every)).await?;
                        self.writer.write_all(&encode_chunk(&[byte])).await?;
                    }
                }
                Action::Stall => self.wait_unless_disconnected(std::future::pending()).await?,
                Action::HangUp => return Ok(ConnectionState::Closed),
            }
        }
        self.writer.write_all(LAST_CHUNK).await?;
        Ok(ConnectionState::Open)
    }

    /// Waits until `wait` completes or the client disconnects.
    async fn wait_unless_disconnected(&mut self, wait: impl Future<Output = ()>) -> io::Result<()> {
        tokio::select! {
            () = wait => Ok(()),
            error = wait_for_disconnect(&mut self.reader) => Err(error),
        }
    }
}

/// Completes when the client has disconnected.
async fn wait_for_disconnect(reader: &mut BufReader<OwnedReadHalf>) -> io::Error {
    match reader.fill_buf().await {
        Ok([]) => io::ErrorKind::ConnectionAborted.into(),
        // The next request has already arrived; it is read afterwards.
        Ok(_) => std::future::pending().await,
        Err(error) => error,
    }
}

/// Encodes one chunk of a body; nothing for empty input, because an empty chunk ends the body.
fn encode_chunk(bytes: &[u8]) -> Vec<u8> {
    match bytes {
        [] => Vec::new(),
        bytes => [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
    }
}

fn render_head(status: u16, headers: &[(String, String)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n{headers}\r\n")
}
