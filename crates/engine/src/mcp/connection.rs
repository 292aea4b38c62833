//! One connection to a server, from the handshake to the end: requests, each with its limits, and no request that
//! waits for a server that is gone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonObject, MetaObject, RequestMetaObject, ServerPeerInfo, ServerResult};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, PeerRequestOptions, RequestHandle, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::options::McpServerConfig;

use super::client_handler::{CallTracker, McpClientHandler, InFlightCall};
use super::error::McpError;
use super::deps::ServerDeps;
use super::transport::{ConnectionState, HostedInbox, McpTransport};
use crate::tasks::KillHandle;

/// How long taking leave of a server may take, and telling it that a call is cancelled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A live connection.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, McpClientHandler>>>,
    kill_handle: Option<KillHandle>,
    pub(super) tracker: Arc<CallTracker>,
    pub(super) state: ConnectionState,
    /// What the server says about itself.
    pub(super) info: Arc<ServerPeerInfo>,
}

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestTimeouts {
    /// In all.
    pub(super) total: Duration,
    /// Without a sign of life.
    pub(super) idle: Option<Duration>,
}

impl RequestTimeouts {
    /// So long in all.
    pub(super) fn from_total(total: Duration) -> Self {
        Self { total, idle: None }
    }
}

/// Whose request it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallContext<'a> {
    /// The tool that is called, or what else is wanted.
    pub(super) tool: &'a str,
    /// The call.
    pub(super) tool_use_id: &'a str,
    /// Fires when nobody wants the answer any more.
    pub(super) cancel: &'a CancellationToken,
}

impl Connection {
    /// Connects and shakes hands, within the limit for that. A program that was started in vain is gone afterwards.
    pub(super) async fn open(
        name: &Arc<str>,
        config: &McpServerConfig,
        surroundings: &ServerDeps,
        letterbox: &HostedInbox,
    ) -> Result<Self, McpError> {
        let limit = surroundings.limits.connect_timeout;
        let deadline = Instant::now() + limit;
        let fate = ConnectionState::default();
        let opened =
            timeout_at(deadline, McpTransport::open(name, config, surroundings, letterbox, fate.clone())).await;
        let (wire, leash) = opened.map_err(|_| McpError::Timeout(limit))??;
        let board = Arc::<CallTracker>::default();
        let desk = McpClientHandler {
            server: Arc::clone(name),
            roots: surroundings.roots.clone(),
            elicit: surroundings.elicit.clone(),
            notify: surroundings.notify.clone(),
            tracker: Arc::clone(&board),
            state: fate.clone(),
        };
        let served = serve_client_with_lifecycle(desk, wire, ClientLifecycleMode::Initialize);
        let fault = match timeout_at(deadline, served).await {
            Ok(Ok(running)) => {
                let (peer, info) = (running.peer().clone(), running.peer().peer_info());
                let info = info.ok_or_else(|| McpError::InvalidResponse("it says nothing about itself.".into()))?;
                let running = Mutex::new(Some(running));
                return Ok(Self { peer, running, kill_handle: leash, tracker: board, state: fate, info });
            }
            Ok(Err(error)) => handshake_error(&error, &fate),
            Err(_) => McpError::Timeout(limit),
        };
        if let Some(leash) = leash {
            leash.kill().await;
        }
        Err(fault)
    }

    /// Asks something, and waits for the answer within the limits. Dropping the future cancels the request.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        patience: RequestTimeouts,
        caller: CallContext<'_>,
    ) -> Result<ServerResult, McpError> {
        let total = Instant::now() + patience.total;
        let options = PeerRequestOptions::no_options().with_meta(request_meta(caller.tool_use_id));
        let sent = self.peer.send_request_with_option(request, options);
        let sent = timeout_at(total, sent).await.map_err(|_| McpError::Timeout(patience.total))?;
        let mut flight = CancelOnDrop(Some(sent.map_err(|error| self.map_error(&error))?));
        let Some(handle) = &mut flight.0 else { return Err(McpError::Cancelled) };
        let (pulse, mut beats) = watch::channel(());
        let (tool, tool_use_id) = (caller.tool.into(), caller.tool_use_id.into());
        let call = InFlightCall { tool, tool_use_id, started: Instant::now(), progress: pulse };
        let _watch = self.tracker.track(handle.progress_token.clone(), call);
        let mut questions = self.tracker.open_elicitations.subscribe();
        let mut sign_of_life = Instant::now();
        loop {
            // While a person is being asked, the server may be silent.
            let asks = *questions.borrow_and_update() > 0;
            let silence = patience.idle.filter(|_| !asks);
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    flight.0 = None;
                    return match answer {
                        Ok(answer) => answer.map_err(|error| self.map_error(&error)),
                        Err(_) => Err(self.state.loss_error()),
                    };
                }
                () = self.state.wait_lost() => {
                    flight.0 = None;
                    return Err(self.state.loss_error());
                }
                () = caller.cancel.cancelled() => return Err(McpError::Cancelled),
                () = sleep_until(total) => return Err(McpError::Timeout(patience.total)),
                () = wait_idle(sign_of_life, silence) => return Err(McpError::Timeout(silence.unwrap_or_default())),
                _ = beats.changed() => sign_of_life = Instant::now(),
                _ = questions.changed() => sign_of_life = Instant::now(),
            }
        }
    }

    /// Takes leave of the server, and ends its program with all that it has started.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            let _ = timeout(CLOSE_TIMEOUT, running.cancel()).await;
        }
        if let Some(leash) = &self.kill_handle {
            leash.kill().await;
        }
    }

    fn map_error(&self, error: &ServiceError) -> McpError {
        match error {
            ServiceError::McpError(error) => McpError::ErrorResponse(error.message.to_string()),
            ServiceError::TransportSend(error) => as_mcp_error(error.error.as_ref())
                .unwrap_or_else(|| McpError::Disconnected(format!("the request could not be sent: {}.", error.error))),
            ServiceError::TransportClosed => self.state.loss_error(),
            ServiceError::Cancelled { .. } => McpError::Cancelled,
            other => McpError::InvalidResponse(format!("{other}.")),
        }
    }
}

/// Never ends if there is no limit.
async fn wait_idle(since: Instant, limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

/// What every request carries: servers may tell calls apart by it.
fn request_meta(tool_use_id: &str) -> RequestMetaObject {
    let fields = (!tool_use_id.is_empty()).then(|| ("claudecode/toolUseId".to_owned(), tool_use_id.into()));
    RequestMetaObject(MetaObject::from(fields.into_iter().collect::<JsonObject>()))
}

/// A request under way. Dropped, the server is told that nobody waits for the answer.
struct CancelOnDrop(Option<RequestHandle<RoleClient>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            let cancel = handle.cancel(Some("nobody waits for the answer any more".into()));
            runtime.spawn(async move { timeout(CLOSE_TIMEOUT, cancel).await.map(drop) });
        }
    }
}

/// Our own fault, if it is one.
fn as_mcp_error(error: &(dyn std::error::Error + 'static)) -> Option<McpError> {
    error.downcast_ref::<McpError>().cloned()
}

/// Why the handshake failed, in our words where we know more than rmcp.
fn handshake_error(error: &ClientInitializeError, fate: &ConnectionState) -> McpError {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            McpError::ErrorResponse(format!("it refused to begin: {}", error.message))
        }
        ClientInitializeError::TransportError { error, .. } => as_mcp_error(error.error.as_ref())
            .or_else(|| fate.last_error())
            .unwrap_or_else(|| McpError::Disconnected(format!("{}.", error.error))),
        ClientInitializeError::ConnectionClosed(_) => fate.loss_error(),
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            McpError::InvalidResponse("it answered a question that was not asked.".into())
        }
        _ => fate.last_error().unwrap_or_else(|| McpError::InvalidResponse("this is no answer to `initialize`.".into())),
    }
}
