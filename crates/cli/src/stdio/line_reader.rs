//! Splits bytes into lines, in linear time and with bounded memory.

use std::io::{self, Read};

/// Size of a read, and of the buffer space that is kept between lines.
const CHUNK_SIZE: usize = 64 * 1024;

/// Next item of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine<'a> {
    /// A line without its end.
    Complete(&'a [u8]),
    /// A line over the limit; it was skipped without being buffered.
    TooLong,
    /// Bytes after the last line end.
    Partial(&'a [u8]),
    /// The input has ended.
    End,
}

/// Reads lines from a source.
pub(super) struct LineReader<R> {
    source: R,
    limit: usize,
    /// Bytes that were read; only `start..end` is content.
    buffer: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// End of the part that is known to have no line end.
    scanned: usize,
    end: usize,
    /// True inside a line that is too long.
    skipping: bool,
}

impl<R: Read> LineReader<R> {
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self { source, limit, buffer: vec![0; CHUNK_SIZE], start: 0, scanned: 0, end: 0, skipping: false }
    }

    /// Returns the next line. An error of the source ends the input.
    pub(super) fn next(&mut self) -> io::Result<InputLine<'_>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let line = self.start..self.scanned + at;
                self.start = line.end + 1;
                self.scanned = self.start;
                let skipped = std::mem::take(&mut self.skipping) || line.len() > self.limit;
                return Ok(if skipped {
                    InputLine::TooLong
                } else {
                    InputLine::Complete(strip_carriage_return(&self.buffer[line]))
                });
            }
            self.reserve_chunk();
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(self.finish()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves the unfinished line to the front, or drops it if it is too long, and makes room for another chunk.
    fn reserve_chunk(&mut self) {
        if self.end - self.start > self.limit {
            self.skipping = true;
        }
        if self.skipping {
            self.start = self.end;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        (self.start, self.scanned) = (0, self.end);
        if self.buffer.len() > 16 * CHUNK_SIZE && self.end < CHUNK_SIZE {
            self.buffer = self.buffer[..2 * CHUNK_SIZE].to_vec();
        }
        if self.buffer.len() - self.end < CHUNK_SIZE {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn finish(&mut self) -> InputLine<'_> {
        let left = self.start..self.end;
        (self.start, self.scanned, self.end) = (0, 0, 0);
        match (std::mem::take(&mut self.skipping), left.is_empty()) {
            (true, _) => InputLine::TooLong,
            (false, true) => InputLine::End,
            (false, false) => InputLine::Partial(&self.buffer[left]),
        }
    }
}

fn strip_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns its bytes in pieces of a given size.
    struct ChunkedReader<'a>(&'a [u8], usize);

    impl Read for ChunkedReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn describe(line: &InputLine<'_>) -> String {
        match line {
            InputLine::Complete(text) => String::from_utf8_lossy(text).into_owned(),
            InputLine::TooLong => "<too long>".into(),
            InputLine::Partial(text) => format!("<half {}>", text.len()),
            InputLine::End => "<end>".into(),
        }
    }

    fn read_all(input: &str, piece: usize, limit: usize) -> Vec<String> {
        let mut lines = LineReader::new(ChunkedReader(input.as_bytes(), piece), limit);
        let mut seen = Vec::new();
        loop {
            let line = lines.next().unwrap();
            seen.push(describe(&line));
            if line == InputLine::End {
                return seen;
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_read_boundaries() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &["<end>"]),
            ("a\nb\n", &["a", "b", "<end>"]),
            ("a\r\nb\r\n", &["a", "b", "<end>"]),
            ("\n\na\n", &["", "", "a", "<end>"]),
            ("a\nhalf", &["a", "<half 4>", "<end>"]),
            ("12345678\n123456789\nb\n", &["12345678", "<too long>", "b", "<end>"]),
            ("a\n123456789012345678901234567890", &["a", "<too long>", "<end>"]),
            ("ä\nß\n", &["ä", "ß", "<end>"]),
        ];
        for (input, expected) in rows {
            for piece in 1..12 {
                assert_eq!(read_all(input, piece, 8), expected, "{input:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn giant_line_is_read_and_its_memory_released() {
        let input = format!("{}\nsmall\n", "x".repeat(5_000_000));
        let mut lines = LineReader::new(ChunkedReader(input.as_bytes(), usize::MAX), 64 << 20);
        assert_eq!(lines.next().unwrap(), InputLine::Complete(&input.as_bytes()[..5_000_000]));
        assert_eq!(lines.next().unwrap(), InputLine::Complete(b"small"));
        assert_eq!(lines.next().unwrap(), InputLine::End);
        assert!(lines.buffer.len() <= 2 * CHUNK_SIZE);
    }

    #[test]
    fn overlong_line_is_skipped_without_buffering() {
        let input = format!("{}\nnext\n", "x".repeat(40 * CHUNK_SIZE));
        let mut lines = LineReader::new(ChunkedReader(input.as_bytes(), CHUNK_SIZE), 4 * CHUNK_SIZE);
        assert_eq!(lines.next().unwrap(), InputLine::TooLong);
        assert!(lines.buffer.len() <= 16 * CHUNK_SIZE, "{}", lines.buffer.len());
        assert_eq!(lines.next().unwrap(), InputLine::Complete(b"next"));
    }
}
