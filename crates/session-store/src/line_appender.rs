//! Append-only file of whole lines. Each line is one write. A line whose write fails or is cut short is rolled back,
//! queued, and written again before the next one, so that the file has no gap once writing works again. If another
//! process removes or replaces the file, it is written again from the old file, which is still open.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use crate::append_file::{self, AppendFile};

const COPY_CHUNK_SIZE: usize = 64 * 1024;

/// When transcripts are synced to disk. This matters for power loss only: after a kill of the engine all written lines
/// are still in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system decides.
    #[default]
    System,
    /// Before the result of a turn is sent.
    Turn,
    /// Before each message is sent and before a tool call with effects runs; calls that cannot be recorded do not run.
    Strict,
}

impl Durability {
    /// Environment variable for this setting.
    pub const VARIABLE: &str = "WHIMBREL_DURABILITY";

    /// Parses the value of [`Self::VARIABLE`]. The error is a text for the user.
    pub fn parse(name: Option<&str>) -> Result<Self, String> {
        match name.map(str::trim) {
            None | Some("" | "none") => Ok(Self::System),
            Some("turn") => Ok(Self::Turn),
            Some("strict") => Ok(Self::Strict),
            Some(other) => Err(format!("{} must be none, turn or strict, but is {other:?}.", Self::VARIABLE)),
        }
    }
}

/// Opens the file, and opens it again after a failure.
type FileOpener = Box<dyn FnMut(&Path) -> io::Result<Box<dyn AppendFile>> + Send>;

/// Appends lines to a file. The first line creates the file and its parent directories.
pub struct LineAppender {
    path: PathBuf,
    open: FileOpener,
    file: Option<Box<dyn AppendFile>>,
    durability: Durability,
    /// The file ends in a partial line that could not be rolled back.
    ends_partial: bool,
    /// Lines not yet in the file.
    pending: VecDeque<Vec<u8>>,
    /// Lines written but not yet synced. Empty with [`Durability::System`].
    unsynced: Vec<Vec<u8>>,
    /// The file that was at the path before another process removed or replaced it; still readable.
    detached_file: Option<Box<dyn AppendFile>>,
    /// Length of the file when it was last seen at its path.
    last_seen_length: u64,
    /// The file is new, and its directory entry may not be synced yet.
    is_new: bool,
    /// Locking failed and the host has not been warned yet.
    lock_error: Option<io::Error>,
}

impl LineAppender {
    /// Creates an line_appender. The file is opened by the first write.
    pub fn new(path: PathBuf, durability: Durability) -> Self {
        Self::with_opener(
            path,
            durability,
            Box::new(|path| Ok(Box::new(append_file::open_for_append(path)?))),
        )
    }

    /// Creates an line_appender with its own function for opening the file.
    pub(super) fn with_opener(path: PathBuf, durability: Durability, open: FileOpener) -> Self {
        let (pending, unsynced) = (VecDeque::new(), Vec::new());
        Self {
            path,
            open,
            file: None,
            durability,
            ends_partial: false,
            pending,
            unsynced,
            detached_file: None,
            last_seen_length: 0,
            is_new: false,
            lock_error: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The file, if it is open.
    pub(super) fn open_file(&mut self) -> Option<&mut dyn AppendFile> {
        match &mut self.file {
            Some(file) => Some(file.as_mut()),
            None => None,
        }
    }

    /// Takes the error of a failed attempt to lock the file.
    pub fn take_lock_error(&mut self) -> Option<io::Error> {
        self.lock_error.take()
    }

    /// Number of lines not yet in the file.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Appends a line, including its newline, after the pending ones. After an error the line is pending.
    pub fn append(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.pending.push_back(line);
        self.write_pending()?;
        if self.durability == Durability::Strict { self.sync() } else { Ok(()) }
    }

    /// Offset of the last line, which has this length; `None` if it is pending.
    pub(super) fn last_line_offset(&mut self, length: usize) -> Option<u64> {
        let file = self.file.as_mut().filter(|_| self.pending.is_empty())?;
        file.position().ok()?.checked_sub(length as u64)
    }

    /// Overwrites bytes of a line with as many others. Does nothing if other bytes than expected are there, because
    /// another process replaced or changed the file. The change is synced with the next line.
    pub(super) fn overwrite(&mut self, offset: u64, expected: &[u8], bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut present = vec![0; expected.len()];
        if file.read_at(offset, &mut present)? != expected.len() || present != expected {
            return Ok(());
        }
        file.overwrite(&self.path, offset, bytes)
    }

    /// Ends a turn: writes the pending lines, and syncs unless durability is [`Durability::System`].
    pub fn end_turn(&mut self) -> io::Result<()> {
        self.write_pending()?;
        if self.durability == Durability::System { Ok(()) } else { self.sync() }
    }

    /// Checks that the open file is still the one at the path. If it was removed or replaced, writes the missing lines
    /// there and returns true.
    pub fn restore_if_detached(&mut self) -> io::Result<bool> {
        match &mut self.file {
            Some(file) if file.is_at(&self.path) => {
                self.last_seen_length = file.length()?;
                return Ok(false);
            }
            Some(_) => self.detached_file = self.file.take(),
            None if self.detached_file.is_none() => return Ok(false),
            None => {}
        }
        self.open_and_restore()?;
        if self.durability != Durability::System
            && let Some(file) = &mut self.file
        {
            file.sync()?;
            sync_dir_entry_once(file.as_mut(), &mut self.is_new, &self.path)?;
        }
        Ok(true)
    }

    /// Opens the file and first restores lines of the detached file: all of them into an empty file, else those after
    /// the length last seen.
    fn open_and_restore(&mut self) -> io::Result<()> {
        let mut file = (self.open)(&self.path)?;
        let begin = file.length()?;
        self.is_new |= begin == 0;
        if let Some(detached) = &self.detached_file {
            let from = if begin == 0 { 0 } else { self.last_seen_length };
            if let Err(error) = copy_from_offset(detached.as_ref(), from, file.as_mut()) {
                // A partial copy would later be taken for a foreign file.
                let _ = file.truncate(begin);
                return Err(error);
            }
        }
        self.detached_file = None;
        self.lock_error = file.take_lock_error().or(self.lock_error.take());
        self.last_seen_length = file.length()?;
        self.file = Some(file);
        Ok(())
    }

    fn write_pending(&mut self) -> io::Result<()> {
        while let Some(line) = self.pending.pop_front() {
            if let Err(error) = self.write(&line) {
                self.pending.push_front(line);
                return Err(error);
            }
            if self.durability != Durability::System {
                self.unsynced.push(line);
            }
        }
        Ok(())
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.open_and_restore()?;
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        if self.ends_partial {
            write_or_roll_back(file.as_mut(), b"\n").map_err(|(error, _)| error)?;
            self.ends_partial = false;
        }
        write_or_roll_back(file.as_mut(), line).map_err(|(error, rolled_back)| {
            self.ends_partial = !rolled_back;
            error
        })
    }

    /// Syncs the file. After an error the state on disk is unknown: the file is reopened, keeping its lock if possible,
    /// and the lines are pending again.
    fn sync(&mut self) -> io::Result<()> {
        let synced = match &mut self.file {
            Some(file) if !self.unsynced.is_empty() => {
                file.sync().and_then(|()| sync_dir_entry_once(file.as_mut(), &mut self.is_new, &self.path))
            }
            _ => Ok(()),
        };
        let lines = std::mem::take(&mut self.unsynced);
        if synced.is_err() {
            self.file = self.file.take().and_then(|mut file| file.reopen(&self.path).ok().map(|()| file));
            self.pending = lines.into_iter().chain(self.pending.drain(..)).collect();
        }
        synced
    }
}

impl std::fmt::Debug for LineAppender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineAppender")
            .field("path", &self.path)
            .field("owes", &self.pending_count())
            .finish_non_exhaustive()
    }
}

/// Syncs the directory entry of a new file, once.
fn sync_dir_entry_once(file: &mut dyn AppendFile, is_new: &mut bool, path: &Path) -> io::Result<()> {
    if *is_new {
        file.sync_dir_entry(path)?;
        *is_new = false;
    }
    Ok(())
}

/// Copies the bytes after an offset.
fn copy_from_offset(from: &dyn AppendFile, mut offset: u64, to: &mut dyn AppendFile) -> io::Result<()> {
    let mut piece = vec![0; COPY_CHUNK_SIZE];
    loop {
        match from.read_at(offset, &mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                write_or_roll_back(to, &piece[..count]).map_err(|(error, _)| error)?;
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes all bytes or none. The error says whether a partial write was rolled back.
fn write_or_roll_back(file: &mut dyn AppendFile, line: &[u8]) -> Result<(), (io::Error, bool)> {
    let mut done = 0;
    while done < line.len() {
        match file.write(&line[done..]) {
            Ok(0) => return Err((io::ErrorKind::WriteZero.into(), roll_back(file, done))),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((error, roll_back(file, done))),
        }
    }
    Ok(())
}

/// Truncates the last `count` bytes, unless another process has appended after them.
fn roll_back(file: &mut dyn AppendFile, count: usize) -> bool {
    if count == 0 {
        return true;
    }
    match (file.position(), file.length()) {
        (Ok(position), Ok(length)) if position == length => {
            file.truncate(length.saturating_sub(count as u64)).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
