//! Reads a file line by line with a length limit, so that memory use is bounded.

use std::io::{self, BufRead};

use memchr::memchr;

/// Longer lines are skipped; no engine writes them.
pub(crate) const MAX_LINE_LEN: usize = 256 << 20;

pub(crate) struct LineReader<R> {
    reader: R,
    /// Offset of the next line.
    offset: u64,
    line: Vec<u8>,
}

pub(crate) enum ScannedLine<'a> {
    /// A line and its offset.
    Complete(u64, &'a [u8]),
    /// The last line of the file, without a newline.
    Unterminated(u64, &'a [u8]),
    /// A line beyond the length limit.
    TooLong,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, offset: 0, line: Vec::new() }
    }

    /// Reads the next line without its newline; `None` at the end of the file.
    pub(crate) fn read_line(&mut self) -> io::Result<Option<ScannedLine<'_>>> {
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
            // A power failure can leave a long run of zero bytes: one zero stands for a run at the start of a line.
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
