//! A model API on loopback that follows a script, writes down what it was asked, and fails as it is told to.
//!
//! It speaks the Messages API at `/v1/messages` (with and without streaming, `count_tokens`) and Chat Completions at
//! `/v1/chat/completions`, both from the same script. It listens on 127.0.0.1 only and is gone when it is dropped.
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
//! Rooms: `plan` (pure: what is sent for a request), `heard` (reading a request), `connection` (one caller at a time).

mod connection;
pub(crate) mod request;
mod plan;

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

use crate::script::{ModelRequest, ApiFormat, Script};

/// How long the waits of the mock last at most.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The mock. Requests are answered as long as it lives.
#[derive(Debug)]
pub struct MockApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    server_task: JoinHandle<()>,
}

/// One request that reached the mock.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// How many requests came before it.
    pub number: usize,
    /// The connection it came on, from 0 in the order in which they were made.
    pub connection: usize,
    /// When it had arrived whole.
    pub received_at: Instant,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
    /// The headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null if it is none.
    pub body: Value,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    recorded: Mutex<Vec<RecordedRequest>>,
    progress: watch::Sender<Progress>,
    released_names: watch::Sender<BTreeSet<String>>,
    read_mode: ReadMode,
}

/// Whether anybody is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Read,
    Never,
}

/// Figures that somebody may wait for.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    connections: usize,
    requests: usize,
    model_requests: usize,
    disconnects: usize,
}

impl MockApi {
    /// Starts to listen on a free port.
    pub async fn start(script: impl Into<Script>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no port on 127.0.0.1 is free")?;
        Self::listen(listener, script.into(), ReadMode::Read)
    }

    /// Starts to listen on a free port, takes connections in and never reads from them.
    pub async fn start_never_reading() -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // What nobody reads waits at the sender, not here.
        socket.set_recv_buffer_size(64 * 1024)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).context("no port on 127.0.0.1 is free")?;
        Self::listen(socket.listen(64)?, Script::from([]), ReadMode::Never)
    }

    fn listen(listener: TcpListener, script: Script, ears: ReadMode) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            recorded: Mutex::default(),
            progress: watch::Sender::default(),
            released_names: watch::Sender::default(),
            read_mode: ears,
        });
        let serving = tokio::spawn(accept_connections(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server_task: serving })
    }

    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The variables that send an engine here, for either dialect, with keys that open nothing.
    pub fn env(&self) -> BTreeMap<String, String> {
        let set = [
            ("ANTHROPIC_BASE_URL", self.url()),
            ("ANTHROPIC_API_KEY", "sk-test-key".to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", self.url())),
            ("OPENAI_API_KEY", "sk-test-key".to_owned()),
        ];
        set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock_requests().clone()
    }

    /// The requests for a reply so far: those that took something off the script.
    pub fn model_requests(&self) -> Vec<ModelRequest> {
        let requests = self.requests();
        let replies = requests.into_iter().filter_map(|request| Some((api_format_of(&request)?, request.body)));
        replies.enumerate().map(|(number, (dialect, body))| ModelRequest { number, api_format: dialect, body }).collect()
    }

    /// How many connections have been made.
    pub fn connections(&self) -> usize {
        self.shared.progress.borrow().connections
    }

    /// How many callers went away before their answer was complete.
    pub fn disconnects(&self) -> usize {
        self.shared.progress.borrow().disconnects
    }

    /// Whether every reply of the script has been given.
    pub fn is_script_exhausted(&self) -> bool {
        self.shared.script.is_exhausted()
    }

    /// Lets replies go that [hold](crate::Reply::hold) on this name, now and later.
    pub fn release(&self, name: impl Into<String>) {
        self.shared.released_names.send_modify(|names| {
            names.insert(name.into());
        });
    }

    /// Waits until so many replies have been asked for.
    pub async fn wait_for_model_requests(&self, count: usize) -> anyhow::Result<()> {
        let reached = |progress: &Progress| progress.model_requests >= count;
        self.wait_until(reached).await.with_context(|| format!("the model was not asked {count} times"))
    }

    /// Waits until so many callers have gone away before their answer was complete.
    pub async fn wait_for_disconnects(&self, count: usize) -> anyhow::Result<()> {
        let reached = |progress: &Progress| progress.disconnects >= count;
        self.wait_until(reached).await.with_context(|| format!("{count} callers did not go away"))
    }

    async fn wait_until(&self, reached: impl Fn(&Progress) -> bool) -> anyhow::Result<()> {
        let mut progress = self.shared.progress.subscribe();
        let wait = progress.wait_for(|progress| reached(progress));
        tokio::time::timeout(WAIT_TIMEOUT, wait).await.with_context(|| format!("waited for {WAIT_TIMEOUT:?}"))??;
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
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes callers in until the mock is dropped; its connections go with it.
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

/// The dialect of a request for a reply; none if it is for something else.
fn api_format_of(request: &RecordedRequest) -> Option<ApiFormat> {
    match request.path.as_str() {
        path if request.method != "POST" || path.is_empty() => None,
        path if path.ends_with("/messages") => Some(ApiFormat::Messages),
        path if path.ends_with("/chat/completions") => Some(ApiFormat::ChatCompletions),
        _ => None,
    }
}
