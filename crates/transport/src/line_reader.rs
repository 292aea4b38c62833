//! Splits a byte stream into lines, in linear time and with bounded memory. The source is blocking, async, or pushes its
//! bytes.

use std::io::{self, Read};
use std::ops::Range;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Size of a read, and of the buffer space that is kept between lines.
const CHUNK_SIZE: usize = 64 * 1024;

/// Size up to which an empty [`LineBuffer`] keeps its memory.
const MAX_EMPTY_CAPACITY: usize = 4 * CHUNK_SIZE;

/// Next item of a stream of lines.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end.
    Complete(&'a [u8]),
    /// A line exceeds the limit. Returned as soon as that is known; the line is skipped without being buffered.
    TooLong,
    /// Bytes after the last line end.
    Partial(&'a [u8]),
    /// The stream has ended.
    End,
}

/// Reads lines from a source.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: LineBuffer,
}

impl<R> LineReader<R> {
    /// Creates a reader that skips lines of more than `limit` bytes.
    pub fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: LineBuffer::new(limit) }
    }
}

impl<R: Read> LineReader<R> {
    /// Returns the next line. An error of the source ends the stream.
    pub fn next_line(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.buffer.find_line() {
                return Ok(self.buffer.line(found));
            }
            match self.source.read(self.buffer.free_space()) {
                Ok(0) => return Ok(self.buffer.finish()),
                Ok(read) => self.buffer.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Returns the next line. An error of the source ends the stream. Cancel safe: a partly read line stays in the
    /// buffer if the future is dropped. Lets other tasks run now and then, also if the buffer holds thousands of lines.
    pub async fn next_line_async(&mut self) -> io::Result<Line<'_>> {
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(found) = self.buffer.find_line() {
                return Ok(self.buffer.line(found));
            }
            match self.source.read(self.buffer.free_space()).await {
                Ok(0) => return Ok(self.buffer.finish()),
                Ok(read) => self.buffer.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Bytes that were received and not yet returned as lines. For sources that deliver their bytes in chunks; the others
/// use [`LineReader`].
#[derive(Debug)]
pub struct LineBuffer {
    limit: usize,
    /// Only `start..end` is content.
    bytes: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// End of the part that is known to have no line end.
    scanned: usize,
    end: usize,
    /// True inside a line that is too long.
    skipping: bool,
}

/// A line in the buffer.
enum FoundLine {
    Complete(Range<usize>),
    TooLong,
}

impl LineBuffer {
    /// Creates a buffer that skips lines of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), start: 0, scanned: 0, end: 0, skipping: false }
    }

    /// Adds bytes. All complete lines should be taken before the next call.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.free_space();
            let (fitting, rest) = bytes.split_at(bytes.len().min(space.len()));
            space[..fitting.len()].copy_from_slice(fitting);
            self.end += fitting.len();
            bytes = rest;
        }
    }

    /// Returns the next complete or too long line, if there is one. Otherwise frees the memory of a large line, if
    /// nothing is left: the next bytes may arrive much later.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        match self.find_line() {
            Some(found) => Some(self.line(found)),
            None => {
                if self.start == self.end && self.bytes.capacity() > MAX_EMPTY_CAPACITY {
                    self.bytes = Vec::new();
                    (self.start, self.scanned, self.end) = (0, 0, 0);
                }
                None
            }
        }
    }

    /// Finds the next line and advances past it.
    fn find_line(&mut self) -> Option<FoundLine> {
        while let Some(offset) = memchr::memchr(b'\n', &self.bytes[self.scanned..self.end]) {
            let line = self.start..self.scanned + offset;
            self.start = line.end + 1;
            self.scanned = self.start;
            match std::mem::take(&mut self.skipping) {
                true => {}
                false if line.len() > self.limit => return Some(FoundLine::TooLong),
                false => return Some(FoundLine::Complete(line)),
            }
        }
        self.scanned = self.end;
        if self.skipping {
            self.start = self.end;
            return None;
        }
        if self.end - self.start > self.limit {
            self.start = self.end;
            self.skipping = true;
            return Some(FoundLine::TooLong);
        }
        None
    }

    fn line(&self, found: FoundLine) -> Line<'_> {
        match found {
            FoundLine::Complete(line) => {
                let line = &self.bytes[line];
                Line::Complete(line.strip_suffix(b"\r").unwrap_or(line))
            }
            FoundLine::TooLong => Line::TooLong,
        }
    }

    /// Moves the unfinished line to the front and returns space for another chunk.
    fn free_space(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.len() > 16 * CHUNK_SIZE && self.end < CHUNK_SIZE {
            self.bytes = self.bytes[..2 * CHUNK_SIZE].to_vec();
        }
        if self.bytes.len() - self.end < CHUNK_SIZE {
            self.bytes.resize((self.bytes.len() * 2).max(CHUNK_SIZE), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Returns what is left at the end of the stream. If the source delivers more later, that is a new line.
    fn finish(&mut self) -> Line<'_> {
        let rest = self.start..self.end;
        (self.start, self.scanned, self.end) = (0, 0, 0);
        self.skipping = false;
        if rest.is_empty() { Line::End } else { Line::Partial(&self.bytes[rest]) }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    /// Source that returns its bytes in pieces of a given size; the async one is pending before each piece.
    struct ChunkedSource<'a> {
        bytes: &'a [u8],
        piece: usize,
        is_ready: bool,
    }

    impl<'a> ChunkedSource<'a> {
        fn new(bytes: &'a [u8], piece: usize) -> Self {
            Self { bytes, piece, is_ready: false }
        }
    }

    impl Read for ChunkedSource<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.piece.min(self.bytes.len()).min(buffer.len());
            buffer[..read].copy_from_slice(&self.bytes[..read]);
            self.bytes = &self.bytes[read..];
            Ok(read)
        }
    }

    impl AsyncRead for ChunkedSource<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.is_ready = !self.is_ready;
            if self.is_ready {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let read = Read::read(&mut *self, buffer.initialize_unfilled())?;
            buffer.advance(read);
            Poll::Ready(Ok(()))
        }
    }

    fn describe(line: &Line<'_>) -> String {
        match line {
            Line::Complete(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong => "<too long>".into(),
            Line::Partial(text) => format!("<partial {}>", text.len()),
            Line::End => "<end>".into(),
        }
    }

    fn read_all(input: &str, piece: usize, limit: usize) -> Vec<String> {
        let mut lines = LineReader::new(ChunkedSource::new(input.as_bytes(), piece), limit);
        let mut all = Vec::new();
        while all.last().is_none_or(|line| line != "<end>") {
            all.push(describe(&lines.next_line().unwrap()));
        }
        all
    }

    /// Reads like [`read_all`], but drops the future whenever it is pending.
    fn read_all_async(input: &str, piece: usize, limit: usize) -> Vec<String> {
        let mut lines = LineReader::new(ChunkedSource::new(input.as_bytes(), piece), limit);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut all = Vec::new();
        while all.last().is_none_or(|line| line != "<end>") {
            if let Poll::Ready(line) = std::pin::pin!(lines.next_line_async()).poll(&mut context) {
                all.push(describe(&line.unwrap()));
            }
        }
        all
    }

    /// Pushes the pieces instead of reading them; what is left at the end is not returned.
    fn push_all(input: &str, piece: usize, limit: usize) -> Vec<String> {
        let mut lines = LineBuffer::new(limit);
        let mut all = Vec::new();
        for bytes in input.as_bytes().chunks(piece) {
            lines.push(bytes);
            while let Some(line) = lines.next_line() {
                all.push(describe(&line));
            }
        }
        all
    }

    #[tokio::test]
    async fn flood_of_short_lines_lets_other_tasks_run() {
        let bytes = b"x\n".repeat(10_000);
        let mut lines = LineReader::new(bytes.as_slice(), 100);
        let other = tokio::spawn(async {});
        while lines.next_line_async().await.unwrap() != Line::End {}
        assert!(other.is_finished());
    }

    #[test]
    fn lines_do_not_depend_on_read_boundaries() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &["<end>"]),
            ("a\nb\n", &["a", "b", "<end>"]),
            ("a\r\nb\r\n", &["a", "b", "<end>"]),
            ("\n\na\n", &["", "", "a", "<end>"]),
            ("a\nhalf", &["a", "<partial 4>", "<end>"]),
            ("12345678\n123456789\nb\n", &["12345678", "<too long>", "b", "<end>"]),
            ("a\n123456789012345678901234567890", &["a", "<too long>", "<end>"]),
            ("ä\nß\n", &["ä", "ß", "<end>"]),
        ];
        for (input, expected) in rows {
            for piece in 1..12 {
                assert_eq!(read_all(input, piece, 8), expected, "{input:?} in pieces of {piece}");
                assert_eq!(
                    read_all_async(input, piece, 8),
                    expected,
                    "async: {input:?} in pieces of {piece}"
                );
                let pushed = expected.iter().filter(|line| **line != "<end>" && !line.contains("partial"));
                assert_eq!(
                    push_all(input, piece, 8),
                    pushed.copied().collect::<Vec<_>>(),
                    "pushed: {input:?} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn endless_line_is_reported_before_its_end() {
        let mut lines = LineBuffer::new(4);
        lines.push(b"1234");
        assert_eq!(lines.next_line(), None);
        lines.push(b"5");
        assert_eq!(lines.next_line(), Some(Line::TooLong));
        lines.push(b"67");
        assert_eq!(lines.next_line(), None);
        lines.push(b"8\nok\n");
        assert_eq!(lines.next_line(), Some(Line::Complete(b"ok")));
    }

    #[test]
    fn source_that_continues_after_its_end_starts_a_new_line() {
        for (rest, at_end) in [("123456789", Line::End), ("1234", Line::Partial(b"1234"))] {
            let mut lines = LineReader::new(ChunkedSource::new(rest.as_bytes(), 3), 8);
            if at_end == Line::End {
                assert_eq!(lines.next_line().unwrap(), Line::TooLong, "{rest}");
            }
            assert_eq!(lines.next_line().unwrap(), at_end, "{rest}");
            lines.source = ChunkedSource::new(b"new\n", 3);
            assert_eq!(lines.next_line().unwrap(), Line::Complete(b"new"), "{rest}");
        }
    }

    #[test]
    fn empty_push_buffer_releases_the_memory_of_a_large_line() {
        let rows = [
            ("a small line", 10, "", CHUNK_SIZE),
            ("a large line", 300_000, "", 0),
            ("a large line, then part of another", 300_000, "part", 8 * CHUNK_SIZE),
            ("a line beyond the limit", 700_000, "", 0),
        ];
        for (name, length, rest, expected) in rows {
            let mut lines = LineBuffer::new(500_000);
            lines.push(format!("{}\n{rest}", "x".repeat(length)).as_bytes());
            assert!(lines.next_line().is_some(), "{name}");
            assert_eq!(lines.next_line(), None, "{name}");
            assert_eq!(lines.bytes.len(), expected, "{name}");
            lines.push(b"ed\nnext\n");
            assert_eq!(lines.next_line(), Some(Line::Complete(format!("{rest}ed").as_bytes())), "{name}");
            assert_eq!(lines.next_line(), Some(Line::Complete(b"next")), "{name}");
        }
    }

    #[test]
    fn giant_line_is_read_and_its_memory_released() {
        let input = format!("{}\nsmall\n", "x".repeat(5_000_000));
        let mut lines = LineReader::new(ChunkedSource::new(input.as_bytes(), usize::MAX), 64 << 20);
        assert_eq!(lines.next_line().unwrap(), Line::Complete(&input.as_bytes()[..5_000_000]));
        assert_eq!(lines.next_line().unwrap(), Line::Complete(b"small"));
        assert_eq!(lines.next_line().unwrap(), Line::End);
        assert!(lines.buffer.bytes.len() <= 2 * CHUNK_SIZE);
    }

    #[test]
    fn overlong_line_is_skipped_without_buffering() {
        let input = format!("{}\nnext\n", "x".repeat(40 * CHUNK_SIZE));
        let mut lines = LineReader::new(ChunkedSource::new(input.as_bytes(), CHUNK_SIZE), 4 * CHUNK_SIZE);
        assert_eq!(lines.next_line().unwrap(), Line::TooLong);
        assert!(lines.buffer.bytes.len() <= 16 * CHUNK_SIZE, "{}", lines.buffer.bytes.len());
        assert_eq!(lines.next_line().unwrap(), Line::Complete(b"next"));
    }
}
