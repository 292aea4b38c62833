//! A session that is gone on with: finding it, making it ours, reading it back.

use std::collections::HashSet;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use whimbrel_wire::RawJson;

use super::courier::within;
use super::fork::Fork;
use super::journal::Mirror;
use super::line::{BRIEF, Line};
use super::load::{self, LoadError, Loaded, Until};
use super::lock::{Busy, Lock, LockError};
use super::shelf::{Label, words};
use super::store::{SessionStore, StoreError, StoreKey, one_line};
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
    /// There is nothing in it.
    #[error("Nothing was said in the session {0}, so there is nothing to copy.")]
    Empty(String),
    /// The copy cannot be called that.
    #[error("{0}")]
    Title(io::Error),
    /// The store that has it fails.
    #[error("{0}")]
    Store(#[from] StoreError),
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
        let lock = Lock::take(&path).map_err(|error| match error {
            LockError::Busy(busy) => PastError::Busy(busy),
            LockError::Io(error) => LoadError::Io(error).into(),
        })?;
        Ok(Self { lock: Some(lock), ..Self::read(place, session, until)? })
    }

    /// Reads a session back without touching it.
    pub fn read(place: &Place, session: &str, until: &Until) -> Result<Self, PastError> {
        let file = medium::read(&place.transcript(session)).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load(file, until)?, lock: None, copies: Vec::new() })
    }

    /// Reads the transcript of a subagent back.
    pub(crate) fn of_subagent(path: &Path) -> Result<Self, PastError> {
        let file = medium::read(path).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load_subagent(file)?, lock: None, copies: Vec::new() })
    }

    /// Reads the transcript of a subagent back whose lines are at hand.
    pub(crate) fn of_subagent_lines(lines: &[RawJson]) -> Result<Self, PastError> {
        let loaded = load::load_subagent(Cursor::new(joined(lines)))?;
        Ok(Self { loaded, lock: None, copies: Vec::new() })
    }

    /// Copies what was read to a new session, which is ours.
    pub fn fork(
        mut self,
        from: &Place,
        old: &str,
        to: &Place,
        new: &str,
        mirror: Mirror,
    ) -> Result<Self, PastError> {
        let (from, to) = (from.transcript(old), to.transcript(new));
        let copied = Fork { old, new }.copy(&self.loaded, &from, &to, mirror);
        let copied = copied.map_err(|error| PastError::Copy(to.clone(), error))?;
        (self.copies, self.lock) = (copied.lines, Some(copied.lock));
        self.loaded.labels = copied.labels;
        self.loaded.facts.title = self.loaded.title_of_copy();
        Ok(self)
    }

    /// Calls the session something, and writes it down at once if it is written through this: false if it is not, so that
    /// somebody else has to.
    pub(crate) fn rename(&mut self, title: &str, session: &str) -> io::Result<bool> {
        let Some(lock) = &mut self.lock else { return Ok(false) };
        let line = Label::title(title, session)?.to_line()?;
        lock.append(format!("{}\n", line.as_str()).as_bytes())?;
        self.copies.push(line);
        self.loaded.facts.title = words(title);
        Ok(true)
    }

    /// Reads a session back from a store; none if it has no such session.
    pub async fn of_store(
        store: &dyn SessionStore,
        key: &StoreKey,
        until: &Until,
    ) -> Result<Option<StoredPast>, PastError> {
        let Some(lines) = within(store.load(key)).await? else { return Ok(None) };
        let text = joined(&lines);
        let past = Self { loaded: load::load(Cursor::new(&text), until)?, lock: None, copies: Vec::new() };
        Ok(Some(StoredPast { past, text }))
    }
}

/// A session that was read back from a store.
#[derive(Debug)]
pub struct StoredPast {
    /// What it begins with.
    pub past: Past,
    /// The lines that it was read from.
    text: Vec<u8>,
}

impl StoredPast {
    /// Whether anything was said in it.
    pub fn is_spoken(&self) -> bool {
        load::is_spoken(self.text.as_slice()).unwrap_or(false)
    }

    /// The lines of a copy of it, which this is from now on.
    pub fn forked(&mut self, old: &str, new: &str) -> io::Result<Vec<RawJson>> {
        let lines = Fork { old, new }.lines(&self.past.loaded, Cursor::new(&self.text))?;
        self.past.loaded.facts.title = self.past.loaded.title_of_copy();
        Ok(lines)
    }
}

/// Lines as a file has them. What the model was told has no id: if it was delivered twice, it stands there twice, to the
/// letter, and counts once.
pub(super) fn joined(lines: &[RawJson]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.as_str().len() + 1).sum());
    let mut told = HashSet::new();
    let is_brief =
        |line: &RawJson| Line::read(line.as_str().as_bytes()).is_some_and(|(line, _)| line.kind_is(BRIEF));
    for line in lines {
        if is_brief(line) && !told.insert(line.as_str()) {
            continue;
        }
        text.extend_from_slice(one_line(line).as_bytes());
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_delivered_twice_is_told_once_and_a_title_that_came_back_counts() {
        let line = |value: serde_json::Value| RawJson::of(&value).unwrap();
        let brief = line(json!({"type": "brief", "beforeUuid": "a", "text": "x", "timestamp": "t"}));
        let title = |name: &str| line(json!({"type": "custom-title", "customTitle": name}));
        let lines = [brief.clone(), title("A"), title("B"), brief, title("A")];
        let text = String::from_utf8(joined(&lines)).unwrap();
        assert_eq!(text.matches("brief").count(), 1);
        assert!(text.trim_end().ends_with(title("A").as_str()) && text.lines().count() == 4, "{text}");
    }
}
