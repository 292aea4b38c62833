//! Checkpoints of files: before a tool first changes a file, its content is kept, so that a host can have the files back
//! as they were when a prompt came.
//!
//! Only files that the file tools change are watched, from their first change on. When a prompt comes, each of them that
//! looks changed is kept again, whoever changed it. What a command does to other files is not seen.
//!
//! Rooms: `history` (what is known, pure), `journal` (the same on disk), `copies` (the bytes), `rewind` (putting
//! them back). All of it is disk work: callers run it beside the async threads.

mod copies;
mod history;
mod journal;
mod rewind;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use rewind::{Rewound, Wish};

use crate::files::{self, Kind, Stamp};
use crate::permission::paths;
use copies::Found;
use history::{History, Past, Record, State};
use journal::Journal;

/// How many losses are told one by one.
const TOLD: usize = 5;

/// Where the checkpoints of a session lie, below the folder of settings.
pub fn folder(config: &Path, session: &str) -> PathBuf {
    config.join("file-history").join(session)
}

/// The checkpoints of one session.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    book: Mutex<Option<Book>>,
}

/// What is known, read from disk when it is first needed.
#[derive(Debug)]
struct Book {
    history: History,
    journal: Journal,
    /// Files as they were last looked at; one that is not in here must be looked at again.
    looked: HashMap<PathBuf, Option<Stamp>>,
    kept_bytes: u64,
    losses: Vec<String>,
    /// Whether it was told that the journal cannot be written.
    journal_lost: bool,
}

impl Checkpoints {
    /// The checkpoints that lie, or will lie, in a folder. Nothing is touched yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, book: Mutex::default() }
    }

    /// Takes over the checkpoints of the session that this one is a fork of, before anything is asked of this one. Copies
    /// are linked, not doubled.
    pub fn inherit(&self, from: &Path) -> io::Result<()> {
        for name in files::names(from, usize::MAX) {
            if !journal::is_journal(&name) {
                files::private_folder(&self.folder)?;
                files::link(&from.join(&name), &self.folder.join(&name))?;
            }
        }
        journal::copy(from, &self.folder)
    }

    /// A prompt has come: whatever is watched is kept as it is now.
    pub fn begin(&self, prompt: &str) {
        let mut guard = self.lock();
        let book = self.book(&mut guard);
        book.write(Record::Prompt { id: prompt.to_owned() });
        for past in book.history.all() {
            book.look_again(&self.folder, past);
        }
    }

    /// A tool is about to change a file: it is kept if it is not watched yet.
    pub fn before_change(&self, path: &Path) {
        let place = paths::real(path);
        let mut guard = self.lock();
        let book = self.book(&mut guard);
        if !book.history.has_begun() {
            return;
        }
        if book.history.last(&place).is_none() {
            book.keep(&self.folder, path.to_path_buf(), place.clone());
        }
        book.looked.remove(&place);
    }

    /// What could not be kept since this was last asked, in words.
    pub fn take_losses(&self) -> Option<String> {
        let losses = std::mem::take(&mut self.lock().as_mut()?.losses);
        let more = losses.len().saturating_sub(TOLD);
        let mut lines: Vec<String> = losses.into_iter().take(TOLD).collect();
        if more > 0 {
            lines.push(format!("The same is true of {more} more files."));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Book>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book<'a>(&self, guard: &'a mut MutexGuard<'_, Option<Book>>) -> &'a mut Book {
        guard.get_or_insert_with(|| Book::load(&self.folder))
    }
}

impl Book {
    fn load(folder: &Path) -> Self {
        let (journal, history, read) = Journal::load(folder);
        let losses = read.err().map(|error| {
            let path = journal::path(folder);
            format!("The checkpoints of earlier prompts cannot be read, so files cannot be put back to them: {}: {error}.", path.display())
        });
        Self {
            kept_bytes: history.kept_bytes(),
            history,
            journal,
            looked: HashMap::new(),
            losses: losses.into_iter().collect(),
            journal_lost: false,
        }
    }

    /// Keeps a watched file again if it looks changed.
    fn look_again(&mut self, folder: &Path, past: Past) {
        let now = match files::kind(&past.place) {
            Ok(Kind::File(stamp)) => Some(stamp),
            Ok(Kind::Missing) => None,
            Ok(_) | Err(_) => return,
        };
        if self.looked.get(&past.place) != Some(&now) {
            self.keep(folder, past.path, past.place);
        }
    }

    /// Keeps a file as it is now, unless that is known.
    fn keep(&mut self, folder: &Path, path: PathBuf, place: PathBuf) {
        if path.to_str().is_none() || place.to_str().is_none() {
            self.losses.push(loss(&path, "its path is not UTF-8"));
            return;
        }
        let room = copies::ROOM.saturating_sub(self.kept_bytes);
        let Some(Found { state, stamp, grown }) = copies::keep(folder, &place, room) else { return };
        self.kept_bytes += grown;
        match &state {
            State::NotKept { why, .. } => {
                let is_new = !matches!(self.history.last(&place), Some(State::NotKept { .. }));
                is_new.then(|| self.losses.push(loss(&path, why)));
            }
            State::Kept { .. } | State::Missing { .. } => {
                self.looked.insert(place.clone(), stamp);
            }
        }
        let is_known = match (self.history.last(&place), &state) {
            (Some(State::Missing { .. }), State::Missing { .. }) => true,
            (last, now) => last == Some(now),
        };
        if !is_known {
            self.write(Record::File { path, place, state });
        }
    }

    /// Takes a record in and writes it down. What cannot be written is still known as long as the session lives.
    fn write(&mut self, record: Record) {
        if let Err(error) = self.journal.append(&record)
            && !std::mem::replace(&mut self.journal_lost, true)
        {
            self.losses.push(format!(
                "Checkpoints cannot be written down ({error}): once this session has ended, files cannot be put back to its prompts. Make room, or make the folder writable."
            ));
        }
        self.history.take(record);
    }
}

fn loss(path: &Path, why: &str) -> String {
    format!("No copy of {} was kept ({why}): rewinding will not bring it back.", path.display())
}
