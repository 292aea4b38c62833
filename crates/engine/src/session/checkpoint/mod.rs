//! Checkpoints of files: before a tool first changes a file, its content is kept, so that a host can have the files back
//! as they were when a prompt came.
//!
//! Only files that the file tools change are watched, from their first change on. When a prompt comes, each of them that
//! looks changed is kept again, whoever changed it. What a command does to other files is not seen.
//!
//! Rooms: `history` (what is known, pure), `journal` (the same on disk), `copies` (the bytes), `rewind` (putting
//! them back). All of it is disk work: callers run it beside the async threads.

mod blobs;
mod history;
mod record_log;
mod rewind;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use rewind::{RewindReport, RewindMode};

use crate::files::{self, FileKind, FileStamp};
use crate::permission::paths;
use blobs::FileSnapshot;
use history::{FileHistory, FileVersion, CheckpointRecord, FileState};
use record_log::CheckpointLog;

/// How many losses are told one by one.
const MAX_LISTED_LOSSES: usize = 5;

/// Where the checkpoints of a session lie, below the folder of settings.
pub fn checkpoint_dir(config: &Path, session: &str) -> PathBuf {
    config.join("file-history").join(session)
}

/// The checkpoints of one session.
#[derive(Debug)]
pub struct Checkpoints {
    dir: PathBuf,
    state: Mutex<Option<CheckpointState>>,
}

/// What is known, read from disk when it is first needed.
#[derive(Debug)]
struct CheckpointState {
    history: FileHistory,
    log: CheckpointLog,
    /// Files as they were last looked at; one that is not in here must be looked at again.
    last_seen: HashMap<PathBuf, Option<FileStamp>>,
    stored_bytes: u64,
    losses: Vec<String>,
    /// Whether it was told that the journal cannot be written.
    log_failure_reported: bool,
}

impl Checkpoints {
    /// The checkpoints that lie, or will lie, in a folder. Nothing is touched yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, state: Mutex::default() }
    }

    /// Takes over the checkpoints of the session that this one is a fork of, before anything is asked of this one. Copies
    /// are linked, not doubled.
    pub fn inherit(&self, from: &Path) -> io::Result<()> {
        for name in files::entry_names(from, usize::MAX) {
            if !record_log::is_log_file(&name) {
                files::create_private_dir(&self.dir)?;
                files::link_or_copy(&from.join(&name), &self.dir.join(&name))?;
            }
        }
        record_log::copy_log(from, &self.dir)
    }

    /// A prompt has come: whatever is watched is kept as it is now.
    pub fn record_prompt(&self, prompt: &str) {
        let mut guard = self.lock();
        let book = self.state(&mut guard);
        book.record(CheckpointRecord::Prompt { id: prompt.to_owned() });
        for past in book.history.latest_versions() {
            book.snapshot_if_changed(&self.dir, past);
        }
    }

    /// A tool is about to change a file: it is kept if it is not watched yet.
    pub fn snapshot_before_change(&self, path: &Path) {
        let place = paths::resolve_links(path);
        let mut guard = self.lock();
        let book = self.state(&mut guard);
        if !book.history.has_prompts() {
            return;
        }
        if book.history.last_state(&place).is_none() {
            book.snapshot(&self.dir, path.to_path_buf(), place.clone());
        }
        book.last_seen.remove(&place);
    }

    /// What could not be kept since this was last asked, in words.
    pub fn take_loss_report(&self) -> Option<String> {
        let losses = std::mem::take(&mut self.lock().as_mut()?.losses);
        let more = losses.len().saturating_sub(MAX_LISTED_LOSSES);
        let mut lines: Vec<String> = losses.into_iter().take(MAX_LISTED_LOSSES).collect();
        if more > 0 {
            lines.push(format!("The same is true of {more} more files."));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<CheckpointState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state<'a>(&self, guard: &'a mut MutexGuard<'_, Option<CheckpointState>>) -> &'a mut CheckpointState {
        guard.get_or_insert_with(|| CheckpointState::load(&self.dir))
    }
}

impl CheckpointState {
    fn load(folder: &Path) -> Self {
        let (log, history, read) = CheckpointLog::load(folder);
        let losses = read.err().map(|error| {
            let path = record_log::log_path(folder);
            format!("The checkpoints of earlier prompts cannot be read, so files cannot be put back to them: {}: {error}.", path.display())
        });
        Self {
            stored_bytes: history.stored_bytes(),
            history,
            log,
            last_seen: HashMap::new(),
            losses: losses.into_iter().collect(),
            log_failure_reported: false,
        }
    }

    /// Keeps a watched file again if it looks changed.
    fn snapshot_if_changed(&mut self, folder: &Path, past: FileVersion) {
        let now = match files::file_kind(&past.real_path) {
            Ok(FileKind::File(stamp)) => Some(stamp),
            Ok(FileKind::Missing) => None,
            Ok(_) | Err(_) => return,
        };
        if self.last_seen.get(&past.real_path) != Some(&now) {
            self.snapshot(folder, past.path, past.real_path);
        }
    }

    /// Keeps a file as it is now, unless that is known.
    fn snapshot(&mut self, folder: &Path, path: PathBuf, place: PathBuf) {
        if path.to_str().is_none() || place.to_str().is_none() {
            self.losses.push(render_loss(&path, "its path is not UTF-8"));
            return;
        }
        let room = blobs::MAX_TOTAL_SIZE.saturating_sub(self.stored_bytes);
        let Some(FileSnapshot { state, stamp, added_bytes: grown }) = blobs::snapshot_file(folder, &place, room) else { return };
        self.stored_bytes += grown;
        match &state {
            FileState::NotKept { why, .. } => {
                let is_new = !matches!(self.history.last_state(&place), Some(FileState::NotKept { .. }));
                is_new.then(|| self.losses.push(render_loss(&path, why)));
            }
            FileState::Kept { .. } | FileState::Missing { .. } => {
                self.last_seen.insert(place.clone(), stamp);
            }
        }
        let is_known = match (self.history.last_state(&place), &state) {
            (Some(FileState::Missing { .. }), FileState::Missing { .. }) => true,
            (last, now) => last == Some(now),
        };
        if !is_known {
            self.record(CheckpointRecord::File { path, place, state });
        }
    }

    /// Takes a record in and writes it down. What cannot be written is still known as long as the session lives.
    fn record(&mut self, record: CheckpointRecord) {
        if let Err(error) = self.log.append(&record)
            && !std::mem::replace(&mut self.log_failure_reported, true)
        {
            self.losses.push(format!(
                "Checkpoints cannot be written down ({error}): once this session has ended, files cannot be put back to its prompts. Make room, or make the folder writable."
            ));
        }
        self.history.apply(record);
    }
}

fn render_loss(path: &Path, why: &str) -> String {
    format!("No copy of {} was kept ({why}): rewinding will not bring it back.", path.display())
}
