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

use super::desk::{Board, Desk, UnderWay};
use super::fault::Fault;
use super::surroundings::Surroundings;
use super::transport::{Fate, Letterbox, Wire};
use crate::tasks::Leash;

/// How long taking leave of a server may take, and telling it that a call is cancelled.
const FAREWELL: Duration = Duration::from_secs(5);

/// A live connection.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Desk>>>,
    leash: Option<Leash>,
    pub(super) board: Arc<Board>,
    pub(super) fate: Fate,
    /// What the server says about itself.
    pub(super) info: Arc<ServerPeerInfo>,
}

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// In all.
    pub(super) total: Duration,
    /// Without a sign of life.
    pub(super) silence: Option<Duration>,
}

impl Patience {
    /// So long in all.
    pub(super) fn of(total: Duration) -> Self {
        Self { total, silence: None }
    }
}

/// Whose request it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'a> {
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
        surroundings: &Surroundings,
        letterbox: &Letterbox,
    ) -> Result<Self, Fault> {
        let limit = surroundings.limits.connect;
        let deadline = Instant::now() + limit;
        let fate = Fate::default();
        let opened =
            timeout_at(deadline, Wire::open(name, config, surroundings, letterbox, fate.clone())).await;
        let (wire, leash) = opened.map_err(|_| Fault::Late(limit))??;
        let board = Arc::<Board>::default();
        let desk = Desk {
            server: Arc::clone(name),
            roots: surroundings.roots.clone(),
            elicit: surroundings.elicit.clone(),
            tell: surroundings.tell.clone(),
            board: Arc::clone(&board),
            fate: fate.clone(),
        };
        let served = serve_client_with_lifecycle(desk, wire, ClientLifecycleMode::Initialize);
        let fault = match timeout_at(deadline, served).await {
            Ok(Ok(running)) => {
                let (peer, info) = (running.peer().clone(), running.peer().peer_info());
                let info = info.ok_or_else(|| Fault::Nonsense("it says nothing about itself.".into()))?;
                let running = Mutex::new(Some(running));
                return Ok(Self { peer, running, leash, board, fate, info });
            }
            Ok(Err(error)) => not_initialized(&error, &fate),
            Err(_) => Fault::Late(limit),
        };
        if let Some(leash) = leash {
            leash.end().await;
        }
        Err(fault)
    }

    /// Asks something, and waits for the answer within the limits. Dropping the future cancels the request.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        patience: Patience,
        caller: Caller<'_>,
    ) -> Result<ServerResult, Fault> {
        let total = Instant::now() + patience.total;
        let options = PeerRequestOptions::no_options().with_meta(meta(caller.tool_use_id));
        let sent = self.peer.send_request_with_option(request, options);
        let sent = timeout_at(total, sent).await.map_err(|_| Fault::Late(patience.total))?;
        let mut flight = Flight(Some(sent.map_err(|error| self.fault(&error))?));
        let Some(handle) = &mut flight.0 else { return Err(Fault::Cancelled) };
        let (pulse, mut beats) = watch::channel(());
        let (tool, tool_use_id) = (caller.tool.into(), caller.tool_use_id.into());
        let call = UnderWay { tool, tool_use_id, since: Instant::now(), pulse };
        let _watch = self.board.watch(handle.progress_token.clone(), call);
        let mut questions = self.board.questions.subscribe();
        let mut sign_of_life = Instant::now();
        loop {
            // While a person is being asked, the server may be silent.
            let asks = *questions.borrow_and_update() > 0;
            let silence = patience.silence.filter(|_| !asks);
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    flight.0 = None;
                    return match answer {
                        Ok(answer) => answer.map_err(|error| self.fault(&error)),
                        Err(_) => Err(self.fate.reason()),
                    };
                }
                () = self.fate.lost() => {
                    flight.0 = None;
                    return Err(self.fate.reason());
                }
                () = caller.cancel.cancelled() => return Err(Fault::Cancelled),
                () = sleep_until(total) => return Err(Fault::Late(patience.total)),
                () = silent(sign_of_life, silence) => return Err(Fault::Late(silence.unwrap_or_default())),
                _ = beats.changed() => sign_of_life = Instant::now(),
                _ = questions.changed() => sign_of_life = Instant::now(),
            }
        }
    }

    /// Takes leave of the server, and ends its program with all that it has started.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            let _ = timeout(FAREWELL, running.cancel()).await;
        }
        if let Some(leash) = &self.leash {
            leash.end().await;
        }
    }

    fn fault(&self, error: &ServiceError) -> Fault {
        match error {
            ServiceError::McpError(error) => Fault::Refused(error.message.to_string()),
            ServiceError::TransportSend(error) => told(error.error.as_ref())
                .unwrap_or_else(|| Fault::Gone(format!("the request could not be sent: {}.", error.error))),
            ServiceError::TransportClosed => self.fate.reason(),
            ServiceError::Cancelled { .. } => Fault::Cancelled,
            other => Fault::Nonsense(format!("{other}.")),
        }
    }
}

/// Never ends if there is no limit.
async fn silent(since: Instant, limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

/// What every request carries: servers may tell calls apart by it.
fn meta(tool_use_id: &str) -> RequestMetaObject {
    let fields = (!tool_use_id.is_empty()).then(|| ("claudecode/toolUseId".to_owned(), tool_use_id.into()));
    RequestMetaObject(MetaObject::from(fields.into_iter().collect::<JsonObject>()))
}

/// A request under way. Dropped, the server is told that nobody waits for the answer.
struct Flight(Option<RequestHandle<RoleClient>>);

impl Drop for Flight {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            let cancel = handle.cancel(Some("nobody waits for the answer any more".into()));
            runtime.spawn(async move { timeout(FAREWELL, cancel).await.map(drop) });
        }
    }
}

/// Our own fault, if it is one.
fn told(error: &(dyn std::error::Error + 'static)) -> Option<Fault> {
    error.downcast_ref::<Fault>().cloned()
}

/// Why the handshake failed, in our words where we know more than rmcp.
fn not_initialized(error: &ClientInitializeError, fate: &Fate) -> Fault {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            Fault::Refused(format!("it refused to begin: {}", error.message))
        }
        ClientInitializeError::TransportError { error, .. } => told(error.error.as_ref())
            .or_else(|| fate.fault())
            .unwrap_or_else(|| Fault::Gone(format!("{}.", error.error))),
        ClientInitializeError::ConnectionClosed(_) => fate.reason(),
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            Fault::Nonsense("it answered a question that was not asked.".into())
        }
        _ => fate.fault().unwrap_or_else(|| Fault::Nonsense("this is no answer to `initialize`.".into())),
    }
}
