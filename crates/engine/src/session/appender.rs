//! A file that only grows: each line is one write, so that a reader never sees half of one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file that lines are appended to. It is made, with its folders, by the first line.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: Option<File>,
    torn: bool,
}

impl Appender {
    /// An appender for a path; nothing is touched yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, torn: false }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes in one write.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        // A line that was written in part is ended first, so that it does not spoil this one.
        let line = if self.torn { [b"\n", bytes].concat() } else { bytes.to_vec() };
        let written = file.write_all(&line);
        self.torn = written.is_err();
        written
    }
}

/// Only the user can read transcripts; a link at the path is not followed, and a pipe is not waited for.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the transcript's path is not a regular file",
        ));
    }
    Ok(file)
}
