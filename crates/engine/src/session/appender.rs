//! A file that only grows by whole lines. Each line is one write; one that fails or is cut short is taken back, kept, and
//! written again before the next one, so that the file never has a gap that could be closed. A file that somebody takes
//! away is written anew from what we still hold of it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::durability::Durability;
use super::append_file::{self, AppendFile};

/// How much is copied at once.
const COPY_CHUNK_SIZE: usize = 64 * 1024;

/// Opens a file, again after it has failed.
type FileOpener = Box<dyn FnMut(&Path) -> io::Result<Box<dyn AppendFile>> + Send>;

/// A file that lines are appended to. It is made, with its folders, by the first line.
pub struct Appender {
    path: PathBuf,
    open: FileOpener,
    file: Option<Box<dyn AppendFile>>,
    durability: Durability,
    /// Whether the file ends within a line that could not be taken back.
    ends_torn: bool,
    /// Lines that are not in the file yet.
    pending: VecDeque<Vec<u8>>,
    /// Lines that are, but perhaps not on the disk. Kept only where that matters.
    unsynced: Vec<Vec<u8>>,
    /// The file that lay at the path before somebody took it away; it can still be read.
    detached_file: Option<Box<dyn AppendFile>>,
    /// How long the file was when it was last seen at its path.
    last_seen_length: u64,
    /// Whether the file is new, and its name perhaps not on the disk.
    is_new: bool,
    /// Why others may write there too, if nobody was told yet.
    lock_error: Option<io::Error>,
}

impl Appender {
    /// An appender for a path; nothing is touched yet.
    pub fn new(path: PathBuf, durability: Durability) -> Self {
        Self::with_opener(path, durability, Box::new(|path| Ok(Box::new(append_file::open_for_append(path)?))))
    }

    /// An appender whose file is opened in a way of its own.
    pub(super) fn with_opener(path: PathBuf, durability: Durability, open: FileOpener) -> Self {
        let (pending, unsynced) = (VecDeque::new(), Vec::new());
        Self {
            path,
            open,
            file: None,
            durability,
            ends_torn: false,
            pending,
            unsynced,
            detached_file: None,
            last_seen_length: 0,
            is_new: false,
            lock_error: None,
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How safe the lines are to be.
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

    /// Why others may write to the file too, though they should not.
    pub fn take_lock_error(&mut self) -> Option<io::Error> {
        self.lock_error.take()
    }

    /// How many lines are not in the file yet.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Appends a line, its end included, after those that are owed. An error means that it is owed too.
    pub fn append(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.pending.push_back(line);
        self.write_pending()?;
        if self.durability == Durability::Strict { self.sync() } else { Ok(()) }
    }

    /// Ends a turn: everything is written, and on the disk if that is wanted.
    pub fn end_turn(&mut self) -> io::Result<()> {
        self.write_pending()?;
        if self.durability == Durability::System { Ok(()) } else { self.sync() }
    }

    /// Looks whether the file is still where it belongs. If somebody has removed or replaced it, what is missing there is
    /// written again, and that is true.
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

    /// Opens the file. What was lost is put there first: all of it, or what came since the file that lies there now was
    /// ours.
    fn open_and_restore(&mut self) -> io::Result<()> {
        let mut file = (self.open)(&self.path)?;
        let begin = file.length()?;
        self.is_new |= begin == 0;
        if let Some(lost) = &self.detached_file {
            let from = if begin == 0 { 0 } else { self.last_seen_length };
            if let Err(error) = copy_from_offset(lost.as_ref(), from, file.as_mut()) {
                // Half a copy would be taken for somebody else's file.
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

    /// Writes the lines that are owed.
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
        if self.ends_torn {
            write_or_roll_back(file.as_mut(), b"\n").map_err(|(error, _)| error)?;
            self.ends_torn = false;
        }
        write_or_roll_back(file.as_mut(), line).map_err(|(error, taken_back)| {
            self.ends_torn = !taken_back;
            error
        })
    }

    /// Forces the file onto the disk. After an error nobody knows what is there: the file is opened anew, and the lines are
    /// owed again. It stays ours meanwhile, if that can be.
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

impl std::fmt::Debug for Appender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Appender")
            .field("path", &self.path)
            .field("owes", &self.pending_count())
            .finish_non_exhaustive()
    }
}

/// Forces the name of a file that is new onto the disk, once.
fn sync_dir_entry_once(file: &mut dyn AppendFile, is_new: &mut bool, path: &Path) -> io::Result<()> {
    if *is_new {
        file.sync_dir_entry(path)?;
        *is_new = false;
    }
    Ok(())
}

/// Copies what lies beyond an offset.
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

/// Puts a line at the end, or nothing. The error says whether what was written of it could be taken back.
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

/// Takes the last bytes back, unless somebody has written after them.
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
