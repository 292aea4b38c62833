//! Reads the head and tail of long files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::files::{FileStamp, open};

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
    let (file, stamp) = open(path)?;
    let head = read_range(&file, 0, each)?;
    let tail = match stamp.size.checked_sub(each as u64) {
        None | Some(0) => head.clone(),
        Some(start) => read_range(&file, start, each)?,
    };
    Ok(HeadTail { head, tail, stamp })
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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (bytes, head, tail) in
            [("", "", ""), ("abc", "abc", "abc"), ("abcd", "abcd", "abcd"), ("abcdef", "abcd", "cdef")]
        {
            std::fs::write(&path, bytes).unwrap();
            let found = read_head_tail(&path, 4).unwrap();
            assert_eq!((found.head.as_slice(), found.tail.as_slice()), (head.as_bytes(), tail.as_bytes()));
        }
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_head_tail(&dir.path().join("pipe"), 4).is_err());
    }
}
