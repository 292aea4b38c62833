//! The last line of a transcript after a crash or kill: a partial line is removed before the next one is appended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use memchr::memrchr;
use serde::de::IgnoredAny;

const TAIL_CHUNK_SIZE: usize = 64 * 1024;

/// Removes a partial last line, or terminates a complete one.
pub(super) fn repair_tail(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let whole = if length == 0 { 0 } else { last_line_end(file, length)? };
    if whole < length {
        file.seek(SeekFrom::Start(whole))?;
        let is_line = serde_json::from_reader::<_, IgnoredAny>(io::BufReader::new(&*file)).is_ok();
        if is_line { file.write_all(b"\n")? } else { file.set_len(whole)? }
    }
    Ok(())
}

/// End of the last terminated line.
fn last_line_end(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut piece = vec![0; TAIL_CHUNK_SIZE];
    while end > 0 {
        let begin = end.saturating_sub(TAIL_CHUNK_SIZE as u64);
        let piece = &mut piece[..usize::try_from(end - begin).unwrap_or(TAIL_CHUNK_SIZE)];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(piece)?;
        if let Some(at) = memrchr(b'\n', piece) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}
