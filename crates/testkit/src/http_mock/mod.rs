//! A model API on loopback that plays a script, records the requests and injects faults.
//!
//! It serves the Messages API at `/v1/messages` (with and without streaming, `count_tokens`) and Chat Completions at
//! `/v1/chat/completions`, both from the same script. It listens on 127.0.0.1 only and stops when dropped.
//!
//! ```
//! # tokio_test();
//! # fn tokio_test() { tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use whimbrel_testkit::{MockApi, Reply};
//!
//! let api = MockApi::start([Reply::text("Hello.")]).await.unwrap();
//! assert!(api.url().starts_with("http://127.0.0.1:"));
//! assert!(api.requests().is_empty());
//! # }) }
//! ```
//!
//! Submodules: `plan` (pure: the `action`s for a request), `inject_fault` (pure: their changes by a fault), `request`
//! (HTTP parser), `connection` (serves one client).

mod action;
mod connection;
mod inject_fault;
mod plan;
pub(crate) mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::script::{ApiFormat, ModelRequest, Script};

/// Timeout of the waits of the mock.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

/// The mock server. It stops when dropped.
#[derive(Debug)]
pub struct MockApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    server_task: JoinHandle<()>,
}

/// One request received by the mock.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The number of requests before this one.
    pub number: usize,
    /// The connection it came on, counted from 0 in order of connecting.
    pub connection: usize,
    /// The time at which the whole request had arrived.
    pub received_at: Instant,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The headers, with lower-case names.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
}

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    requests: Mutex<Vec<RecordedRequest>>,
    progress: watch::Sender<Progress>,
    released_names: watch::Sender<BTreeSet<String>>,
    read_mode: ReadMode,
}

/// Whether connections are read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Read,
    Never,
}

/// Counters that a test can wait for.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    connections: usize,
    requests: usize,
    model_requests: usize,
    disconnects: usize,
}

impl MockApi {
    /// Starts the server on a free port.
    pub async fn start(script: impl Into<Script>) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).await.context("cannot bind a port on 127.0.0.1")?;
        Self::listen(listener, script.into(), ReadMode::Read)
    }

    /// Starts a server that accepts connections and never reads from them.
    pub async fn start_never_reading() -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // A small receive buffer, so that unread data blocks the sender.
        socket.set_recv_buffer_size(64 * 1024)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).context("cannot bind a port on 127.0.0.1")?;
        Self::listen(socket.listen(64)?, Script::from([]), ReadMode::Never)
    }

    fn listen(listener: TcpListener, script: Script, read_mode: ReadMode) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
            progress: watch::Sender::default(),
            released_names: watch::Sender::default(),
            read_mode,
        });
        let server_task = tokio::spawn(accept_connections(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server_task })
    }

    /// The base URL, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Environment variables that direct an engine here, for both API formats, with dummy keys.
    pub fn env(&self) -> BTreeMap<String, String> {
        let variables = [
            ("ANTHROPIC_BASE_URL", self.url()),
            ("ANTHROPIC_API_KEY", "sk-test-key".to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", self.url())),
            ("OPENAI_API_KEY", "sk-test-key".to_owned()),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock_requests().clone()
    }

    /// The requests for a model reply so far, that is, those that used the script.
    pub fn model_requests(&self) -> Vec<ModelRequest> {
        let requests = self.requests();
        let replies =
            requests.into_iter().filter_map(|request| Some((api_format_of(&request)?, request.body)));
        replies
            .enumerate()
            .map(|(number, (api_format, body))| ModelRequest { number, api_format, body })
            .collect()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.progress.borrow().connections
    }

    /// The number of clients that disconnected before their response was complete.
    pub fn disconnects(&self) -> usize {
        self.shared.progress.borrow().disconnects
    }

    /// Returns whether every reply of the script has been used.
    pub fn is_script_exhausted(&self) -> bool {
        self.shared.script.is_exhausted()
    }

    /// Releases replies that [hold](crate::Reply::hold_until) on this name, now and later.
    pub fn release(&self, name: impl Into<String>) {
        self.shared.released_names.send_modify(|names| {
            names.insert(name.into());
        });
    }

    /// Waits until this many model replies were requested.
    pub async fn wait_for_model_requests(&self, count: usize) -> anyhow::Result<()> {
        let reached = |progress: &Progress| progress.model_requests >= count;
        self.wait_until(reached).await.with_context(|| format!("the model did not receive {count} requests"))
    }

    /// Waits until this many clients disconnected before their response was complete.
    pub async fn wait_for_disconnects(&self, count: usize) -> anyhow::Result<()> {
        let reached = |progress: &Progress| progress.disconnects >= count;
        self.wait_until(reached).await.with_context(|| format!("{count} clients did not disconnect"))
    }

    async fn wait_until(&self, reached: impl Fn(&Progress) -> bool) -> anyhow::Result<()> {
        let mut progress = self.shared.progress.subscribe();
        let wait = progress.wait_for(|progress| reached(progress));
        tokio::time::timeout(WAIT_TIMEOUT, wait)
            .await
            .with_context(|| format!("timed out after {WAIT_TIMEOUT:?}"))??;
        Ok(())
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        self.server_task.abort();
    }
}

impl Shared {
    fn lock_requests(&self) -> std::sync::MutexGuard<'_, Vec<RecordedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections until the mock is dropped; dropping the `JoinSet` ends them.
async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        shared.progress.send_modify(|progress| progress.connections += 1);
        connections.spawn(connection::serve_connection(stream, number, Arc::clone(&shared)));
        number += 1;
        while connections.try_join_next().is_some() {}
    }
}

/// Returns the API format of a request for a model reply; `None` for other requests.
fn api_format_of(request: &RecordedRequest) -> Option<ApiFormat> {
    match request.path.as_str() {
        path if request.method != "POST" || path.is_empty() => None,
        path if path.ends_with("/messages") => Some(ApiFormat::Messages),
        path if path.ends_with("/chat/completions") => Some(ApiFormat::ChatCompletions),
        _ => None,
    }
}
