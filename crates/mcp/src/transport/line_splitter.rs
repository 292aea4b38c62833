//! Splits a byte stream into lines with a maximum length. Pure.

use std::ops::Range;

use memchr::memchr;

/// A larger buffer is freed once it is empty.
const MAX_IDLE_CAPACITY: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct LineSplitter {
    buffer: Vec<u8>,
    /// Start of the current line.
    start: usize,
    /// End of the part already searched for a line break.
    searched: usize,
    limit: usize,
}

/// A line exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineTooLongError;

impl LineSplitter {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, limit }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > MAX_IDLE_CAPACITY {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Next complete line, without its line break.
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
    fn lines_do_not_depend_on_chunks() {
        for pieces in [&["a\nbc\n\nd"][..], &["a", "\nb", "c\n", "\n", "d"], &["a\nb", "c\n\nd"]] {
            assert_eq!(split_lines(pieces, 10).unwrap(), ["a", "bc", ""], "{pieces:?}");
        }
    }

    #[test]
    fn an_endless_line_is_an_error() {
        assert_eq!(split_lines(&["1234\n", "1234", "5"], 4), Err(LineTooLongError));
        assert_eq!(split_lines(&["12345\n"], 4), Err(LineTooLongError));
        assert_eq!(split_lines(&["1234\n1234\n"], 4).unwrap().len(), 2);
    }

    #[test]
    fn a_large_buffer_is_freed() {
        let mut lines = LineSplitter::with_limit(10 * MAX_IDLE_CAPACITY);
        lines.push(&vec![b'x'; 2 * MAX_IDLE_CAPACITY]);
        lines.push(b"\n");
        assert_eq!(lines.next_line().unwrap().unwrap().len(), 2 * MAX_IDLE_CAPACITY);
        lines.push(b"y");
        assert!(lines.buffer.capacity() < MAX_IDLE_CAPACITY);
    }
}
