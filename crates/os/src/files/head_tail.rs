//! Reads the head and tail of long files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::files::FileStamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadTail {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; the same as the first in a short file.
    pub tail: Vec<u8>,
    pub stamp: FileStamp,
}

/// Reads at most `each` bytes at both ends of a regular file.
pub fn read_head_tail(path: &Path, each: usize) -> io::Result<HeadTail> {
    let (file, stamp) = open_regular(path)?;
    let head = read_range(&file, 0, each)?;
    let tail = match stamp.size.checked_sub(each as u64) {
        None | Some(0) => head.clone(),
        Some(start) => read_range(&file, start, each)?,
    };
    Ok(HeadTail { head, tail, stamp })
}

/// Opens a regular file for positioned reads. Does not block on a pipe; that is an error.
pub fn open_regular(path: &Path) -> io::Result<(File, FileStamp)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let stamp = FileStamp::from_metadata(&metadata);
    Ok((file, stamp))
}

/// Reads a range; shorter at the end of the file.
pub fn read_range(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for (bytes, head, tail) in
            [("", "", ""), ("abc", "abc", "abc"), ("abcd", "abcd", "abcd"), ("abcdef", "abcd", "cdef")]
        {
            std::fs::write(&path, bytes).unwrap();
            let found = read_head_tail(&path, 4).unwrap();
            assert_eq!((found.head.as_slice(), found.tail.as_slice()), (head.as_bytes(), tail.as_bytes()));
        }
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_head_tail(&folder.path().join("pipe"), 4).is_err());
    }
}
