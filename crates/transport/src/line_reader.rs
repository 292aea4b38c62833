//! Splits a byte stream into lines, in linear time and with bounded memory. The source is blocking or async.

use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Size of a read, and of the buffer space that is kept between lines.
const CHUNK_SIZE: usize = 64 * 1024;

/// Next item of a stream of lines.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end.
    Complete(&'a [u8]),
    /// A line over the limit; it was skipped without being buffered.
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
        while !self.buffer.has_line() {
            match self.source.read(self.buffer.free_space()) {
                Ok(0) => return Ok(self.buffer.finish()),
                Ok(read) => self.buffer.add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.buffer.take_line())
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Returns the next line. An error of the source ends the stream. Cancel safe: a partly read line stays in the
    /// buffer if the future is dropped.
    pub async fn next_line_async(&mut self) -> io::Result<Line<'_>> {
        while !self.buffer.has_line() {
            match self.source.read(self.buffer.free_space()).await {
                Ok(0) => return Ok(self.buffer.finish()),
                Ok(read) => self.buffer.add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.buffer.take_line())
    }
}

/// Bytes that were read and not yet returned.
#[derive(Debug)]
struct LineBuffer {
    limit: usize,
    /// Only `start..end` is content.
    bytes: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// End of the part that is known to have no line end.
    scanned: usize,
    /// True if there is a line end at `scanned`.
    has_line: bool,
    end: usize,
    /// True inside a line that is too long.
    skipping: bool,
}

impl LineBuffer {
    fn new(limit: usize) -> Self {
        let bytes = vec![0; CHUNK_SIZE];
        Self { limit, bytes, start: 0, scanned: 0, has_line: false, end: 0, skipping: false }
    }

    /// Returns whether there is a complete line, and scans the bytes that were added since the last call.
    fn has_line(&mut self) -> bool {
        if !self.has_line {
            let found = memchr::memchr(b'\n', &self.bytes[self.scanned..self.end]);
            self.has_line = found.is_some();
            self.scanned = found.map_or(self.end, |offset| self.scanned + offset);
        }
        self.has_line
    }

    /// Takes the line that [`Self::has_line`] has found.
    fn take_line(&mut self) -> Line<'_> {
        let line = self.start..self.scanned;
        self.start = line.end + 1;
        self.scanned = self.start;
        self.has_line = false;
        if std::mem::take(&mut self.skipping) || line.len() > self.limit {
            return Line::TooLong;
        }
        let line = &self.bytes[line];
        Line::Complete(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Moves the unfinished line to the front, or drops it if it is too long, and returns space for another chunk.
    fn free_space(&mut self) -> &mut [u8] {
        if self.end - self.start > self.limit {
            self.skipping = true;
        }
        if self.skipping {
            self.start = self.end;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        (self.start, self.scanned) = (0, self.end);
        if self.bytes.len() > 16 * CHUNK_SIZE && self.end < CHUNK_SIZE {
            self.bytes = self.bytes[..2 * CHUNK_SIZE].to_vec();
        }
        if self.bytes.len() - self.end < CHUNK_SIZE {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Adds bytes that were read into [`Self::free_space`].
    fn add(&mut self, read: usize) {
        self.end += read;
    }

    /// Returns what is left at the end of the stream.
    fn finish(&mut self) -> Line<'_> {
        let rest = self.start..self.end;
        (self.start, self.scanned, self.end) = (0, 0, 0);
        match (std::mem::take(&mut self.skipping), rest.is_empty()) {
            (true, _) => Line::TooLong,
            (false, true) => Line::End,
            (false, false) => Line::Partial(&self.bytes[rest]),
        }
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
            }
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
