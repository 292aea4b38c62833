//! A session that is gone on with: finding it, making it ours, reading it back.

use std::collections::HashSet;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use whimbrel_wire::RawJson;

use super::store_writer::with_load_timeout;
use super::fork::Fork;
use super::writer::Mirror;
use super::entry::{HIDDEN_TEXT, TranscriptEntry};
use super::load::{self, LoadError, LoadedConversation, LoadRange};
use super::lock::{BusyError, TranscriptLock, LockError};
use super::session_files::{MetadataEntry, normalize_name};
use super::store::{SessionStore, StoreError, StoreKey, to_single_line};
use super::{ProjectDir, append_file};

/// What a session that is gone on with begins with.
#[derive(Debug, Default)]
pub struct ResumedSession {
    /// The conversation so far.
    pub loaded: LoadedConversation,
    /// The lock on it, if it is held already.
    pub lock: Option<TranscriptLock>,
    /// Lines that are in the transcript and that the host has no copy of.
    pub mirror_lines: Vec<RawJson>,
}

/// Why a session cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// Somebody else has it.
    #[error("{0}")]
    Busy(#[from] BusyError),
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

impl ResumedSession {
    /// Whether anything was said in a session.
    pub fn has_messages(place: &ProjectDir, session: &str) -> bool {
        append_file::open_for_reading(&place.transcript(session)).is_ok_and(|file| load::has_messages(file).unwrap_or(false))
    }

    /// Reads a session back, to be gone on with under its own id.
    pub fn resume(place: &ProjectDir, session: &str, until: &LoadRange) -> Result<Self, ResumeError> {
        let path = place.transcript(session);
        // First the lock: what is read then is what is gone on from.
        let lock = TranscriptLock::acquire(&path).map_err(|error| match error {
            LockError::Busy(busy) => ResumeError::Busy(busy),
            LockError::Io(error) => LoadError::Io(error).into(),
        })?;
        Ok(Self { lock: Some(lock), ..Self::read(place, session, until)? })
    }

    /// Reads a session back without touching it.
    pub fn read(place: &ProjectDir, session: &str, until: &LoadRange) -> Result<Self, ResumeError> {
        let file = append_file::open_for_reading(&place.transcript(session)).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load(file, until)?, lock: None, mirror_lines: Vec::new() })
    }

    /// Reads the transcript of a subagent back.
    pub(crate) fn from_subagent_file(path: &Path) -> Result<Self, ResumeError> {
        let file = append_file::open_for_reading(path).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load_subagent(file)?, lock: None, mirror_lines: Vec::new() })
    }

    /// Reads the transcript of a subagent back whose lines are at hand.
    pub(crate) fn from_subagent_lines(lines: &[RawJson]) -> Result<Self, ResumeError> {
        let loaded = load::load_subagent(Cursor::new(join_lines(lines)))?;
        Ok(Self { loaded, lock: None, mirror_lines: Vec::new() })
    }

    /// Copies what was read to a new session, which is ours.
    pub fn fork(
        mut self,
        from: &ProjectDir,
        old: &str,
        to: &ProjectDir,
        new: &str,
        mirror: Mirror,
    ) -> Result<Self, ResumeError> {
        let (from, to) = (from.transcript(old), to.transcript(new));
        let copied = Fork { old, new }.copy(&self.loaded, &from, &to, mirror);
        let copied = copied.map_err(|error| ResumeError::Copy(to.clone(), error))?;
        (self.mirror_lines, self.lock) = (copied.lines, Some(copied.lock));
        self.loaded.metadata = copied.metadata;
        self.loaded.facts.title = self.loaded.fork_title();
        Ok(self)
    }

    /// Calls the session something, and writes it down at once if it is written through this: false if it is not, so that
    /// somebody else has to.
    pub(crate) fn rename(&mut self, title: &str, session: &str) -> io::Result<bool> {
        let Some(lock) = &mut self.lock else { return Ok(false) };
        let line = MetadataEntry::title(title, session)?.to_line()?;
        lock.append(format!("{}\n", line.as_str()).as_bytes())?;
        self.mirror_lines.push(line);
        self.loaded.facts.title = normalize_name(title);
        Ok(true)
    }

    /// Reads a session back from a store; none if it has no such session.
    pub async fn from_store(
        store: &dyn SessionStore,
        key: &StoreKey,
        until: &LoadRange,
    ) -> Result<Option<StoredSession>, ResumeError> {
        let Some(lines) = with_load_timeout(store.load(key)).await? else { return Ok(None) };
        let text = join_lines(&lines);
        let past = Self { loaded: load::load(Cursor::new(&text), until)?, lock: None, mirror_lines: Vec::new() };
        Ok(Some(StoredSession { resumed: past, text }))
    }
}

/// A session that was read back from a store.
#[derive(Debug)]
pub struct StoredSession {
    /// What it begins with.
    pub resumed: ResumedSession,
    /// The lines that it was read from.
    text: Vec<u8>,
}

impl StoredSession {
    /// Whether anything was said in it.
    pub fn has_messages(&self) -> bool {
        load::has_messages(self.text.as_slice()).unwrap_or(false)
    }

    /// The lines of a copy of it, which this is from now on.
    pub fn fork_lines(&mut self, old: &str, new: &str) -> io::Result<Vec<RawJson>> {
        let lines = Fork { old, new }.lines(&self.resumed.loaded, Cursor::new(&self.text))?;
        self.resumed.loaded.facts.title = self.resumed.loaded.fork_title();
        Ok(lines)
    }
}

/// Lines as a file has them. What the model was told has no id: if it was delivered twice, it stands there twice, to the
/// letter, and counts once.
pub(super) fn join_lines(lines: &[RawJson]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.as_str().len() + 1).sum());
    let mut told = HashSet::new();
    let is_brief =
        |line: &RawJson| TranscriptEntry::parse(line.as_str().as_bytes()).is_some_and(|(line, _)| line.is_type(HIDDEN_TEXT));
    for line in lines {
        if is_brief(line) && !told.insert(line.as_str()) {
            continue;
        }
        text.extend_from_slice(to_single_line(line).as_bytes());
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
        let line = |value: serde_json::Value| RawJson::from_value(&value).unwrap();
        let brief = line(json!({"type": "brief", "beforeUuid": "a", "text": "x", "timestamp": "t"}));
        let title = |name: &str| line(json!({"type": "custom-title", "customTitle": name}));
        let lines = [brief.clone(), title("A"), title("B"), brief, title("A")];
        let text = String::from_utf8(join_lines(&lines)).unwrap();
        assert_eq!(text.matches("brief").count(), 1);
        assert!(text.trim_end().ends_with(title("A").as_str()) && text.lines().count() == 4, "{text}");
    }
}
