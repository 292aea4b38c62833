//! Partial index for long transcripts: after a compaction, only the entries from there on are indexed;
//! earlier lines contribute only recorded state and defects. If a later entry refers to an earlier one, the whole
//! transcript is indexed instead.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use memchr::{memmem, memrchr};

use crate::entry::{COMPACT_BOUNDARY, EntryKind};
use crate::load::branch;
use crate::load::index::Index;

/// Smaller transcripts are indexed completely.
const MIN_PARTIAL_SIZE: u64 = 4 << 20;

/// Bytes searched at once.
const CHUNK_SIZE: u64 = 256 * 1024;

/// Bytes of the next chunk searched as well, because a match may cross the border.
const OVERLAP_BYTES: u64 = 64;

/// Indexes the part of a transcript that is still in use.
pub(crate) fn build_index<R: Read + Seek>(file: &mut BufReader<R>) -> io::Result<Index> {
    if file.seek(SeekFrom::End(0))? >= MIN_PARTIAL_SIZE
        && let Some(index) = index_from_last_break(file)?
    {
        return Ok(index);
    }
    file.rewind()?;
    Index::scan(file)
}

/// Indexes from the last break on; `None` if there is no break or if the conversation reaches further back.
fn index_from_last_break<R: Read + Seek>(file: &mut BufReader<R>) -> io::Result<Option<Index>> {
    let Some(offset) = find_last_break(file)? else { return Ok(None) };
    file.rewind()?;
    Ok(Index::scan_from(file, offset)?.filter(begins_with_break))
}

/// Checks that the conversation starts with the break in the first indexed entry.
fn begins_with_break(index: &Index) -> bool {
    let path = branch::branch_to(index, branch::find_resume_point(index));
    path.first() == Some(&0)
        && index.node(0).kind == EntryKind::CompactBoundary
        && path.iter().any(|node_id| index.node(*node_id).is_summary)
}

/// Offset of the last line that looks like a break. Quoted text does not match, because its quotes are escaped.
fn find_last_break<R: Read + Seek>(file: &mut BufReader<R>) -> io::Result<Option<u64>> {
    let mark = format!("\"{COMPACT_BOUNDARY}\"");
    let length = file.seek(SeekFrom::End(0))?;
    let (mut end, mut is_found) = (length, false);
    let mut bytes = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(CHUNK_SIZE);
        file.seek(SeekFrom::Start(begin))?;
        bytes.clear();
        file.by_ref().take((end + OVERLAP_BYTES).min(length) - begin).read_to_end(&mut bytes)?;
        let mut before = usize::try_from(end - begin).unwrap_or(usize::MAX).min(bytes.len());
        if !is_found && let Some(at) = memmem::find_iter(&bytes, mark.as_bytes()).last() {
            (is_found, before) = (true, at);
        }
        if is_found && let Some(at) = memrchr(b'\n', &bytes[..before]) {
            return Ok(Some(begin + at as u64 + 1));
        }
        end = begin;
    }
    Ok(is_found.then_some(0))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const ROOT: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"content":"one"}}"#;
    const REPLY: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"content":"1"}}"#;
    const BREAK: &str = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a1"}"#;
    const SUMMARY: &str =
        r#"{"type":"user","uuid":"s","parentUuid":"b","isCompactSummary":true,"message":{"content":"sum"}}"#;
    const REWOUND: &str =
        r#"{"type":"system","subtype":"conversation_rewound","uuid":"m","parentUuid":"s","leftUuid":"u2"}"#;
    const REWOUND_FURTHER: &str =
        r#"{"type":"system","subtype":"conversation_rewound","uuid":"m","parentUuid":"u1","leftUuid":"u2"}"#;
    const REWOUND_TO_START: &str =
        r#"{"type":"system","subtype":"conversation_rewound","uuid":"m","parentUuid":null,"leftUuid":"u2"}"#;
    const NEXT: &str = r#"{"type":"user","uuid":"u2","parentUuid":"s","message":{"content":"two"}}"#;
    const BACK: &str = r#"{"type":"user","uuid":"u3","parentUuid":"a1","message":{"content":"back"}}"#;
    const QUOTED: &str = r#"{"type":"user","uuid":"u4","parentUuid":"u2","message":{"content":"\"subtype\":\"compact_boundary\""}}"#;

    /// Lines with padding, so that no two are in one chunk.
    fn spaced_file(lines: &[&str]) -> BufReader<Cursor<Vec<u8>>> {
        let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        let filler = format!("{{\"type\":\"x\",\"pad\":\"{}\"}}\n", "y".repeat(CHUNK_SIZE as usize / 3));
        BufReader::new(Cursor::new(text.join(&filler).into_bytes()))
    }

    #[test]
    fn entries_before_last_break_are_skipped_unless_referenced() {
        let rows: [(&str, &[&str], Option<usize>); 11] = [
            ("no break", &[ROOT, REPLY], None),
            ("a summary", &[ROOT, REPLY, BREAK, SUMMARY, NEXT], Some(3)),
            ("at the beginning", &[BREAK, SUMMARY, NEXT], Some(3)),
            ("no summary", &[ROOT, REPLY, BREAK], None),
            ("rewound after it", &[ROOT, REPLY, BREAK, SUMMARY, NEXT, REWOUND], Some(4)),
            ("rewound to before it", &[ROOT, REPLY, BREAK, SUMMARY, NEXT, REWOUND_FURTHER], None),
            ("rewound to the start", &[ROOT, REPLY, BREAK, SUMMARY, NEXT, REWOUND_TO_START], None),
            ("gone back to what was before", &[ROOT, REPLY, BREAK, SUMMARY, BACK], None),
            ("the first line written again", &[ROOT, REPLY, BREAK, SUMMARY, ROOT], None),
            ("a later line written again", &[ROOT, REPLY, BREAK, SUMMARY, REPLY], None),
            ("a break in a text", &[ROOT, REPLY, BREAK, SUMMARY, NEXT, QUOTED], Some(4)),
        ];
        for (name, lines, expected) in rows {
            let index = index_from_last_break(&mut spaced_file(lines)).unwrap();
            assert_eq!(index.map(|index| index.nodes.len()), expected, "{name}");
        }
    }

    #[test]
    fn break_is_found_at_any_chunk_offset() {
        let line = format!("{BREAK}\n");
        for after in (CHUNK_SIZE as usize - 200)..(CHUNK_SIZE as usize + 200) {
            let text = format!("{ROOT}\n{line}{}", " ".repeat(after));
            let found = find_last_break(&mut BufReader::new(Cursor::new(text.into_bytes()))).unwrap();
            assert_eq!(found, Some(ROOT.len() as u64 + 1), "{after}");
        }
    }
}
