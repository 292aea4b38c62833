//! What a session is recognised by in lists: its titles, its tag, its last prompt. Lists read only the two ends of a
//! transcript, so what has come to lie far back is written again, to the letter.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use super::line::Line;
use super::lines::{Lines, Step};
use super::medium::Medium;

/// The type of a line that says what was asked last.
pub(super) const LAST_PROMPT: &str = "last-prompt";

/// The types of such lines.
const KINDS: [&str; 4] = ["custom-title", "ai-title", "tag", LAST_PROMPT];

/// How many bytes may follow such a line: half of what lists read of the end.
const FAR: u64 = 32 * 1024;

/// Longer ones are not written again.
const LONGEST: usize = 8 * 1024;

/// How much of a transcript is looked at again, at most.
const LOOKED_AT: u64 = 16 << 20;

/// The labels of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The last line of each kind.
    lines: BTreeMap<&'static str, Kept>,
    /// Up to where the transcript was looked at.
    seen: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    line: String,
    /// Where it begins.
    at: u64,
}

impl Labels {
    /// The labels at the end of a transcript that was just written and has so many bytes.
    pub(super) fn at_the_end(length: u64) -> Self {
        Self { lines: BTreeMap::new(), seen: length.saturating_sub(FAR) }
    }

    /// Takes in a line, if it is a label.
    pub(super) fn note(&mut self, line: &Line<'_>, bytes: &[u8], at: u64) {
        let Some(kind) = KINDS.into_iter().find(|kind| line.kind_is(kind)) else { return };
        let text = std::str::from_utf8(bytes.trim_ascii()).ok().filter(|text| text.len() <= LONGEST);
        match text {
            Some(text) => self.lines.insert(kind, Kept { line: text.to_owned(), at }),
            None => self.lines.remove(kind),
        };
    }

    /// The transcript was looked at up to here.
    pub(super) fn seen(&mut self, until: u64) {
        self.seen = until;
    }

    /// The lines that lie too far back in a transcript. Somebody else may have given a label meanwhile: that is the one that
    /// counts.
    pub(super) fn due(&mut self, file: &mut dyn Medium) -> io::Result<Vec<String>> {
        let length = file.length()?;
        if length < self.seen {
            // It was made anew.
            *self = Self::default();
        }
        let is_far = |at: u64| length.saturating_sub(at) > FAR;
        if !is_far(self.seen) && !self.lines.values().any(|kept| is_far(kept.at)) {
            return Ok(Vec::new());
        }
        self.look(file, length)?;
        Ok(self.lines.values().filter(|kept| is_far(kept.at)).map(|kept| kept.line.clone()).collect())
    }

    /// Looks at what has come since.
    fn look(&mut self, file: &dyn Medium, length: u64) -> io::Result<()> {
        let from = self.seen.max(length.saturating_sub(LOOKED_AT));
        let mut lines = Lines::new(BufReader::new(From { file, at: from }));
        while let Some(step) = lines.next()? {
            let (Step::Line(offset, bytes) | Step::Tail(offset, bytes)) = step else { continue };
            // Messages, which may be long, begin with their parent.
            if bytes.starts_with(b"{\"type\"")
                && let Some((line, _)) = Line::first(bytes)
            {
                self.note(&line, bytes, from + offset);
            }
        }
        self.seen = length;
        Ok(())
    }
}

/// A transcript from some place on.
struct From<'a> {
    file: &'a dyn Medium,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, into)?;
        self.at += count as u64;
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

    fn file(lines: &[&str]) -> (tempfile::NamedTempFile, File) {
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
            let (_path, mut open) = file(lines);
            let mut labels = Labels::default();
            let due = labels.due(&mut open).unwrap();
            assert_eq!(due, expected, "{name}");
            for line in due {
                writeln!(open, "{line}").unwrap();
            }
            assert_eq!(labels.due(&mut open).unwrap(), [""; 0], "{name}: not again");
        }
    }

    #[test]
    fn a_transcript_that_was_made_anew_is_looked_at_from_its_beginning() {
        let (_path, mut open) = file(&[TAG]);
        let mut labels = Labels::default();
        labels.seen(1_000_000);
        assert_eq!(labels.due(&mut open).unwrap(), [""; 0]);
        assert_eq!(labels.seen, 0);
    }
}
