//! Metadata entries by which lists identify a session: titles, tag, last prompt. Lists read only the head and tail of a
//! transcript, so an entry that is too far from the end is written again verbatim. Also checks titles and tags.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use serde::Serialize;
use whimbrel_wire::RawJson;
use whimbrel_wire::invisible::is_invisible;

use crate::append_file::AppendFile;
use crate::entry::TranscriptEntry;
use crate::line_reader::{LineReader, ScannedLine};

/// Type of the entry that records the last prompt.
pub(super) const LAST_PROMPT: &str = "last-prompt";

const METADATA_TYPES: [&str; 4] = ["custom-title", "ai-title", "tag", LAST_PROMPT];

/// Distance from the end beyond which an entry is rewritten: half of what lists read of the tail.
const MAX_TAIL_DISTANCE: u64 = 32 * 1024;

/// Longer entries are not rewritten.
const MAX_ENTRY_LEN: usize = 8 * 1024;

/// Limit on the bytes scanned for new entries.
const MAX_RESCAN_BYTES: u64 = 16 << 20;

/// Limit on titles and tags, because lists read only the head and tail of a transcript.
const MAX_NAME_CHARS: usize = 1_000;

/// The last metadata entry of each type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataEntries {
    /// By entry type.
    lines: BTreeMap<&'static str, LastEntry>,
    /// The transcript was scanned up to this offset.
    scanned_to: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LastEntry {
    line: String,
    offset: u64,
}

impl MetadataEntries {
    /// State for a transcript of this length that was just written.
    pub(super) fn for_new_transcript(length: u64) -> Self {
        Self { lines: BTreeMap::new(), scanned_to: length.saturating_sub(MAX_TAIL_DISTANCE) }
    }

    /// Records an entry if it is metadata.
    pub(super) fn record_entry(&mut self, line: &TranscriptEntry<'_>, bytes: &[u8], at: u64) {
        let Some(kind) = METADATA_TYPES.into_iter().find(|kind| line.is_type(kind)) else { return };
        let text = std::str::from_utf8(bytes.trim_ascii()).ok().filter(|text| text.len() <= MAX_ENTRY_LEN);
        match text {
            Some(text) => self.lines.insert(kind, LastEntry { line: text.to_owned(), offset: at }),
            None => self.lines.remove(kind),
        };
    }

    pub(super) fn mark_scanned(&mut self, until: u64) {
        self.scanned_to = until;
    }

    /// Entries too far from the end. Entries that another process appended meanwhile replace the known ones.
    pub(super) fn entries_to_rewrite(&mut self, file: &mut dyn AppendFile) -> io::Result<Vec<String>> {
        let length = file.length()?;
        if length < self.scanned_to {
            // The file was replaced.
            *self = Self::default();
        }
        let is_far = |at: u64| length.saturating_sub(at) > MAX_TAIL_DISTANCE;
        if !is_far(self.scanned_to) && !self.lines.values().any(|entry| is_far(entry.offset)) {
            return Ok(Vec::new());
        }
        self.rescan(file, length)?;
        Ok(self.lines.values().filter(|entry| is_far(entry.offset)).map(|entry| entry.line.clone()).collect())
    }

    /// Scans what was appended since the last scan.
    fn rescan(&mut self, file: &dyn AppendFile, length: u64) -> io::Result<()> {
        let from = self.scanned_to.max(length.saturating_sub(MAX_RESCAN_BYTES));
        let mut lines = LineReader::new(BufReader::new(OffsetReader { file, offset: from }));
        while let Some(step) = lines.read_line()? {
            let (ScannedLine::Complete(offset, bytes) | ScannedLine::Unterminated(offset, bytes)) = step
            else {
                continue;
            };
            // Messages, which may be long, begin with `parentUuid`.
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

/// Reads a file from an offset on.
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

/// A metadata entry, in the format of the official SDKs.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum MetadataEntry<'a> {
    CustomTitle { custom_title: String, session_id: &'a str },
    Tag { tag: String, session_id: &'a str },
}

impl<'a> MetadataEntry<'a> {
    /// Creates a title entry. Blank and overlong titles are errors.
    pub(super) fn title(text: &str, session_id: &'a str) -> io::Result<Self> {
        Ok(Self::CustomTitle { custom_title: validate_title(text)?, session_id })
    }

    /// Creates a tag entry; `None` removes the tag.
    pub(super) fn tag(tag: Option<&str>, session_id: &'a str) -> io::Result<Self> {
        let tag = match tag {
            Some(tag) => validate_name("A tag", tag)?,
            None => String::new(),
        };
        Ok(Self::Tag { tag, session_id })
    }

    pub(super) fn to_line(&self) -> io::Result<RawJson> {
        Ok(RawJson::from_value(self)?)
    }
}

/// Puts a text on one line and removes invisible characters; `None` if nothing is left.
pub(super) fn normalize_name(text: &str) -> Option<String> {
    let is_hidden = |c: char| is_invisible(c) || matches!(c, '\u{e000}'..='\u{f8ff}');
    let shown: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let line = shown.split(|c: char| c.is_whitespace() || c.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// Normalizes a title, or says why it is invalid.
pub fn validate_title(text: &str) -> io::Result<String> {
    validate_name("A title", text)
}

/// Normalizes a title and truncates it if it is too long; `None` if nothing is left.
pub(super) fn truncate_title(text: &str) -> Option<String> {
    Some(normalize_name(text)?.chars().take(MAX_NAME_CHARS).collect())
}

fn validate_name(what: &str, text: &str) -> io::Result<String> {
    let invalid =
        |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what} {reason}.")));
    match normalize_name(text) {
        None => invalid("must have at least one visible character".into()),
        Some(name) if name.chars().count() > MAX_NAME_CHARS => {
            invalid(format!("may have at most {MAX_NAME_CHARS} characters, but has {}", name.chars().count()))
        }
        Some(name) => Ok(name),
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
    fn distant_entries_are_rewritten_once_with_latest_value() {
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
            let mut metadata = MetadataEntries::default();
            let due = metadata.entries_to_rewrite(&mut open).unwrap();
            assert_eq!(due, expected, "{name}");
            for line in due {
                writeln!(open, "{line}").unwrap();
            }
            assert_eq!(metadata.entries_to_rewrite(&mut open).unwrap(), [""; 0], "{name}: not again");
        }
    }

    #[test]
    fn replaced_transcript_is_scanned_from_the_start() {
        let (_path, mut open) = transcript_with(&[TAG]);
        let mut metadata = MetadataEntries::default();
        metadata.mark_scanned(1_000_000);
        assert_eq!(metadata.entries_to_rewrite(&mut open).unwrap(), [""; 0]);
        assert_eq!(metadata.scanned_to, 0);
    }
}
