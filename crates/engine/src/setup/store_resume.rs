//! Selects the session when a session store is used; the store is queried before anything else is resolved.

use whimbrel_session_store::paths::project_key;
use whimbrel_session_store::resume_error::ResumeError;
use whimbrel_session_store::resumed_session::StoredSession;
use whimbrel_session_store::store::{SharedStore, StoreKey, uuid_of};
use whimbrel_session_store::store_writer::with_load_timeout;
use whimbrel_session_store::{Mirror, Persistence, ResumedSession, StoreWriter};
use whimbrel_wire::options::Options;

use super::session_request::working_directory;
use super::session_selection::{self, ResolvedSession, SessionOrigin};
use super::{SessionRequest, Setup, SetupError};
use crate::engine::Engine;

/// A selected session and the writer to its store.
pub(super) struct StoreResolvedSession {
    resolved: ResolvedSession,
    /// `None` if the session is not stored.
    store_writer: Option<StoreWriter>,
}

impl StoreResolvedSession {
    /// Returns the selected session and sets its persistence. The host owns the store, so lines are not mirrored.
    pub(super) fn into_resolved(self, persistence: &mut Persistence) -> ResolvedSession {
        persistence.store_writer = self.store_writer;
        persistence.mirror = Mirror::Off;
        self.resolved
    }
}

/// Resolves a session stored in a session store.
pub(super) async fn resolve(engine: &Engine, request: SessionRequest) -> Result<Setup, SetupError> {
    let Some(store) = request.store.clone() else { return Setup::resolve(engine, request) };
    let options = &request.options;
    let project = project_key(&working_directory(options)?.to_string_lossy());
    let persists = options.persist_session != Some(false);
    let resolver = StoreResolver { store: &store, project: &project, options, persists };
    let (resolved, last_entry) = resolver.resolve_session().await?;
    let store_writer = persists.then(|| StoreWriter::new(store.clone(), project));
    if let (Some(store_writer), Some(last_entry)) = (&store_writer, last_entry) {
        store_writer.set_last_entry(&resolved.session, last_entry);
    }
    Setup::resolve_from(engine, request, Some(StoreResolvedSession { resolved, store_writer }))
}

/// Inputs for selecting a session.
struct StoreResolver<'a> {
    store: &'a SharedStore,
    project: &'a str,
    options: &'a Options,
    persists: bool,
}

impl StoreResolver<'_> {
    /// The session, and the uuid of its last entry in the store.
    async fn resolve_session(&self) -> Result<(ResolvedSession, Option<String>), SetupError> {
        session_selection::check_options(self.options)?;
        match self.requested_session().await? {
            None => Ok((self.new_session().await?, None)),
            Some((old, stored)) if self.options.fork_session => self.fork_session(&old, stored).await,
            Some((session, StoredSession { resumed, last_entry, .. })) => {
                Ok((resumed_session(session, resumed, SessionOrigin::Resumed), last_entry))
            }
        }
    }

    /// The session to resume, if one was requested.
    async fn requested_session(&self) -> Result<Option<(String, StoredSession)>, SetupError> {
        match &self.options.resume {
            None if self.options.continue_conversation => self.newest_session().await,
            None => Ok(None),
            Some(session) => {
                session_selection::check_id(session)?;
                let stored = self.load_session(session).await?;
                Ok(Some((
                    session.clone(),
                    stored.ok_or_else(|| session_selection::unknown_session_error(session))?,
                )))
            }
        }
    }

    /// The newest session that has messages.
    async fn newest_session(&self) -> Result<Option<(String, StoredSession)>, SetupError> {
        let listed = with_load_timeout(self.store.list(self.project)).await;
        for listed in listed.map_err(|error| SetupError::Invalid(error.to_string()))? {
            let stored = self.load_session(&listed.session).await?;
            if let Some(stored) = stored.filter(StoredSession::has_messages) {
                return Ok(Some((listed.session, stored)));
            }
        }
        Ok(None)
    }

    async fn new_session(&self) -> Result<ResolvedSession, SetupError> {
        let session = self.new_id().await?;
        let (resumed, transcript_dir, warning, forked_from) = (None, None, None, None);
        Ok(ResolvedSession {
            session,
            transcript_dir,
            resumed,
            origin: SessionOrigin::New,
            forked_from,
            warning,
        })
    }

    async fn fork_session(
        &self,
        old: &str,
        mut stored: StoredSession,
    ) -> Result<(ResolvedSession, Option<String>), SetupError> {
        let session = self.new_id().await?;
        let mut last_entry = None;
        if self.persists {
            let lines = stored.fork_lines(old, &session).map_err(|error| fork_error(old, error))?;
            let result = with_load_timeout(self.store.append(&self.store_key(&session), &lines)).await;
            result.map_err(|error| fork_error(old, error))?;
            last_entry = lines.iter().rev().find_map(uuid_of);
        }
        let forked_from = Some(old.to_owned());
        let resolved = resumed_session(session, stored.resumed, SessionOrigin::Forked);
        Ok((ResolvedSession { forked_from, ..resolved }, last_entry))
    }

    /// Id of a new session; a given one must not exist in the store.
    async fn new_id(&self) -> Result<String, SetupError> {
        let session = session_selection::new_id(self.options)?;
        if self.options.session_id.is_some() && self.persists {
            let existing = with_load_timeout(self.store.load(&self.store_key(&session))).await;
            if existing.map_err(|error| SetupError::Invalid(error.to_string()))?.is_some() {
                return Err(session_selection::id_taken_error(&session));
            }
        }
        Ok(session)
    }

    async fn load_session(&self, session: &str) -> Result<Option<StoredSession>, SetupError> {
        let range = session_selection::load_range(self.options);
        let result = ResumedSession::from_store(&**self.store, &self.store_key(session), &range).await;
        result.map_err(|error: ResumeError| session_selection::to_setup_error(session, error))
    }

    fn store_key(&self, session: &str) -> StoreKey {
        StoreKey::session(self.project, session)
    }
}

fn resumed_session(session: String, resumed: ResumedSession, origin: SessionOrigin) -> ResolvedSession {
    let warning = session_selection::repair_warning(&resumed);
    ResolvedSession {
        warning,
        session,
        transcript_dir: None,
        resumed: Some(resumed),
        origin,
        forked_from: None,
    }
}

fn fork_error(old: &str, error: impl std::fmt::Display) -> SetupError {
    SetupError::Invalid(format!("The session {old} cannot be copied: {error}"))
}
