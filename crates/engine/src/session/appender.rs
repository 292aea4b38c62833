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
}

impl Appender {
    /// An appender for a path; nothing is touched yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
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
        file.write_all(bytes)
    }
}

/// Only the user can read transcripts; a link at the path is not followed.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let no_follow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(path)
}
