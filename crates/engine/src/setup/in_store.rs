//! Which session it is, where a store keeps sessions: the store is asked before anything else is resolved.

use whimbrel_wire::options::Options;

use super::resume::{self, Beginning, Origin};
use super::start::working_directory;
use super::{Setup, SetupError, Start};
use crate::engine::Engine;
use crate::session::courier::within;
use crate::session::past::{PastError, StoredPast};
use crate::session::place::project_key;
use crate::session::store::{SharedStore, StoreKey};
use crate::session::{Courier, Keeping, Mirror, Past};

/// What a session begins with, and the way to the store that keeps it.
pub(super) struct StoredBeginning {
    beginning: Beginning,
    /// None if the session is not to be kept.
    courier: Option<Courier>,
}

impl StoredBeginning {
    /// Gives the beginning, and says how the session is kept. The host has the store, so it needs no copies.
    pub(super) fn take(self, keeping: &mut Keeping) -> Beginning {
        keeping.courier = self.courier;
        keeping.mirror = Mirror::Off;
        self.beginning
    }
}

/// Resolves what was asked for, with a session that a store keeps.
pub(super) async fn resolve(engine: &Engine, start: Start) -> Result<Setup, SetupError> {
    let Some(store) = start.store.clone() else { return Setup::resolve(engine, start) };
    let options = &start.options;
    let project = project_key(&working_directory(options)?.to_string_lossy());
    let persists = options.persist_session != Some(false);
    let beginning = Desk { store: &store, project: &project, options, persists }.begin().await?;
    let courier = persists.then(|| Courier::new(store.clone(), project));
    Setup::resolve_from(engine, start, Some(StoredBeginning { beginning, courier }))
}

/// What is at hand while it is found out which session it is.
struct Desk<'a> {
    store: &'a SharedStore,
    project: &'a str,
    options: &'a Options,
    persists: bool,
}

impl Desk<'_> {
    async fn begin(&self) -> Result<Beginning, SetupError> {
        resume::check(self.options)?;
        match self.wanted().await? {
            None => self.fresh().await,
            Some((old, stored)) if self.options.fork_session => self.forked(&old, stored).await,
            Some((session, stored)) => Ok(beginning(session, stored.past, Origin::Resumed)),
        }
    }

    /// The session that is asked for, if one is.
    async fn wanted(&self) -> Result<Option<(String, StoredPast)>, SetupError> {
        match &self.options.resume {
            None if self.options.continue_conversation => self.newest().await,
            None => Ok(None),
            Some(session) => {
                resume::check_id(session)?;
                let stored = self.read(session).await?;
                Ok(Some((session.clone(), stored.ok_or_else(|| resume::unknown(session))?)))
            }
        }
    }

    /// The last session in which anything was said.
    async fn newest(&self) -> Result<Option<(String, StoredPast)>, SetupError> {
        let listed = within(self.store.list(self.project)).await;
        for listed in listed.map_err(|error| SetupError::Invalid(error.to_string()))? {
            let stored = self.read(&listed.session).await?;
            if let Some(stored) = stored.filter(StoredPast::is_spoken) {
                return Ok(Some((listed.session, stored)));
            }
        }
        Ok(None)
    }

    async fn fresh(&self) -> Result<Beginning, SetupError> {
        let session = self.new_id().await?;
        let (past, place, warning, forked_from) = (None, None, None, None);
        Ok(Beginning { session, place, past, origin: Origin::Fresh, forked_from, warning })
    }

    async fn forked(&self, old: &str, mut stored: StoredPast) -> Result<Beginning, SetupError> {
        let session = self.new_id().await?;
        if self.persists {
            let lines = stored.forked(old, &session).map_err(|error| uncopied(old, error))?;
            let put = within(self.store.append(&self.key(&session), &lines)).await;
            put.map_err(|error| uncopied(old, error))?;
        }
        let forked_from = Some(old.to_owned());
        Ok(Beginning { forked_from, ..beginning(session, stored.past, Origin::Forked) })
    }

    /// The id of a new session; one that was given must be nobody's yet.
    async fn new_id(&self) -> Result<String, SetupError> {
        let session = resume::new_id(self.options)?;
        if self.options.session_id.is_some() && self.persists {
            let there = within(self.store.load(&self.key(&session))).await;
            if there.map_err(|error| SetupError::Invalid(error.to_string()))?.is_some() {
                return Err(resume::taken(&session));
            }
        }
        Ok(session)
    }

    async fn read(&self, session: &str) -> Result<Option<StoredPast>, SetupError> {
        let until = resume::until(self.options);
        let read = Past::of_store(&**self.store, &self.key(session), &until).await;
        read.map_err(|error: PastError| resume::refused(session, error))
    }

    fn key(&self, session: &str) -> StoreKey {
        StoreKey::session(self.project, session)
    }
}

fn beginning(session: String, past: Past, origin: Origin) -> Beginning {
    let warning = resume::warning(&past);
    Beginning { warning, session, place: None, past: Some(past), origin, forked_from: None }
}

fn uncopied(old: &str, error: impl std::fmt::Display) -> SetupError {
    SetupError::Invalid(format!("The session {old} cannot be copied: {error}"))
}
