//! The lines of a file, one at a time and with a limit, so that no file is too large and no line either.

use std::io::{self, BufRead};

use memchr::memchr;

/// Longer lines are passed over: no engine writes them.
pub(super) const MAX_LINE_LEN: usize = 256 << 20;

/// Reads lines.
pub(super) struct LineReader<R> {
    reader: R,
    /// Where the next line begins.
    offset: u64,
    line: Vec<u8>,
}

/// One step through a file.
pub(super) enum ScannedLine<'a> {
    /// A line, and where it begins.
    Complete(u64, &'a [u8]),
    /// A line without an end, the last of the file.
    Unterminated(u64, &'a [u8]),
    /// A line that is too long to be one.
    TooLong,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, offset: 0, line: Vec::new() }
    }

    /// The next line, without its end; none at the end of the file.
    pub(super) fn read_line(&mut self) -> io::Result<Option<ScannedLine<'_>>> {
        self.line.clear();
        let mut begin = self.offset;
        let mut ended = false;
        while !ended {
            let piece = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            if piece.is_empty() {
                break;
            }
            // What a power cut left are zeros, perhaps a great many: one stands for all that a line begins with.
            let zeros = piece.iter().take_while(|byte| **byte == 0).count();
            if zeros > 0 && matches!(&self.line[..], [] | [0]) {
                self.line = vec![0];
                self.reader.consume(zeros);
                self.offset += zeros as u64;
                begin = self.offset - 1;
                continue;
            }
            let end = memchr(b'\n', piece);
            ended = end.is_some();
            let (text, taken) = end.map_or((piece, piece.len()), |end| (&piece[..end], end + 1));
            if self.line.len() <= MAX_LINE_LEN {
                self.line.extend_from_slice(text);
            }
            self.reader.consume(taken);
            self.offset += taken as u64;
        }
        if self.offset == begin {
            return Ok(None);
        }
        Ok(Some(match ended {
            _ if self.line.len() > MAX_LINE_LEN => ScannedLine::TooLong,
            true => ScannedLine::Complete(begin, &self.line),
            false => ScannedLine::Unterminated(begin, &self.line),
        }))
    }
}
