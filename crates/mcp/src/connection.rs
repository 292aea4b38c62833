//! One connection to a server, from handshake to close. Every request has timeouts, and fails as soon as the server is
//! gone.

mod request_timeout;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use whimbrel_process::KillHandle;
use whimbrel_wire::options::McpServerConfig;

use super::client_handler::{CallTracker, McpClientHandler};
use super::deps::ServerDeps;
use super::error::McpError;
use super::transport::{ConnectionState, HostedInbox, McpTransport};

/// Timeout for the closing handshake and for sending a cancellation.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Open connection.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, McpClientHandler>>>,
    kill_handle: Option<KillHandle>,
    pub(super) tracker: Arc<CallTracker>,
    pub(super) state: ConnectionState,
    /// Server info from the handshake.
    pub(super) info: Arc<ServerPeerInfo>,
}

/// Tool call that a request belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestOrigin<'a> {
    /// Full tool name, or what else is requested; for progress and logs.
    pub(super) tool: &'a str,
    pub(super) tool_use_id: &'a str,
    /// Fires when the caller no longer needs the response.
    pub(super) cancel: &'a CancellationToken,
    /// More about the caller, for a server of a host that reads it.
    pub(super) details: Option<&'a CallDetails>,
}

/// Which agent makes a call, and where.
#[derive(Debug)]
pub(super) struct CallDetails {
    pub(super) session_id: Arc<str>,
    /// `None` for the main agent.
    pub(super) agent_id: Option<String>,
    pub(super) cwd: PathBuf,
}

impl Connection {
    /// Connects and performs the handshake within the connect timeout. On failure the started program is ended.
    pub(super) async fn open(
        name: &Arc<str>,
        config: &McpServerConfig,
        deps: &ServerDeps,
        inbox: &HostedInbox,
    ) -> Result<Self, McpError> {
        let limit = deps.limits.connect_timeout;
        let deadline = Instant::now() + limit;
        let state = ConnectionState::default();
        let opened = timeout_at(deadline, McpTransport::open(name, config, deps, inbox, state.clone())).await;
        let (transport, kill_handle) = opened.map_err(|_| McpError::Timeout(limit))??;
        let tracker = Arc::<CallTracker>::default();
        let handler = McpClientHandler {
            server: Arc::clone(name),
            roots: deps.roots.clone(),
            elicit: deps.elicit.clone(),
            notify: deps.notify.clone(),
            tracker: Arc::clone(&tracker),
            state: state.clone(),
        };
        let handshake = serve_client_with_lifecycle(handler, transport, ClientLifecycleMode::Initialize);
        let error = match timeout_at(deadline, handshake).await {
            Ok(Ok(running)) => {
                let (peer, info) = (running.peer().clone(), running.peer().peer_info());
                let info = info.ok_or_else(|| {
                    McpError::InvalidResponse("the `initialize` response has no server info.".into())
                })?;
                let running = Mutex::new(Some(running));
                return Ok(Self { peer, running, kill_handle, tracker, state, info });
            }
            Ok(Err(error)) => handshake_error(&error, &state),
            Err(_) => McpError::Timeout(limit),
        };
        if let Some(kill_handle) = kill_handle {
            kill_handle.kill().await;
        }
        Err(error)
    }

    /// Closes the connection and ends the server's process tree.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            let _ = timeout(CLOSE_TIMEOUT, running.cancel()).await;
        }
        if let Some(kill_handle) = &self.kill_handle {
            kill_handle.kill().await;
        }
    }

    fn map_error(&self, error: &ServiceError) -> McpError {
        match error {
            ServiceError::McpError(error) => McpError::ErrorResponse(error.message.to_string()),
            ServiceError::TransportSend(error) => as_mcp_error(error.error.as_ref()).unwrap_or_else(|| {
                McpError::Disconnected(format!("the request could not be sent: {}.", error.error))
            }),
            ServiceError::TransportClosed => self.state.loss_error(),
            ServiceError::Cancelled { .. } => McpError::Cancelled,
            other => McpError::InvalidResponse(format!("{other}.")),
        }
    }
}

/// Our own error inside rmcp's transport error, if there is one.
fn as_mcp_error(error: &(dyn std::error::Error + 'static)) -> Option<McpError> {
    error.downcast_ref::<McpError>().cloned()
}

/// Error of a failed handshake; prefers the transport's own error to rmcp's.
fn handshake_error(error: &ClientInitializeError, state: &ConnectionState) -> McpError {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            McpError::ErrorResponse(format!("it rejected `initialize`: {}", error.message))
        }
        ClientInitializeError::TransportError { error, .. } => as_mcp_error(error.error.as_ref())
            .or_else(|| state.last_error())
            .unwrap_or_else(|| McpError::Disconnected(format!("{}.", error.error))),
        ClientInitializeError::ConnectionClosed(_) => state.loss_error(),
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            McpError::InvalidResponse("the response id matches no request.".into())
        }
        _ => state
            .last_error()
            .unwrap_or_else(|| McpError::InvalidResponse("not a response to `initialize`.".into())),
    }
}
