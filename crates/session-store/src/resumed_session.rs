//! Resuming of sessions: locks a transcript and loads its conversation.

use std::collections::HashSet;
use std::io::{self, Cursor};
use std::path::Path;

use whimbrel_wire::RawJson;

use crate::entry::{HIDDEN_TEXT, TranscriptEntry};
use crate::fork::Fork;
use crate::load::{self, LoadError, LoadRange, LoadedConversation};
use crate::lock::{LockError, TranscriptLock};
use crate::metadata::{MetadataEntry, normalize_name};
use crate::mirror::Mirror;
use crate::resume_error::ResumeError;
use crate::rewind_record::RewindRecord;
use crate::store::{SessionStore, StoreKey, to_single_line, uuid_of};
use crate::store_writer::with_load_timeout;
use crate::{TranscriptDir, TranscriptWriter, append_file};

/// Initial state of a resumed session.
#[derive(Debug, Default)]
pub struct ResumedSession {
    pub loaded: LoadedConversation,
    /// Lock on the transcript, if it is already held.
    pub lock: Option<TranscriptLock>,
    /// Lines in the transcript that the host has not mirrored yet.
    pub mirror_lines: Vec<RawJson>,
}

impl ResumedSession {
    /// Checks whether a session contains messages.
    pub fn has_messages(project: &TranscriptDir, session: &str) -> bool {
        append_file::open_for_reading(&project.transcript(session))
            .is_ok_and(|file| load::has_messages(file).unwrap_or(false))
    }

    /// Locks and loads a session, to be continued under its id.
    pub fn resume(project: &TranscriptDir, session: &str, until: &LoadRange) -> Result<Self, ResumeError> {
        let path = project.transcript(session);
        // Locks before loading, so that no other engine appends in between.
        let lock = TranscriptLock::acquire(&path).map_err(|error| match error {
            LockError::Busy(busy) => ResumeError::Busy(busy),
            LockError::Io(error) => LoadError::Io(error).into(),
        })?;
        Ok(Self { lock: Some(lock), ..Self::read(project, session, until)? })
    }

    /// Loads a session without locking it.
    pub fn read(project: &TranscriptDir, session: &str, until: &LoadRange) -> Result<Self, ResumeError> {
        let file = append_file::open_for_reading(&project.transcript(session)).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load(file, until)?, lock: None, mirror_lines: Vec::new() })
    }

    /// Loads a subagent's transcript from a file.
    pub fn from_subagent_file(path: &Path) -> Result<Self, ResumeError> {
        let file = append_file::open_for_reading(path).map_err(LoadError::Io)?;
        Ok(Self { loaded: load::load_subagent(file)?, lock: None, mirror_lines: Vec::new() })
    }

    /// Loads a subagent's transcript from lines.
    pub fn from_subagent_lines(lines: &[RawJson]) -> Result<Self, ResumeError> {
        let loaded = load::load_subagent(Cursor::new(join_lines(lines)))?;
        Ok(Self { loaded, lock: None, mirror_lines: Vec::new() })
    }

    /// Copies the loaded conversation to a new session and locks it.
    pub fn fork(
        mut self,
        from: &TranscriptDir,
        old: &str,
        to: &TranscriptDir,
        new: &str,
        mirror: Mirror,
    ) -> Result<Self, ResumeError> {
        let (from, to) = (from.transcript(old), to.transcript(new));
        let copied = Fork { old, new }.copy(&self.loaded, &from, &to, mirror);
        let copied = copied.map_err(|error| ResumeError::Copy(to.clone(), error))?;
        (self.mirror_lines, self.lock) = (copied.lines, Some(copied.lock));
        self.loaded.metadata = copied.metadata;
        self.loaded.recorded.title = self.loaded.fork_title();
        Ok(self)
    }

    /// Writes a title through the lock. Returns false if no lock is held; the caller must write the title then.
    pub fn rename(&mut self, title: &str, session: &str) -> io::Result<bool> {
        let Some(lock) = &mut self.lock else { return Ok(false) };
        let line = MetadataEntry::title(title, session)?.to_line()?;
        lock.append(format!("{}\n", line.as_str()).as_bytes())?;
        self.mirror_lines.push(line);
        self.loaded.recorded.title = normalize_name(title);
        Ok(true)
    }

    /// Records a rewind through the lock and takes over the state to go back to. An error means that nothing has changed.
    pub fn rewind(
        &mut self,
        (session, cwd): (&str, &str),
        rewind: &RewindRecord,
        loaded: LoadedConversation,
    ) -> io::Result<()> {
        let lines = rewind.render(session, cwd, self.loaded.leaf.as_deref());
        let lines =
            lines.map(|line| RawJson::from_value(&line)).into_iter().collect::<Result<Vec<_>, _>>()?;
        let Some(lock) = &mut self.lock else {
            return Err(io::Error::other("the transcript is not open for writing"));
        };
        let text: String = lines.iter().map(|line| format!("{}\n", line.as_str())).collect();
        lock.append(text.as_bytes())?;
        self.mirror_lines.extend(lines);
        self.loaded = LoadedConversation { leaf: Some(rewind.uuid.clone()), ..loaded };
        Ok(())
    }

    /// The same for a session in a store.
    pub async fn rewind_in_store(
        &mut self,
        writer: &TranscriptWriter,
        cwd: &str,
        rewind: &RewindRecord,
        loaded: LoadedConversation,
    ) -> io::Result<()> {
        writer.write_rewind(cwd, self.loaded.leaf.as_deref(), rewind).await?;
        self.loaded = LoadedConversation { leaf: Some(rewind.uuid.clone()), ..loaded };
        Ok(())
    }

    /// Loads a session from a store; `None` if it has no such session.
    pub async fn from_store(
        store: &dyn SessionStore,
        key: &StoreKey,
        until: &LoadRange,
    ) -> Result<Option<StoredSession>, ResumeError> {
        let Some(lines) = with_load_timeout(store.load(key)).await? else { return Ok(None) };
        let text = join_lines(&lines);
        let resumed =
            Self { loaded: load::load(Cursor::new(&text), until)?, lock: None, mirror_lines: Vec::new() };
        Ok(Some(StoredSession { resumed, text, last_entry: lines.iter().rev().find_map(uuid_of) }))
    }
}

/// A session loaded from a store.
#[derive(Debug)]
pub struct StoredSession {
    pub resumed: ResumedSession,
    /// Uuid of its last line that has one.
    pub last_entry: Option<String>,
    /// The lines it was loaded from.
    text: Vec<u8>,
}

impl StoredSession {
    /// Checks whether the session contains messages.
    pub fn has_messages(&self) -> bool {
        load::has_messages(self.text.as_slice()).unwrap_or(false)
    }

    /// Turns this into a fork and returns the fork's lines.
    pub fn fork_lines(&mut self, old: &str, new: &str) -> io::Result<Vec<RawJson>> {
        let lines = Fork { old, new }.lines(&self.resumed.loaded, Cursor::new(&self.text))?;
        self.resumed.loaded.recorded.title = self.resumed.loaded.fork_title();
        Ok(lines)
    }
}

/// Joins lines to the text of a file. Hidden texts have no uuid, so a repeated delivery is recognized by equal lines
/// and dropped here.
pub(super) fn join_lines(lines: &[RawJson]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.as_str().len() + 1).sum());
    let mut seen = HashSet::new();
    let is_hidden_text = |line: &RawJson| {
        TranscriptEntry::parse(line.as_str().as_bytes()).is_some_and(|(line, _)| line.is_type(HIDDEN_TEXT))
    };
    for line in lines {
        if is_hidden_text(line) && !seen.insert(line.as_str()) {
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
    fn duplicate_hidden_texts_are_dropped_and_titles_kept() {
        let line = |value: serde_json::Value| RawJson::from_value(&value).unwrap();
        let hidden_text = line(json!({"type": "brief", "beforeUuid": "a", "text": "x", "timestamp": "t"}));
        let title = |name: &str| line(json!({"type": "custom-title", "customTitle": name}));
        let lines = [hidden_text.clone(), title("A"), title("B"), hidden_text, title("A")];
        let text = String::from_utf8(join_lines(&lines)).unwrap();
        assert_eq!(text.matches("brief").count(), 1);
        assert!(text.trim_end().ends_with(title("A").as_str()) && text.lines().count() == 4, "{text}");
    }
}
