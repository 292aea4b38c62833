//! The text that a file has before a Write, for the diff in the permission request. The call is not permitted yet, so the
//! path may be anything: only regular files are opened, and only small ones are read.

use std::fs::{File, OpenOptions, metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Largest file that is shown in a diff.
const MAX_BYTES: u64 = 1024 * 1024;

/// What is at the path of a Write.
#[derive(Debug, PartialEq)]
pub(crate) enum ExistingFile {
    Missing,
    Text(String),
    /// Not a regular file, too large, not UTF-8, or not readable.
    NotShown,
}

/// Reads the file at an absolute path. Does not block on special files.
pub(crate) fn read(path: &Path) -> ExistingFile {
    if !path.is_absolute() {
        return ExistingFile::NotShown;
    }
    match read_text(path) {
        Ok(text) => ExistingFile::Text(text),
        Err(error) if error.kind() == ErrorKind::NotFound => ExistingFile::Missing,
        Err(_) => ExistingFile::NotShown,
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let file = open_regular(path)?;
    let mut text = String::new();
    // One byte more shows that the file is too large, also if it grows meanwhile.
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(text),
    }
}

/// Opens a regular file. A device is not opened at all, because that may have an effect; a file that becomes a pipe
/// meanwhile does not block.
fn open_regular(path: &Path) -> io::Result<File> {
    if !metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("text"), "old\n").unwrap();
        fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(path("large"), vec![b'x'; MAX_BYTES as usize + 1]).unwrap();
        mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        let rows = [
            (path("text"), ExistingFile::Text("old\n".into())),
            (path("none"), ExistingFile::Missing),
            (path("bytes"), ExistingFile::NotShown),
            (path("large"), ExistingFile::NotShown),
            (path("pipe"), ExistingFile::NotShown),
            (path("link"), ExistingFile::NotShown),
            (dir.path().to_owned(), ExistingFile::NotShown),
            ("/dev/zero".into(), ExistingFile::NotShown),
            ("relative".into(), ExistingFile::NotShown),
        ];
        for (path, expected) in rows {
            assert_eq!(read(&path), expected, "{}", path.display());
        }
    }
}
