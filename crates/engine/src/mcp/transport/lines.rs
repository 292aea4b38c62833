//! A stream of bytes as lines, each up to a limit. Pure.

use std::ops::Range;

use memchr::memchr;

/// A buffer that had to grow beyond this is given back once it is empty.
const KEEP: usize = 256 * 1024;

/// Cuts bytes into lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the line under way begins.
    start: usize,
    /// Up to where it has been searched for its end.
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    pub(super) fn up_to(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, limit }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        Ok(self.find()?.map(|line| &self.buffer[line]))
    }

    fn find(&mut self) -> Result<Option<Range<usize>>, TooLong> {
        let found = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        let end = found.unwrap_or(self.buffer.len());
        if end - self.start > self.limit {
            return Err(TooLong);
        }
        let line = self.start..end;
        self.searched = found.map_or(end, |end| end + 1);
        if found.is_some() {
            self.start = self.searched;
        }
        Ok(found.map(|_| line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], limit: usize) -> Result<Vec<String>, TooLong> {
        let mut lines = Lines::up_to(limit);
        let mut all = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes());
            while let Some(line) = lines.next()? {
                all.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        Ok(all)
    }

    #[test]
    fn lines_come_out_however_they_came_in() {
        for pieces in [&["a\nbc\n\nd"][..], &["a", "\nb", "c\n", "\n", "d"], &["a\nb", "c\n\nd"]] {
            assert_eq!(lines(pieces, 10).unwrap(), ["a", "bc", ""], "{pieces:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_too_long() {
        assert_eq!(lines(&["1234\n", "1234", "5"], 4), Err(TooLong));
        assert_eq!(lines(&["12345\n"], 4), Err(TooLong));
        assert_eq!(lines(&["1234\n1234\n"], 4).unwrap().len(), 2);
    }

    #[test]
    fn much_room_is_given_back() {
        let mut lines = Lines::up_to(10 * KEEP);
        lines.push(&vec![b'x'; 2 * KEEP]);
        lines.push(b"\n");
        assert_eq!(lines.next().unwrap().unwrap().len(), 2 * KEEP);
        lines.push(b"y");
        assert!(lines.buffer.capacity() < KEEP);
    }
}
