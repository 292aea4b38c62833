//! Text for the model: numbered lines within the size limits.

use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::ToolOutput;
use crate::builtin::encoding::decode;
use crate::builtin::patch::count_newlines;

/// Lines that the model asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRequest {
    /// The first line, from 1; the last line is -1.
    pub(super) start: i64,
    /// Number of lines; all following ones if `None`.
    pub(super) count: Option<usize>,
}

impl LineRequest {
    /// The span, unless it depends on the number of lines.
    pub(super) fn span_from_start(self) -> Option<LineSpan> {
        usize::try_from(self.start).ok().map(|start| LineSpan { first: start.max(1), count: self.count })
    }

    /// The span in a text with this number of lines.
    pub(super) fn span_within(self, lines: usize) -> LineSpan {
        self.span_from_start().unwrap_or_else(|| {
            let from_end = usize::try_from(self.start.unsigned_abs()).unwrap_or(usize::MAX);
            LineSpan { first: lines.saturating_sub(from_end) + 1, count: self.count }
        })
    }
}

/// Requested lines whose first one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineSpan {
    /// The first line, from 1.
    pub(super) first: usize,
    /// Number of lines; all following ones if `None`.
    pub(super) count: Option<usize>,
}

/// Part of a file that was not read whole.
#[derive(Debug)]
pub(super) struct FilePart {
    bytes: Vec<u8>,
    span: LineSpan,
    total: LineTotal,
}

/// Number of lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineTotal {
    Exactly(usize),
    /// Counting stopped before the end.
    AtLeast(usize),
}

/// Text per call: about 25,000 tokens.
const MAX_SHOWN_BYTES: usize = 100_000;
/// Maximum characters of a line.
const MAX_LINE_CHARS: usize = 2_000;
/// Bytes kept of a part, and sent to the host.
const MAX_KEPT_BYTES: usize = 300_000;
/// Bytes after a part that are counted for newlines.
const MAX_COUNTED_BYTES: usize = 256 * 1024 * 1024;

/// Renders a text; also returns whether that was all of it.
pub(super) fn render_text(path: &Path, text: &str, lines: LineRequest) -> (ToolOutput, bool) {
    if text.is_empty() {
        let note = format!("<system-reminder>\n{} exists but is empty.\n</system-reminder>", path.display());
        return (ToolOutput::text(note, text_meta(path, String::new(), 1, 1, 1)), true);
    }
    let total = count_newlines(text.as_bytes()) + 1;
    let span = lines.span_within(total - usize::from(text.ends_with('\n')));
    let capacity = MAX_SHOWN_BYTES.min(text.len() + total * 6);
    let numbered =
        number_lines(text.split('\n').skip(span.first - 1), span, LineTotal::Exactly(total), capacity);
    let is_complete = span.first == 1 && numbered.count == total;
    (numbered.into_output(path, span, LineTotal::Exactly(total)), is_complete)
}

/// Rendered lines for the model and the host.
struct NumberedLines {
    text: String,
    content: String,
    count: usize,
    /// Whether it ends with a note on how to continue.
    has_continuation_hint: bool,
}

/// Numbers the requested lines; `capacity` is the expected size.
fn number_lines<'a>(
    lines: impl Iterator<Item = &'a str>,
    span: LineSpan,
    total: LineTotal,
    capacity: usize,
) -> NumberedLines {
    let (text, content) = (String::with_capacity(capacity), String::with_capacity(capacity));
    let mut numbered = NumberedLines { text, content, count: 0, has_continuation_hint: false };
    for line in lines.take(span.count.unwrap_or(usize::MAX)) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if numbered.count > 0
            && (numbered.text.len() + line.len().min(MAX_LINE_CHARS) > MAX_SHOWN_BYTES
                || numbered.content.len() + line.len() > MAX_KEPT_BYTES)
        {
            numbered.add_continuation_hint(span, total);
            break;
        }
        numbered.push(line, span.first + numbered.count);
    }
    numbered
}

impl NumberedLines {
    fn push(&mut self, line: &str, number: usize) {
        if self.count > 0 {
            self.text.push('\n');
            self.content.push('\n');
        }
        let end = if line.len() <= MAX_LINE_CHARS { None } else { line.char_indices().nth(MAX_LINE_CHARS) };
        self.text.push_str(&number.to_string());
        self.text.push('\t');
        match end {
            None => self.text.push_str(line),
            Some((end, _)) => {
                self.text.push_str(&line[..end]);
                self.text.push_str(&format!(" [line truncated: {} bytes in total]", line.len()));
            }
        }
        self.content.push_str(&line[..line.floor_char_boundary(MAX_KEPT_BYTES)]);
        self.count += 1;
    }

    fn add_continuation_hint(&mut self, span: LineSpan, total: LineTotal) {
        let next = span.first + self.count;
        let total = match total {
            LineTotal::Exactly(total) => format!("{total}"),
            LineTotal::AtLeast(total) => format!("more than {total}"),
        };
        let note = format!(
            "\n\n[Showing lines {}-{} of {total}. Continue with offset {next}.]",
            span.first,
            next - 1
        );
        self.text.push_str(&note);
        self.has_continuation_hint = true;
    }

    fn into_output(self, path: &Path, span: LineSpan, total: LineTotal) -> ToolOutput {
        let (LineTotal::Exactly(total) | LineTotal::AtLeast(total)) = total;
        let mut meta = text_meta(path, self.content, self.count, span.first, total);
        if self.has_continuation_hint {
            meta["file"]["truncatedByTokenCap"] = true.into();
        }
        if self.count == 0 {
            let note =
                format!("{} has only {total} lines; line {} is past the end.", path.display(), span.first);
            return ToolOutput::text(note, meta);
        }
        ToolOutput::text(self.text, meta)
    }
}

fn text_meta(path: &Path, content: String, lines: usize, first: usize, total: usize) -> Value {
    let mut meta = json!({"type": "text", "file": {
        "filePath": path.to_string_lossy(), "content": null, "numLines": lines, "startLine": first, "totalLines": total,
    }});
    meta["file"]["content"] = content.into();
    meta
}

/// Counts the lines of a file of any size; an empty one after the last newline does not count.
pub(super) fn count_lines(mut file: impl Read, cancel: &CancellationToken) -> io::Result<usize> {
    let (mut chunk, mut newlines, mut ends_with_newline) = (vec![0; 64 * 1024], 0, true);
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        match file.read(&mut chunk) {
            Ok(0) => return Ok(newlines + usize::from(!ends_with_newline)),
            Ok(read) => {
                newlines += count_newlines(&chunk[..read]);
                ends_with_newline = chunk[..read].ends_with(b"\n");
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Finds lines in a file of any size, keeping only what may be shown.
pub(super) fn scan_lines(
    mut file: impl Read,
    span: LineSpan,
    cancel: &CancellationToken,
) -> io::Result<FilePart> {
    let end = span.count.and_then(|count| span.first.checked_add(count)).unwrap_or(usize::MAX);
    let mut chunk = vec![0; 64 * 1024];
    let mut bytes = Vec::new();
    let mut line = 1;
    let mut counted_bytes = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        let read = match file.read(&mut chunk) {
            Ok(0) => return Ok(FilePart { bytes, span, total: LineTotal::Exactly(line) }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let last = line + count_newlines(&chunk[..read]);
        if last >= span.first && line < end && bytes.len() < MAX_KEPT_BYTES {
            keep_lines_in_range(&chunk[..read], line, span.first..end, &mut bytes);
        } else if last >= span.first {
            counted_bytes += read;
        }
        line = last;
        if counted_bytes > MAX_COUNTED_BYTES {
            return Ok(FilePart { bytes, span, total: LineTotal::AtLeast(line) });
        }
    }
}

/// Keeps the lines of a chunk that are in the range. The chunk begins in line `line`.
fn keep_lines_in_range(chunk: &[u8], mut line: usize, range: std::ops::Range<usize>, bytes: &mut Vec<u8>) {
    for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
        if range.contains(&line) {
            bytes.extend_from_slice(piece);
        }
        line += usize::from(piece.ends_with(b"\n"));
    }
}

impl FilePart {
    /// Renders the part. `None` if it is not text.
    pub(super) fn render(mut self, path: &Path) -> Option<ToolOutput> {
        let (LineTotal::Exactly(total) | LineTotal::AtLeast(total)) = self.total;
        let truncated = self.bytes.len() >= MAX_KEPT_BYTES;
        if truncated {
            self.bytes.truncate(whole_lines_end(&self.bytes));
        }
        let decoded = decode(self.bytes)?;
        let lines = decoded.text.split('\n').filter(|_| self.span.first <= total);
        let mut numbered =
            number_lines(lines, self.span, self.total, MAX_SHOWN_BYTES.min(decoded.text.len()));
        if truncated && !numbered.has_continuation_hint && self.span.first + numbered.count <= total {
            numbered.add_continuation_hint(self.span, self.total);
        }
        Some(numbered.into_output(path, self.span, self.total))
    }
}

/// End of the last whole line without its newline; within the first line, end of the last whole character.
fn whole_lines_end(bytes: &[u8]) -> usize {
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

    const ALL: LineRequest = LineRequest { start: 1, count: None };

    fn output_text(output: ToolOutput) -> String {
        match output.content {
            ResultContent::Text(text) => text,
            ResultContent::Blocks(blocks) => panic!("{blocks:?}"),
        }
    }

    #[test]
    fn lines_are_numbered_including_an_empty_last_one() {
        for (text, span, expected, whole) in [
            ("a\nb\n", ALL, "1\ta\n2\tb\n3\t", true),
            ("a\r\nb", ALL, "1\ta\n2\tb", true),
            ("a\nb\nc", LineRequest { start: 2, count: Some(1) }, "2\tb", false),
            ("a\nb\n", LineRequest { start: 1, count: Some(2) }, "1\ta\n2\tb", false),
            (
                "a",
                LineRequest { start: 7, count: None },
                "/f has only 1 lines; line 7 is past the end.",
                false,
            ),
            ("a\nb\n", LineRequest { start: -1, count: None }, "2\tb\n3\t", false),
            ("a\nb", LineRequest { start: -2, count: Some(1) }, "1\ta", false),
            ("a\nb\n", LineRequest { start: -9, count: None }, "1\ta\n2\tb\n3\t", true),
            ("", ALL, "<system-reminder>\n/f exists but is empty.\n</system-reminder>", true),
        ] {
            let (output, was_whole) = render_text(Path::new("/f"), text, span);
            assert_eq!((output_text(output).as_str(), was_whole), (expected, whole), "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_clipped() {
        let (output, _) = render_text(Path::new("/f"), &format!("{}\nend", "é".repeat(100_000)), ALL);
        let text = output_text(output);
        assert!(
            text.len() < 5_000 && text.ends_with("[line truncated: 200000 bytes in total]\n2\tend"),
            "{}",
            text.len()
        );
    }

    #[test]
    fn long_text_ends_with_a_continuation_hint() {
        let text = "0123456789\n".repeat(20_000);
        let (output, whole) = render_text(Path::new("/f"), &text, ALL);
        assert!(!whole);
        let count = output.meta["file"]["numLines"].as_u64().unwrap();
        let text = output_text(output);
        assert!(text.len() <= MAX_SHOWN_BYTES + 100);
        assert!(
            text.ends_with(&format!(
                "[Showing lines 1-{count} of 20001. Continue with offset {}.]",
                count + 1
            ))
        );
    }

    /// Scans a text and renders the part.
    fn scan_and_render(text: &[u8], lines: LineRequest) -> Option<ToolOutput> {
        let cancel = CancellationToken::new();
        let span = lines.span_within(count_lines(text, &cancel).unwrap());
        scan_lines(text, span, &cancel).unwrap().render(Path::new("/f"))
    }

    #[test]
    fn scanning_equals_reading_the_whole_text() {
        let text: String = (1..=30_000).map(|n| format!("line {n}\r\n")).collect();
        for span in [
            LineRequest { start: 1, count: Some(3) },
            LineRequest { start: 29_999, count: None },
            LineRequest { start: 15_000, count: Some(200) },
            LineRequest { start: 30_001, count: Some(9) },
            LineRequest { start: 99_999, count: None },
            LineRequest { start: -3, count: Some(2) },
            LineRequest { start: -99_999, count: Some(2) },
        ] {
            assert_eq!(
                scan_and_render(text.as_bytes(), span),
                Some(render_text(Path::new("/f"), &text, span).0),
                "{span:?}"
            );
        }
    }

    #[test]
    fn scanning_keeps_little_of_an_endless_line() {
        let endless = [&b"first\n"[..], "é".repeat(1_000_000).as_bytes(), b"\nlast"].concat();
        let render_from =
            |start| output_text(scan_and_render(&endless, LineRequest { start, count: None }).unwrap());
        assert!(
            render_from(1).starts_with("1\tfirst") && render_from(1).ends_with("Continue with offset 2.]"),
            "{}",
            render_from(1).len()
        );
        assert!(
            render_from(2).starts_with("2\té") && render_from(2).ends_with("Continue with offset 3.]"),
            "{}",
            render_from(2).len()
        );
        assert_eq!(render_from(3), "3\tlast");
        assert_eq!(scan_and_render(b"a\0b\nc", ALL).map(output_text), None);
    }

    #[test]
    fn scanning_stops_on_cancellation() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(scan_lines(io::repeat(b'x'), ALL.span_within(1), &cancel).is_err());
        assert!(count_lines(io::repeat(b'x'), &cancel).is_err());
    }
}
