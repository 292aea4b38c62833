//! Text for the model: numbered lines, cut to what it can take in.

use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::tools::Done;
use crate::tools::encoding::decode;
use crate::tools::patch::newlines;

/// Which lines are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The first, from 1.
    pub(super) first: usize,
    /// How many; all that follow if none.
    pub(super) count: Option<usize>,
}

/// A part of a file that was not read as a whole.
#[derive(Debug)]
pub(super) struct Part {
    bytes: Vec<u8>,
    span: Span,
    total: Total,
}

/// How many lines a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Total {
    Exactly(usize),
    /// The rest was not counted.
    AtLeast(usize),
}

/// How much text the model gets at once: about 25,000 tokens.
const SHOWN: usize = 100_000;
/// How many characters of a line.
const LINE: usize = 2_000;
/// How many bytes of a part are kept, and the host gets.
const KEPT: usize = 300_000;
/// How many bytes after a part are searched for line ends.
const COUNTED: usize = 256 * 1024 * 1024;

/// Shows a text, and says whether that was all of it.
pub(super) fn show(path: &Path, text: &str, span: Span) -> (Done, bool) {
    if text.is_empty() {
        let says =
            format!("<system-reminder>\n{} is there, but it is empty.\n</system-reminder>", path.display());
        return (Done::text(says, meta(path, String::new(), 1, 1, 1)), true);
    }
    let total = newlines(text.as_bytes()) + 1;
    let room = SHOWN.min(text.len() + total * 6);
    let shown = render(text.split('\n').skip(span.first - 1), span, Total::Exactly(total), room);
    let whole = span.first == 1 && shown.count == total;
    (shown.done(path, span, Total::Exactly(total)), whole)
}

/// Lines as the model and the host get them.
struct Shown {
    text: String,
    content: String,
    count: usize,
    /// Whether it says how to go on.
    advised: bool,
}

/// Numbers the lines that are asked for; `room` is how long they may be.
fn render<'a>(lines: impl Iterator<Item = &'a str>, span: Span, total: Total, room: usize) -> Shown {
    let (text, content) = (String::with_capacity(room), String::with_capacity(room));
    let mut shown = Shown { text, content, count: 0, advised: false };
    for line in lines.take(span.count.unwrap_or(usize::MAX)) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if shown.count > 0
            && (shown.text.len() + line.len().min(LINE) > SHOWN || shown.content.len() + line.len() > KEPT)
        {
            shown.say_how_to_go_on(span, total);
            break;
        }
        shown.push(line, span.first + shown.count);
    }
    shown
}

impl Shown {
    fn push(&mut self, line: &str, number: usize) {
        if self.count > 0 {
            self.text.push('\n');
            self.content.push('\n');
        }
        let end = if line.len() <= LINE { None } else { line.char_indices().nth(LINE) };
        self.text.push_str(&number.to_string());
        self.text.push('\t');
        match end {
            None => self.text.push_str(line),
            Some((end, _)) => {
                self.text.push_str(&line[..end]);
                self.text.push_str(&format!(" [line cut: {} bytes in all]", line.len()));
            }
        }
        self.content.push_str(&line[..line.floor_char_boundary(KEPT)]);
        self.count += 1;
    }

    fn say_how_to_go_on(&mut self, span: Span, total: Total) {
        let next = span.first + self.count;
        let total = match total {
            Total::Exactly(total) => format!("{total}"),
            Total::AtLeast(total) => format!("more than {total}"),
        };
        let note = format!(
            "\n\n[Lines {}-{} of {total} are shown. Go on with offset {next}.]",
            span.first,
            next - 1
        );
        self.text.push_str(&note);
        self.advised = true;
    }

    fn done(self, path: &Path, span: Span, total: Total) -> Done {
        let (Total::Exactly(total) | Total::AtLeast(total)) = total;
        let mut meta = meta(path, self.content, self.count, span.first, total);
        if self.advised {
            meta["file"]["truncatedByTokenCap"] = true.into();
        }
        if self.count == 0 {
            let says =
                format!("{} has only {total} lines: line {} is beyond its end.", path.display(), span.first);
            return Done::text(says, meta);
        }
        Done::text(self.text, meta)
    }
}

fn meta(path: &Path, content: String, lines: usize, first: usize, total: usize) -> Value {
    let mut meta = json!({"type": "text", "file": {
        "filePath": path.to_string_lossy(), "content": null, "numLines": lines, "startLine": first, "totalLines": total,
    }});
    meta["file"]["content"] = content.into();
    meta
}

/// Looks for lines in a file of any size, keeping only what may be shown.
pub(super) fn scan(mut file: impl Read, span: Span, cancel: &CancellationToken) -> io::Result<Part> {
    let end = span.count.and_then(|count| span.first.checked_add(count)).unwrap_or(usize::MAX);
    let mut chunk = vec![0; 64 * 1024];
    let mut bytes = Vec::new();
    let mut line = 1;
    let mut beyond = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        let read = match file.read(&mut chunk) {
            Ok(0) => return Ok(Part { bytes, span, total: Total::Exactly(line) }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let last = line + newlines(&chunk[..read]);
        if last >= span.first && line < end && bytes.len() < KEPT {
            keep(&chunk[..read], line, span.first..end, &mut bytes);
        } else if last >= span.first {
            beyond += read;
        }
        line = last;
        if beyond > COUNTED {
            return Ok(Part { bytes, span, total: Total::AtLeast(line) });
        }
    }
}

/// Keeps those lines of a chunk that are in the range. The chunk begins in the line `line`.
fn keep(chunk: &[u8], mut line: usize, range: std::ops::Range<usize>, bytes: &mut Vec<u8>) {
    for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
        if range.contains(&line) {
            bytes.extend_from_slice(piece);
        }
        line += usize::from(piece.ends_with(b"\n"));
    }
}

impl Part {
    /// Shows the part. None if it is not text.
    pub(super) fn show(mut self, path: &Path) -> Option<Done> {
        let (Total::Exactly(total) | Total::AtLeast(total)) = self.total;
        let cut = self.bytes.len() >= KEPT;
        if cut {
            self.bytes.truncate(whole_lines(&self.bytes));
        }
        let decoded = decode(self.bytes)?;
        let lines = decoded.text.split('\n').filter(|_| self.span.first <= total);
        let mut shown = render(lines, self.span, self.total, SHOWN.min(decoded.text.len()));
        if cut && !shown.advised && self.span.first + shown.count <= total {
            shown.say_how_to_go_on(self.span, self.total);
        }
        Some(shown.done(path, self.span, self.total))
    }
}

/// Where the last whole line ends, without its newline; inside the first line, where its last whole character does.
fn whole_lines(bytes: &[u8]) -> usize {
    if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return end;
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::content::ResultContent;

    use super::*;

    const ALL: Span = Span { first: 1, count: None };

    fn says(done: Done) -> String {
        match done.content {
            ResultContent::Text(text) => text,
            ResultContent::Blocks(blocks) => panic!("{blocks:?}"),
        }
    }

    #[test]
    fn lines_are_numbered_and_a_last_newline_gives_an_empty_one() {
        for (text, span, expected, whole) in [
            ("a\nb\n", ALL, "1\ta\n2\tb\n3\t", true),
            ("a\r\nb", ALL, "1\ta\n2\tb", true),
            ("a\nb\nc", Span { first: 2, count: Some(1) }, "2\tb", false),
            ("a\nb\n", Span { first: 1, count: Some(2) }, "1\ta\n2\tb", false),
            ("a", Span { first: 7, count: None }, "/f has only 1 lines: line 7 is beyond its end.", false),
            ("", ALL, "<system-reminder>\n/f is there, but it is empty.\n</system-reminder>", true),
        ] {
            let (done, was_whole) = show(Path::new("/f"), text, span);
            assert_eq!((says(done).as_str(), was_whole), (expected, whole), "{text:?}");
        }
    }

    #[test]
    fn a_huge_line_is_cut_for_the_model() {
        let (done, _) = show(Path::new("/f"), &format!("{}\nend", "é".repeat(100_000)), ALL);
        let text = says(done);
        assert!(
            text.len() < 5_000 && text.ends_with("[line cut: 200000 bytes in all]\n2\tend"),
            "{}",
            text.len()
        );
    }

    #[test]
    fn more_than_the_model_can_take_in_ends_with_advice() {
        let text = "0123456789\n".repeat(20_000);
        let (done, whole) = show(Path::new("/f"), &text, ALL);
        assert!(!whole);
        let count = done.meta["file"]["numLines"].as_u64().unwrap();
        let text = says(done);
        assert!(text.len() <= SHOWN + 100);
        assert!(
            text.ends_with(&format!(
                "[Lines 1-{count} of 20001 are shown. Go on with offset {}.]",
                count + 1
            ))
        );
    }

    /// Scans a text that arrives in pieces of an awkward size.
    fn scanned(text: &[u8], span: Span) -> Option<Done> {
        scan(text, span, &CancellationToken::new()).unwrap().show(Path::new("/f"))
    }

    #[test]
    fn scanning_shows_the_same_as_reading_the_whole() {
        let text: String = (1..=30_000).map(|n| format!("line {n}\r\n")).collect();
        for span in [
            Span { first: 1, count: Some(3) },
            Span { first: 29_999, count: None },
            Span { first: 15_000, count: Some(200) },
            Span { first: 30_001, count: Some(9) },
            Span { first: 99_999, count: None },
        ] {
            assert_eq!(
                scanned(text.as_bytes(), span),
                Some(show(Path::new("/f"), &text, span).0),
                "{span:?}"
            );
        }
    }

    #[test]
    fn scanning_keeps_little_of_a_line_without_end() {
        let endless = [&b"first\n"[..], "é".repeat(1_000_000).as_bytes(), b"\nlast"].concat();
        let at = |first| says(scanned(&endless, Span { first, count: None }).unwrap());
        assert!(at(1).starts_with("1\tfirst") && at(1).ends_with("Go on with offset 2.]"), "{}", at(1).len());
        assert!(at(2).starts_with("2\té") && at(2).ends_with("Go on with offset 3.]"), "{}", at(2).len());
        assert_eq!(at(3), "3\tlast");
        assert_eq!(scanned(b"a\0b\nc", ALL).map(says), None);
    }

    #[test]
    fn scanning_ends_when_the_turn_does() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(scan(io::repeat(b'x'), ALL, &cancel).is_err());
    }
}
