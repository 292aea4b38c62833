//! A session that is gone on with: finding it, making it ours, reading it back.

use std::io;
use std::path::PathBuf;

use whimbrel_wire::RawJson;

use super::fork::Fork;
use super::journal::Mirror;
use super::load::{self, LoadError, Loaded, Until};
use super::lock::{self, Busy, Lock};
use super::{Place, medium};

/// What a session that is gone on with begins with.
#[derive(Debug, Default)]
pub struct Past {
    /// The conversation so far.
    pub loaded: Loaded,
    /// The lock on it, if it is held already.
    pub lock: Option<Lock>,
    /// Lines that are in the transcript and that the host has no copy of.
    pub copies: Vec<RawJson>,
}

/// Why a session cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// Somebody else has it.
    #[error("{0}")]
    Busy(#[from] Busy),
    /// It cannot be read.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// It cannot be copied.
    #[error("The session cannot be copied to {0}: {1}.")]
    Copy(PathBuf, io::Error),
}

impl Past {
    /// Whether anything was said in a session.
    pub fn is_spoken(place: &Place, session: &str) -> bool {
        medium::read(&place.transcript(session)).is_ok_and(|file| load::is_spoken(file).unwrap_or(false))
    }

    /// Reads a session back, to be gone on with under its own id.
    pub fn resume(place: &Place, session: &str, until: &Until) -> Result<Self, PastError> {
        let path = place.transcript(session);
        // First the lock: what is read then is what is gone on from.
        let lock = Lock::take(&lock::beside(&path))?;
        Ok(Self { lock, ..Self::read(place, session, until)? })
    }

    /// Reads a session back without touching it.
    pub fn read(place: &Place, session: &str, until: &Until) -> Result<Self, PastError> {
        let file = medium::read(&place.transcript(session)).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load(file, until)?, lock: None, copies: Vec::new() })
    }

    /// Copies what was read to a new session.
    pub fn fork(
        mut self,
        from: &Place,
        old: &str,
        to: &Place,
        new: &str,
        mirror: Mirror,
    ) -> Result<Self, PastError> {
        let (from, to) = (from.transcript(old), to.transcript(new));
        let fork = Fork { from: &from, old, to: &to, new, mirror };
        self.copies = fork.copy(&self.loaded).map_err(|error| PastError::Copy(to.clone(), error))?;
        Ok(self)
    }
}
