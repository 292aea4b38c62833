//! File checkpoints: before a tool first changes a file, its content is saved, so that the host can rewind the files to
//! any prompt.
//!
//! Only files changed by the file tools are tracked, from their first change on. At each prompt every tracked file that
//! looks changed is saved again, regardless of who changed it. Changes that a shell command makes to other files are
//! not tracked.
//!
//! Modules: `history` (pure state), `record_log` (that state on disk), `blobs` (saved contents), `rewind`. Everything
//! here blocks on disk I/O; callers use [`files::run_blocking`].

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

use whimbrel_os::files::{self, FileKind, FileStamp};
use whimbrel_os::links as paths;

use blobs::FileSnapshot;
use history::{CheckpointRecord, FileHistory, FileState, FileVersion};
use record_log::CheckpointLog;
pub use rewind::{RewindMode, RewindReport};

/// Number of losses listed one by one in a report.
const MAX_LISTED_LOSSES: usize = 5;

/// Directory of a session's checkpoints below the configuration directory.
pub fn checkpoint_dir(config: &Path, session: &str) -> PathBuf {
    config.join("file-history").join(session)
}

#[derive(Debug)]
pub struct Checkpoints {
    dir: PathBuf,
    state: Mutex<Option<CheckpointState>>,
}

/// Loaded from disk on first use.
#[derive(Debug)]
struct CheckpointState {
    history: FileHistory,
    log: CheckpointLog,
    /// Stamp of each file at its last snapshot; a file without an entry must be read again.
    last_seen: HashMap<PathBuf, Option<FileStamp>>,
    stored_bytes: u64,
    losses: Vec<String>,
    /// The host was warned that the log cannot be written.
    log_failure_reported: bool,
}

impl Checkpoints {
    /// Checkpoints in a directory, which is created by the first record.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, state: Mutex::default() }
    }

    /// Copies the checkpoints of the session that this one was forked from; saved contents are hard-linked. Must be
    /// called before the first use of this one.
    pub fn inherit(&self, from: &Path) -> io::Result<()> {
        for name in files::entry_names(from, usize::MAX) {
            if !record_log::is_log_file(&name) {
                files::create_private_dir(&self.dir)?;
                files::link_or_copy(&from.join(&name), &self.dir.join(&name))?;
            }
        }
        record_log::copy_log(from, &self.dir)
    }

    /// Records a prompt and saves all tracked files that have changed.
    pub fn record_prompt(&self, prompt: &str) {
        let mut guard = self.lock();
        let state = self.state(&mut guard);
        state.record(CheckpointRecord::Prompt { id: prompt.to_owned() });
        for version in state.history.latest_versions() {
            state.snapshot_if_changed(&self.dir, version);
        }
    }

    /// Saves a file that a tool is about to change, unless it is tracked already.
    pub fn snapshot_before_change(&self, path: &Path) {
        let real_path = paths::resolve_links(path);
        let mut guard = self.lock();
        let state = self.state(&mut guard);
        if !state.history.has_prompts() {
            return;
        }
        if state.history.last_state(&real_path).is_none() {
            state.snapshot(&self.dir, path.to_path_buf(), real_path.clone());
        }
        state.last_seen.remove(&real_path);
    }

    /// Takes a report of what could not be saved since the last call.
    pub fn take_loss_report(&self) -> Option<String> {
        let losses = std::mem::take(&mut self.lock().as_mut()?.losses);
        let more = losses.len().saturating_sub(MAX_LISTED_LOSSES);
        let mut lines: Vec<String> = losses.into_iter().take(MAX_LISTED_LOSSES).collect();
        if more > 0 {
            lines.push(format!("This also applies to {more} more files."));
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
    fn load(dir: &Path) -> Self {
        let (log, history, read) = CheckpointLog::load(dir);
        let losses = read.err().map(|error| {
            let path = record_log::log_path(dir);
            format!(
                "The checkpoints of earlier prompts cannot be read, so files cannot be restored to them: {}: {error}.",
                path.display()
            )
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

    /// Saves a tracked file again if its stamp has changed.
    fn snapshot_if_changed(&mut self, dir: &Path, version: FileVersion) {
        let now = match files::file_kind(&version.real_path) {
            Ok(FileKind::File(stamp)) => Some(stamp),
            Ok(FileKind::Missing) => None,
            Ok(_) | Err(_) => return,
        };
        if self.last_seen.get(&version.real_path) != Some(&now) {
            self.snapshot(dir, version.path, version.real_path);
        }
    }

    /// Saves the current state of a file, unless it is the last recorded one.
    fn snapshot(&mut self, dir: &Path, path: PathBuf, real_path: PathBuf) {
        if path.to_str().is_none() || real_path.to_str().is_none() {
            self.losses.push(render_loss(&path, "its path is not UTF-8"));
            return;
        }
        let free_bytes = blobs::MAX_TOTAL_SIZE.saturating_sub(self.stored_bytes);
        let Some(FileSnapshot { state, stamp, added_bytes }) =
            blobs::snapshot_file(dir, &real_path, free_bytes)
        else {
            return;
        };
        self.stored_bytes += added_bytes;
        match &state {
            FileState::NotSaved { reason, .. } => {
                let is_new = !matches!(self.history.last_state(&real_path), Some(FileState::NotSaved { .. }));
                is_new.then(|| self.losses.push(render_loss(&path, reason)));
            }
            FileState::Saved { .. } | FileState::Missing { .. } => {
                self.last_seen.insert(real_path.clone(), stamp);
            }
        }
        let is_known = match (self.history.last_state(&real_path), &state) {
            (Some(FileState::Missing { .. }), FileState::Missing { .. }) => true,
            (last, now) => last == Some(now),
        };
        if !is_known {
            self.record(CheckpointRecord::File { path, real_path, state });
        }
    }

    /// Records in memory and in the log. If the log cannot be written, the record lasts as long as the session.
    fn record(&mut self, record: CheckpointRecord) {
        if let Err(error) = self.log.append(&record)
            && !std::mem::replace(&mut self.log_failure_reported, true)
        {
            self.losses.push(format!(
                "Checkpoints cannot be saved ({error}): after this session ends, files cannot be restored to its prompts. Free \
                 disk space, or make the directory writable."
            ));
        }
        self.history.apply(record);
    }
}

fn render_loss(path: &Path, reason: &str) -> String {
    format!("{} was not saved ({reason}): a rewind cannot restore it.", path.display())
}
