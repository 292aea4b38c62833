//! One server: starts it, fetches its features, monitors the connection and reconnects with backoff. A task owns all of
//! that; other code holds a [`ServerHandle`] and watches its state.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel_wire::RawJson;
use whimbrel_wire::options::McpServerConfig;

use super::connection::Connection;
use super::deps::ServerDeps;
use super::error::McpError;
use super::listing::{ServerFeatures, fetch_features};
use super::transport::HostedInbox;

/// A connection that lasted this long resets the retry count.
const STABLE_UPTIME: Duration = Duration::from_secs(60);
/// Delay after `list_changed` before fetching again, so that a server cannot make us poll it.
const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(200);

/// Handle of a server. Dropping it ends the server.
pub(super) struct ServerHandle {
    pub(super) name: Arc<str>,
    pub(super) config: McpServerConfig,
    state: watch::Receiver<ServerState>,
    reconnects: mpsc::Sender<ReconnectRequest>,
    inbox: HostedInbox,
    connect_timeout: Duration,
    shutdown: CancellationToken,
    _shutdown_guard: DropGuard,
}

#[derive(Clone)]
pub(super) struct ServerState {
    pub(super) phase: ServerPhase,
    /// Features fetched last. They are kept while the server reconnects.
    pub(super) features: Arc<ServerFeatures>,
}

/// Connection phase of a server.
#[derive(Clone)]
pub(super) enum ServerPhase {
    /// First connection attempt, or a requested reconnect.
    Starting,
    Connected(Arc<Connection>),
    /// Lost; reconnecting with backoff.
    Reconnecting(McpError),
    /// Not usable. Retries may still follow if it never was connected.
    Failed(McpError),
}

/// Requests a reconnect; the channel receives the result.
type ReconnectRequest = oneshot::Sender<Result<(), McpError>>;

impl ServerHandle {
    /// Starts a server without waiting for it.
    pub(super) fn start(name: &str, config: McpServerConfig, deps: ServerDeps) -> Self {
        let starting = ServerState { phase: ServerPhase::Starting, features: Arc::default() };
        let (state_sender, state) = watch::channel(starting);
        let (reconnects, incoming) = mpsc::channel(4);
        let (shutdown, name) = (CancellationToken::new(), Arc::<str>::from(name));
        let inbox = HostedInbox::default();
        let connect_timeout = deps.limits.connect_timeout;
        let task = ServerTask {
            name: Arc::clone(&name),
            config: config.clone(),
            deps,
            inbox: inbox.clone(),
            state: state_sender,
            reconnects: incoming,
            shutdown: shutdown.clone(),
        };
        tokio::spawn(task.run());
        let _shutdown_guard = shutdown.clone().drop_guard();
        Self { name, config, state, reconnects, inbox, connect_timeout, shutdown, _shutdown_guard }
    }

    pub(super) fn state(&self) -> ServerState {
        self.state.borrow().clone()
    }

    /// Receives every state change.
    pub(super) fn changes(&self) -> watch::Receiver<ServerState> {
        self.state.clone()
    }

    /// Waits for the end of the first connection attempt.
    pub(super) async fn wait_settled(&self) -> ServerState {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state.phase, ServerPhase::Starting)).await;
        settled.map_or_else(|_| self.state(), |state| state.clone())
    }

    /// Returns the connection. Waits while it is being made or restored, up to the connect timeout.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match &state.phase {
            // The connection may be lost before the server task notices.
            ServerPhase::Connected(connection) => !connection.state.is_lost(),
            ServerPhase::Failed(_) => true,
            ServerPhase::Starting | ServerPhase::Reconnecting(_) => false,
        });
        let _ = timeout(self.connect_timeout, settled).await;
        match self.state().phase {
            ServerPhase::Connected(connection) => Ok(connection),
            ServerPhase::Reconnecting(error) | ServerPhase::Failed(error) => Err(error),
            ServerPhase::Starting => Err(McpError::Timeout(self.connect_timeout)),
        }
    }

    pub(super) async fn reconnect(&self) -> Result<(), McpError> {
        let (request, result) = oneshot::channel();
        let stopped = || McpError::Disconnected("it has been stopped.".into());
        self.reconnects.send(request).await.map_err(|_| stopped())?;
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Delivers a message that the host forwards from its server; false if it could not be parsed or is not connected.
    pub(super) fn deliver(&self, message: &RawJson) -> bool {
        self.inbox.deliver(message)
    }

    /// Ends the server and waits for its exit.
    pub(super) async fn close(&self) {
        self.shutdown.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// Task that owns a server.
struct ServerTask {
    name: Arc<str>,
    config: McpServerConfig,
    deps: ServerDeps,
    inbox: HostedInbox,
    state: watch::Sender<ServerState>,
    reconnects: mpsc::Receiver<ReconnectRequest>,
    shutdown: CancellationToken,
}

/// End of a connection or of a backoff wait.
enum LoopEvent {
    Shutdown,
    Reconnect(ReconnectRequest),
    Lost(McpError),
    ConnectFailed(McpError),
    /// The backoff has elapsed.
    Retry,
}

impl ServerTask {
    async fn run(mut self) {
        let mut failures = 0;
        let mut request: Option<ReconnectRequest> = None;
        loop {
            let shutdown = self.shutdown.clone();
            let Some(connected) = shutdown.run_until_cancelled(self.connect()).await else { return };
            let event = match connected {
                Ok(connection) => {
                    reply(request.take(), Ok(()));
                    let connected_at = Instant::now();
                    let event = self.monitor(&connection).await;
                    connection.close().await;
                    failures = if connected_at.elapsed() > STABLE_UPTIME { 0 } else { failures };
                    event
                }
                Err(error) => {
                    reply(request.take(), Err(error.clone()));
                    LoopEvent::ConnectFailed(error)
                }
            };
            let event = match event {
                LoopEvent::Lost(error) | LoopEvent::ConnectFailed(error) => {
                    failures += 1;
                    self.wait_before_retry(error, failures).await
                }
                other => other,
            };
            match event {
                LoopEvent::Shutdown => return,
                LoopEvent::Retry | LoopEvent::Lost(_) | LoopEvent::ConnectFailed(_) => {}
                LoopEvent::Reconnect(new_request) => {
                    failures = 0;
                    request = Some(new_request);
                    self.set_phase(ServerPhase::Starting);
                }
            }
        }
    }

    /// Connects and fetches the features.
    async fn connect(&self) -> Result<Arc<Connection>, McpError> {
        let connection = Connection::open(&self.name, &self.config, &self.deps, &self.inbox).await?;
        match fetch_features(&connection, self.deps.limits.connect_timeout).await {
            Ok(features) => {
                let connection = Arc::new(connection);
                let phase = ServerPhase::Connected(Arc::clone(&connection));
                self.state.send_replace(ServerState { phase, features: Arc::new(features) });
                Ok(connection)
            }
            Err(error) => {
                connection.close().await;
                Err(error)
            }
        }
    }

    /// Monitors a connection until it is lost, replaced or shut down.
    async fn monitor(&mut self, connection: &Connection) -> LoopEvent {
        let limit = self.deps.limits.connect_timeout;
        let mut list_changes = connection.tracker.list_changes.subscribe();
        // Fetch again if a list changed during the first fetch.
        if *list_changes.borrow() > 0 {
            list_changes.mark_changed();
        }
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return LoopEvent::Shutdown,
                () = connection.state.wait_lost() => {
                    let error = connection.state.loss_error();
                    self.set_phase(self.phase_after(&error));
                    return LoopEvent::Lost(error);
                }
                Some(request) = self.reconnects.recv() => {
                    self.set_phase(ServerPhase::Starting);
                    return LoopEvent::Reconnect(request);
                }
                features = refetch_features(&mut list_changes, connection, limit) => {
                    // After a failure the known features stay, and the next notification is awaited.
                    if let Ok(features) = features {
                        self.state.send_modify(|state| state.features = Arc::new(features));
                    }
                }
            }
        }
    }

    /// Publishes the error and waits for the next retry.
    async fn wait_before_retry(&mut self, error: McpError, failures: u32) -> LoopEvent {
        let delay = error.retry_delay(failures, self.deps.limits.backoff);
        self.set_phase(match delay {
            Some(_) => self.phase_after(&error),
            None => ServerPhase::Failed(error),
        });
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => LoopEvent::Shutdown,
            Some(request) = self.reconnects.recv() => LoopEvent::Reconnect(request),
            () = sleep_or_forever(delay) => LoopEvent::Retry,
        }
    }

    /// Phase after an error: `Reconnecting` for a server that was connected and may come back, otherwise `Failed`, even
    /// while retries go on.
    fn phase_after(&self, error: &McpError) -> ServerPhase {
        match &self.state.borrow().phase {
            ServerPhase::Connected(_) | ServerPhase::Reconnecting(_) if error.is_transient() => {
                ServerPhase::Reconnecting(error.clone())
            }
            ServerPhase::Starting
            | ServerPhase::Connected(_)
            | ServerPhase::Reconnecting(_)
            | ServerPhase::Failed(_) => ServerPhase::Failed(error.clone()),
        }
    }

    fn set_phase(&self, phase: ServerPhase) {
        self.state.send_modify(|state| state.phase = phase);
    }
}

/// Waits for a `list_changed` notification and fetches the features again.
async fn refetch_features(
    list_changes: &mut watch::Receiver<u64>,
    connection: &Connection,
    limit: Duration,
) -> Result<ServerFeatures, McpError> {
    if list_changes.changed().await.is_err() {
        // The connection is gone; its loss ends the wait.
        std::future::pending::<()>().await;
    }
    sleep(LIST_CHANGED_DEBOUNCE).await;
    list_changes.borrow_and_update();
    fetch_features(connection, limit).await
}

async fn sleep_or_forever(delay: Option<Duration>) {
    match delay {
        Some(delay) => sleep(delay).await,
        None => std::future::pending().await,
    }
}

fn reply(request: Option<ReconnectRequest>, result: Result<(), McpError>) {
    if let Some(request) = request {
        // The requester may be gone.
        let _ = request.send(result);
    }
}
