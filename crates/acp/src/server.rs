//! The open sessions of the editor, and the requests that open, list and end them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ForkSessionRequest, ForkSessionResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, JsonRpcResponse};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel::store::{ForkOptions, SessionSummary};
use whimbrel::{Environment, Sessions};

use crate::capabilities::ClientFeatures;
use crate::config_options::ConfigState;
use crate::errors::{from_sdk_error, from_sessions_error, internal_error, invalid_params, session_not_found};
use crate::ids::new_uuid;
use crate::open_session::{SessionOpener, SessionPlace, Start};
use crate::outbox::{Backlog, Outbox};
use crate::session::{SessionEvent, SessionHandle, SessionParts, SessionTask};
use crate::session_list;
use crate::stored_conversation::StoredConversation;

/// Time in which all sessions have to end when the connection ends.
const END_TIMEOUT: Duration = Duration::from_millis(700);

/// The sessions of one connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Server(Arc<ServerState>);

struct ServerState {
    opener: SessionOpener,
    backlog: Backlog,
    features: Mutex<ClientFeatures>,
    sessions: Mutex<HashMap<String, OpenSession>>,
    /// Held while a stored session is opened, so that two requests do not open it twice.
    opening: tokio::sync::Mutex<()>,
}

/// A session that the editor has open.
#[derive(Debug, Clone)]
struct OpenSession {
    handle: SessionHandle,
    place: SessionPlace,
}

impl Server {
    pub(crate) fn new(environment: &Environment, backlog: Backlog) -> Self {
        Self(Arc::new(ServerState {
            opener: SessionOpener::new(environment),
            backlog,
            features: Mutex::default(),
            sessions: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        }))
    }

    /// Records what the editor can do; sessions that are open keep what they have.
    pub(crate) fn set_features(&self, features: ClientFeatures) {
        *self.0.features.lock().unwrap_or_else(PoisonError::into_inner) = features;
    }

    /// An open session.
    pub(crate) fn find(&self, session: &str) -> Result<SessionHandle, Error> {
        self.find_open(session).map(|open| open.handle).ok_or_else(|| session_not_found(session))
    }

    pub(crate) async fn new_session(
        &self,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) {
        let place = SessionPlace {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        };
        let task = self.open(place, &Start::New(new_uuid()), connection).await;
        start(responder, task, |task| {
            NewSessionResponse::new(task.outbox.session().clone())
                .modes(task.config.mode_state())
                .config_options(task.config.options())
        });
    }

    pub(crate) async fn load_session(
        &self,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) {
        let session = request.session_id.0.to_string();
        let place = SessionPlace {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        };
        let _opening = self.0.opening.lock().await;
        if let Err(error) = self.check_stored(&session, &place).await {
            return respond(responder, Err(error));
        }
        if let Some(handle) = self.reusable(&session, &place).await {
            return handle.post(SessionEvent::Replay(responder));
        }
        match self.read_stored(&session).await {
            Ok(stored) => {
                let mut task = self.open(place, &Start::Resume(session), connection).await;
                if let Ok(registered) = &mut task {
                    registered.task.read_window().await;
                }
                start(responder, task, |task| {
                    task.replay(&stored);
                    task.resume_calls();
                    LoadSessionResponse::new()
                        .modes(task.config.mode_state())
                        .config_options(task.config.options())
                });
            }
            Err(error) => respond(responder, Err(error)),
        }
    }

    pub(crate) async fn resume_session(
        &self,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) {
        let session = request.session_id.0.to_string();
        let place = SessionPlace {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        };
        let _opening = self.0.opening.lock().await;
        if let Err(error) = self.check_stored(&session, &place).await {
            return respond(responder, Err(error));
        }
        if let Some(open) = self.find_open(&session) {
            open.handle.close().await;
        }
        let stored = match self.read_stored(&session).await {
            Ok(stored) => stored,
            Err(error) => return respond(responder, Err(error)),
        };
        let task = self.open(place, &Start::Resume(session), connection).await;
        start(responder, task, |task| {
            // The editor has the messages; the plan is kept from them.
            task.restore(&stored);
            task.resume_calls();
            ResumeSessionResponse::new().modes(task.config.mode_state()).config_options(task.config.options())
        });
    }

    /// Copies a session, up to a message if the editor names one, and opens the copy.
    pub(crate) async fn fork_session(
        &self,
        request: ForkSessionRequest,
        responder: Responder<ForkSessionResponse>,
        connection: ConnectionTo<Client>,
    ) {
        let session = request.session_id.0.to_string();
        let at = request.meta.as_ref().and_then(|meta| {
            let in_meta = meta.get("messageId").or_else(|| meta.get("claudeCode")?.get("messageId"));
            in_meta.and_then(Value::as_str).map(str::to_owned)
        });
        let place = SessionPlace {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        };
        let start_as = match self.fork_stored(&session, &place, at).await {
            Ok(start_as) => start_as,
            Err(error) => return respond(responder, Err(error)),
        };
        let task = self.open(place, &start_as, connection).await;
        start(responder, task, |task| {
            ForkSessionResponse::new(task.outbox.session().clone())
                .modes(task.config.mode_state())
                .config_options(task.config.options())
        });
    }

    pub(crate) async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let listed = self.stored()?.list().await.map_err(|error| from_sessions_error(&error))?;
        session_list::page(listed, request.cwd.as_deref(), request.cursor.as_deref())
    }

    /// Ends a session; it stays stored.
    pub(crate) async fn close_session(&self, session: &str) -> Result<(), Error> {
        let open = self.find_open(session).ok_or_else(|| session_not_found(session))?;
        open.handle.close().await;
        self.sessions().remove(session);
        Ok(())
    }

    /// Deletes a session. One that is unknown is deleted already.
    pub(crate) async fn delete_session(&self, session: &str) -> Result<(), Error> {
        if self.find_open(session).is_some() {
            self.close_session(session).await?;
        }
        if self.find_stored(session).await?.is_none() {
            return Ok(());
        }
        self.stored()?.delete(session).await.map_err(|error| from_sessions_error(&error))
    }

    /// Ends all sessions, because the connection has ended.
    pub(crate) async fn end_all(&self) {
        let open: Vec<OpenSession> = self.sessions().drain().map(|(_, open)| open).collect();
        let all_closed = futures::future::join_all(open.iter().map(|open| open.handle.close()));
        // What does not end in time ends with the process.
        let _ = tokio::time::timeout(END_TIMEOUT, all_closed).await;
    }

    /// Opens a session and registers it.
    async fn open(
        &self,
        place: SessionPlace,
        start: &Start,
        connection: ConnectionTo<Client>,
    ) -> Result<RegisteredTask, Error> {
        place.check()?;
        let features = *self.0.features.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, events) = mpsc::unbounded_channel();
        let opened = self.0.opener.open(&place, start, &features, sender.clone()).await?;
        let config = ConfigState::read(opened.session.controls(), self.0.opener.bypass_mode()).await;
        let config = config.map_err(|error| from_sdk_error(&error))?;
        let outbox = Outbox::new(connection, start.session(), self.0.backlog.clone());
        let (cwd, stored) = (place.cwd.clone(), self.stored()?);
        let task = SessionTask::new(SessionParts { outbox, opened, events, config, features, cwd, stored });
        let handle = SessionHandle { events: sender, ended: CancellationToken::new() };
        let ended = handle.ended.clone();
        let mut sessions = self.sessions();
        sessions.retain(|_, open| !open.handle.has_ended());
        sessions.insert(start.session().to_owned(), OpenSession { handle, place });
        Ok(RegisteredTask { task, ended })
    }

    /// The open session, if it works where the request says. Else it is closed, so that it can be opened anew.
    async fn reusable(&self, session: &str, place: &SessionPlace) -> Option<SessionHandle> {
        let open = self.find_open(session)?;
        if open.place == *place {
            return Some(open.handle);
        }
        open.handle.close().await;
        None
    }

    async fn fork_stored(
        &self,
        session: &str,
        place: &SessionPlace,
        at: Option<String>,
    ) -> Result<Start, Error> {
        let Some(_) = self.find_stored(session).await? else {
            // An open session without a prompt is not stored yet: its copy is as empty.
            return self.find(session).map(|_| Start::New(new_uuid()));
        };
        place.check()?;
        let forked = self.stored()?.fork(session, ForkOptions { at, title: None }).await;
        forked.map(Start::Resume).map_err(|error| from_sessions_error(&error))
    }

    /// Checks that a session is stored or open, and belongs to this place.
    async fn check_stored(&self, session: &str, place: &SessionPlace) -> Result<(), Error> {
        place.check()?;
        let Some(found) = self.find_stored(session).await? else {
            // An open session without a prompt is not stored.
            return self.find(session).map(drop);
        };
        match &found.cwd {
            Some(cwd) if !is_same_dir(Path::new(cwd), &place.cwd) => {
                Err(invalid_params(format!("the session {session} belongs to {cwd}: open it there")))
            }
            _ => Ok(()),
        }
    }

    async fn read_stored(&self, session: &str) -> Result<StoredConversation, Error> {
        StoredConversation::read(&self.stored()?, session).await
    }

    async fn find_stored(&self, session: &str) -> Result<Option<SessionSummary>, Error> {
        let found = self.stored()?.find(session).await.map_err(|error| from_sessions_error(&error))?;
        // A prefix of an id would do, too.
        Ok(found.filter(|found| found.session_id == session))
    }

    fn find_open(&self, session: &str) -> Option<OpenSession> {
        self.sessions().get(session).filter(|open| !open.handle.has_ended()).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, OpenSession>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> Result<Sessions, Error> {
        self.0.opener.storage_agent().sessions().map_err(|error| internal_error(error.to_string()))
    }
}

/// A session that is registered and does not run yet.
struct RegisteredTask {
    task: SessionTask,
    ended: CancellationToken,
}

/// Answers the request that opened a session, then lets the session run, so that its first updates come behind the answer.
fn start<T: JsonRpcResponse>(
    responder: Responder<T>,
    opened: Result<RegisteredTask, Error>,
    answer: impl FnOnce(&mut SessionTask) -> T,
) {
    match opened {
        Ok(RegisteredTask { mut task, ended }) => {
            respond(responder, Ok(answer(&mut task)));
            tokio::spawn(async move {
                // Also if the task panics.
                let _ended = ended.drop_guard();
                task.run().await;
            });
        }
        Err(error) => respond(responder, Err(error)),
    }
}

/// Answers a request. An editor that is gone needs no answer.
fn respond<T: JsonRpcResponse>(responder: Responder<T>, answer: Result<T, Error>) {
    let _ = responder.respond_with_result(answer);
}

fn is_same_dir(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
