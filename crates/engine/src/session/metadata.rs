//! What a session is recognised by in lists: its titles, its tag, its last prompt. Lists read only the two ends of a
//! transcript, so what has come to lie far back is written again, to the letter.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use super::entry::TranscriptEntry;
use super::line_reader::{LineReader, ScannedLine};
use super::append_file::AppendFile;

/// The type of a line that says what was asked last.
pub(super) const LAST_PROMPT: &str = "last-prompt";

/// The types of such lines.
const METADATA_TYPES: [&str; 4] = ["custom-title", "ai-title", "tag", LAST_PROMPT];

/// How many bytes may follow such a line: half of what lists read of the end.
const MAX_TAIL_DISTANCE: u64 = 32 * 1024;

/// Longer ones are not written again.
const MAX_ENTRY_LEN: usize = 8 * 1024;

/// How much of a transcript is looked at again, at most.
const MAX_RESCAN_BYTES: u64 = 16 << 20;

/// The labels of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataEntries {
    /// The last line of each kind.
    lines: BTreeMap<&'static str, LastEntry>,
    /// Up to where the transcript was looked at.
    scanned_to: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LastEntry {
    line: String,
    /// Where it begins.
    offset: u64,
}

impl MetadataEntries {
    /// The labels at the end of a transcript that was just written and has so many bytes.
    pub(super) fn for_new_transcript(length: u64) -> Self {
        Self { lines: BTreeMap::new(), scanned_to: length.saturating_sub(MAX_TAIL_DISTANCE) }
    }

    /// Takes in a line, if it is a label.
    pub(super) fn record_entry(&mut self, line: &TranscriptEntry<'_>, bytes: &[u8], at: u64) {
        let Some(kind) = METADATA_TYPES.into_iter().find(|kind| line.is_type(kind)) else { return };
        let text = std::str::from_utf8(bytes.trim_ascii()).ok().filter(|text| text.len() <= MAX_ENTRY_LEN);
        match text {
            Some(text) => self.lines.insert(kind, LastEntry { line: text.to_owned(), offset: at }),
            None => self.lines.remove(kind),
        };
    }

    /// The transcript was looked at up to here.
    pub(super) fn mark_scanned(&mut self, until: u64) {
        self.scanned_to = until;
    }

    /// The lines that lie too far back in a transcript. Somebody else may have given a label meanwhile: that is the one that
    /// counts.
    pub(super) fn entries_to_rewrite(&mut self, file: &mut dyn AppendFile) -> io::Result<Vec<String>> {
        let length = file.length()?;
        if length < self.scanned_to {
            // It was made anew.
            *self = Self::default();
        }
        let is_far = |at: u64| length.saturating_sub(at) > MAX_TAIL_DISTANCE;
        if !is_far(self.scanned_to) && !self.lines.values().any(|kept| is_far(kept.offset)) {
            return Ok(Vec::new());
        }
        self.rescan(file, length)?;
        Ok(self.lines.values().filter(|kept| is_far(kept.offset)).map(|kept| kept.line.clone()).collect())
    }

    /// Looks at what has come since.
    fn rescan(&mut self, file: &dyn AppendFile, length: u64) -> io::Result<()> {
        let from = self.scanned_to.max(length.saturating_sub(MAX_RESCAN_BYTES));
        let mut lines = LineReader::new(BufReader::new(OffsetReader { file, offset: from }));
        while let Some(step) = lines.read_line()? {
            let (ScannedLine::Complete(offset, bytes) | ScannedLine::Unterminated(offset, bytes)) = step else { continue };
            // Messages, which may be long, begin with their parent.
            if bytes.starts_with(b"{\"type\"")
                && let Some((line, _)) = TranscriptEntry::parse_first(bytes)
            {
                self.record_entry(&line, bytes, from + offset);
            }
        }
        self.scanned_to = length;
        Ok(())
    }
}

/// A transcript from some place on.
struct OffsetReader<'a> {
    file: &'a dyn AppendFile,
    offset: u64,
}

impl Read for OffsetReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, into)?;
        self.offset += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;

    use super::*;

    const OLD: &str = r#"{"type":"custom-title","customTitle":"old"}"#;
    const NEW: &str = r#"{"type":"custom-title","customTitle":"new"}"#;
    const TAG: &str = r#"{"type":"tag","tag":"work"}"#;

    fn transcript_with(lines: &[&str]) -> (tempfile::NamedTempFile, File) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        let open = OpenOptions::new().read(true).append(true).open(file.path()).unwrap();
        (file, open)
    }

    #[test]
    fn what_lies_far_back_is_due_once_and_the_last_of_its_kind_counts() {
        let long = format!(r#"{{"parentUuid":null,"text":"{}"}}"#, "x".repeat(40_000));
        let rows: [(&str, &[&str], &[&str]); 6] = [
            ("nothing", &[&long], &[]),
            ("near", &[&long, OLD], &[]),
            ("far", &[OLD, &long], &[OLD]),
            ("both", &[OLD, TAG, &long], &[OLD, TAG]),
            ("renamed meanwhile", &[OLD, &long, NEW], &[]),
            ("renamed far back", &[OLD, NEW, &long, TAG], &[NEW]),
        ];
        for (name, lines, expected) in rows {
            let (_path, mut open) = transcript_with(lines);
            let mut labels = MetadataEntries::default();
            let due = labels.entries_to_rewrite(&mut open).unwrap();
            assert_eq!(due, expected, "{name}");
            for line in due {
                writeln!(open, "{line}").unwrap();
            }
            assert_eq!(labels.entries_to_rewrite(&mut open).unwrap(), [""; 0], "{name}: not again");
        }
    }

    #[test]
    fn a_transcript_that_was_made_anew_is_looked_at_from_its_beginning() {
        let (_path, mut open) = transcript_with(&[TAG]);
        let mut labels = MetadataEntries::default();
        labels.mark_scanned(1_000_000);
        assert_eq!(labels.entries_to_rewrite(&mut open).unwrap(), [""; 0]);
        assert_eq!(labels.scanned_to, 0);
    }
}
