//! Bytes to lines, in linear time and with bounded memory.

use std::io::{self, Read};

/// How much is read at once, and how much room is kept between lines.
const CHUNK: usize = 64 * 1024;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// A line over the limit. It was skipped to its end without being kept.
    TooLong,
    /// What came after the last line end.
    Half(&'a [u8]),
    /// The input has ended.
    End,
}

/// Lines of a source.
pub(super) struct Lines<R> {
    source: R,
    limit: usize,
    /// What was read; all of it is valid memory, only `start..end` is content.
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no line end.
    scanned: usize,
    end: usize,
    /// Within a line that is too long.
    skipping: bool,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self { source, limit, buffer: vec![0; CHUNK], start: 0, scanned: 0, end: 0, skipping: false }
    }

    /// The next line. An error of the source ends the input as far as lines are concerned.
    pub(super) fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let line = self.start..self.scanned + at;
                self.start = line.end + 1;
                self.scanned = self.start;
                let skipped = std::mem::take(&mut self.skipping) || line.len() > self.limit;
                return Ok(if skipped {
                    Line::TooLong
                } else {
                    Line::Whole(without_return(&self.buffer[line]))
                });
            }
            self.make_room();
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(self.finish()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves the unfinished line to the front, or drops it if it is too long, and sees to it that a chunk fits behind.
    fn make_room(&mut self) {
        if self.end - self.start > self.limit {
            self.skipping = true;
        }
        if self.skipping {
            self.start = self.end;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        (self.start, self.scanned) = (0, self.end);
        if self.buffer.len() > 16 * CHUNK && self.end < CHUNK {
            self.buffer = self.buffer[..2 * CHUNK].to_vec();
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn finish(&mut self) -> Line<'_> {
        let left = self.start..self.end;
        (self.start, self.scanned, self.end) = (0, 0, 0);
        match (std::mem::take(&mut self.skipping), left.is_empty()) {
            (true, _) => Line::TooLong,
            (false, true) => Line::End,
            (false, false) => Line::Half(&self.buffer[left]),
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of a certain size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn shown(line: &Line<'_>) -> String {
        match line {
            Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong => "<too long>".into(),
            Line::Half(text) => format!("<half {}>", text.len()),
            Line::End => "<end>".into(),
        }
    }

    fn all(input: &str, piece: usize, limit: usize) -> Vec<String> {
        let mut lines = Lines::new(Pieces(input.as_bytes(), piece), limit);
        let mut seen = Vec::new();
        loop {
            let line = lines.next().unwrap();
            seen.push(shown(&line));
            if line == Line::End {
                return seen;
            }
        }
    }

    #[test]
    fn lines_are_the_same_wherever_the_input_is_split() {
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
                assert_eq!(all(input, piece, 8), expected, "{input:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_giant_line_is_read_whole_and_its_memory_given_back() {
        let input = format!("{}\nsmall\n", "x".repeat(5_000_000));
        let mut lines = Lines::new(Pieces(input.as_bytes(), usize::MAX), 64 << 20);
        assert_eq!(lines.next().unwrap(), Line::Whole(&input.as_bytes()[..5_000_000]));
        assert_eq!(lines.next().unwrap(), Line::Whole(b"small"));
        assert_eq!(lines.next().unwrap(), Line::End);
        assert!(lines.buffer.len() <= 2 * CHUNK);
    }

    #[test]
    fn a_line_over_the_limit_is_not_kept_and_the_next_one_is_read() {
        let input = format!("{}\nnext\n", "x".repeat(40 * CHUNK));
        let mut lines = Lines::new(Pieces(input.as_bytes(), CHUNK), 4 * CHUNK);
        assert_eq!(lines.next().unwrap(), Line::TooLong);
        assert!(lines.buffer.len() <= 16 * CHUNK, "{}", lines.buffer.len());
        assert_eq!(lines.next().unwrap(), Line::Whole(b"next"));
    }
}
