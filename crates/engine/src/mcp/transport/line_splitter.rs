//! A stream of bytes as lines, each up to a limit. Pure.

use std::ops::Range;

use memchr::memchr;

/// A buffer that had to grow beyond this is given back once it is empty.
const MAX_IDLE_CAPACITY: usize = 256 * 1024;

/// Cuts bytes into lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    buffer: Vec<u8>,
    /// Where the line under way begins.
    start: usize,
    /// Up to where it has been searched for its end.
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineTooLongError;

impl LineSplitter {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, limit }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > MAX_IDLE_CAPACITY {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its end.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLongError> {
        Ok(self.find_line()?.map(|line| &self.buffer[line]))
    }

    fn find_line(&mut self) -> Result<Option<Range<usize>>, LineTooLongError> {
        let found = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        let end = found.unwrap_or(self.buffer.len());
        if end - self.start > self.limit {
            return Err(LineTooLongError);
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

    fn split_lines(pieces: &[&str], limit: usize) -> Result<Vec<String>, LineTooLongError> {
        let mut lines = LineSplitter::with_limit(limit);
        let mut all = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes());
            while let Some(line) = lines.next_line()? {
                all.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        Ok(all)
    }

    #[test]
    fn lines_come_out_however_they_came_in() {
        for pieces in [&["a\nbc\n\nd"][..], &["a", "\nb", "c\n", "\n", "d"], &["a\nb", "c\n\nd"]] {
            assert_eq!(split_lines(pieces, 10).unwrap(), ["a", "bc", ""], "{pieces:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_too_long() {
        assert_eq!(split_lines(&["1234\n", "1234", "5"], 4), Err(LineTooLongError));
        assert_eq!(split_lines(&["12345\n"], 4), Err(LineTooLongError));
        assert_eq!(split_lines(&["1234\n1234\n"], 4).unwrap().len(), 2);
    }

    #[test]
    fn much_room_is_given_back() {
        let mut lines = LineSplitter::with_limit(10 * MAX_IDLE_CAPACITY);
        lines.push(&vec![b'x'; 2 * MAX_IDLE_CAPACITY]);
        lines.push(b"\n");
        assert_eq!(lines.next_line().unwrap().unwrap().len(), 2 * MAX_IDLE_CAPACITY);
        lines.push(b"y");
        assert!(lines.buffer.capacity() < MAX_IDLE_CAPACITY);
    }
}
