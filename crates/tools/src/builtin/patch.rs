//! Text changes as hunks for the host and as a numbered snippet for the model.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use similar::{DiffOp, DiffTag, group_diff_ops};
use whimbrel_os::clock;
use whimbrel_session_store::text_diff;

use crate::workspace::LineCounts;

/// One changed region with context lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// First line in the old text, from 1.
    old_start: usize,
    old_lines: usize,
    /// First line in the new text, from 1.
    new_start: usize,
    new_lines: usize,
    /// Lines with the prefix ` ` (both), `-` (old only) or `+` (new only).
    lines: Vec<String>,
}

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// Maximum size of all hunks sent to the host.
const MAX_HUNK_BYTES: usize = 200_000;
/// Time limit of the diff; after it the rest counts as changed.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Largest text sent whole to the host, measured as JSON.
const MAX_HOST_TEXT_BYTES: usize = 280_000;

/// Returns the text for the host, or null if the frame might exceed 1 MB.
pub(super) fn text_for_host(text: &str) -> Value {
    if fits_host_frame(text) { text.into() } else { Value::Null }
}

pub(super) fn fits_host_frame(text: &str) -> bool {
    text.len() <= MAX_HOST_TEXT_BYTES && json_size(text) <= MAX_HOST_TEXT_BYTES
}

/// Size of a text as JSON: quotes, backslashes and control characters take more than one byte.
fn json_size(text: &str) -> usize {
    let is_short_escape = |byte| matches!(byte, b'\n' | b'\r' | b'\t');
    let escaped =
        count_bytes(text.as_bytes(), |byte| is_short_escape(byte) | (byte == b'"') | (byte == b'\\'));
    let unicode_escapes = count_bytes(text.as_bytes(), |byte| (byte < b' ') & !is_short_escape(byte));
    text.len() + escaped + unicode_escapes * 5
}

pub(super) fn count_newlines(bytes: &[u8]) -> usize {
    count_bytes(bytes, |byte| byte == b'\n')
}

/// Counts matching bytes in chunks of 255 so that a chunk's count fits a byte and the loop vectorizes.
fn count_bytes(bytes: &[u8], predicate: impl Fn(u8) -> bool) -> usize {
    bytes
        .chunks(255)
        .map(|chunk| usize::from(chunk.iter().map(|byte| u8::from(predicate(*byte))).sum::<u8>()))
        .sum()
}

/// Computes the hunks between two texts. Hunks beyond `MAX_HUNK_BYTES` are dropped.
pub fn compute_hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (head, tail) = common_ends(old, new);
    let first = count_newlines(&old.as_bytes()[..head]) + 1;
    let old: Vec<&str> = old[head..old.len() - tail].split_inclusive('\n').collect();
    let new: Vec<&str> = new[head..new.len() - tail].split_inclusive('\n').collect();
    let deadline = clock::monotonic() + DIFF_TIMEOUT;
    let changes = text_diff::diff_ops(&old, &new, deadline);
    let mut remaining = MAX_HUNK_BYTES;
    group_diff_ops(changes, CONTEXT_LINES)
        .iter()
        .filter(|group| group.iter().any(|change| change.tag() != DiffTag::Equal))
        .map(|group| build_hunk(group, &old, &new, first))
        .take_while(|hunk| {
            let size = hunk.lines.iter().map(|line| json_size(line) + 3).sum();
            let fits = size <= remaining;
            remaining = remaining.saturating_sub(size);
            fits
        })
        .collect()
}

pub(super) fn count_changed_lines(hunks: &[Hunk]) -> LineCounts {
    let count = |mark: char| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.starts_with(mark)).count() as u64
    };
    LineCounts { added: count('+'), removed: count('-') }
}

/// Unified diff format.
impl fmt::Display for Hunk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { old_start, old_lines, new_start, new_lines, lines } = self;
        writeln!(out, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@")?;
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

fn build_hunk(changes: &[DiffOp], old: &[&str], new: &[&str], first: usize) -> Hunk {
    let mut lines = Vec::new();
    for change in changes {
        let (tag, before, after) = change.as_tag_tuple();
        if tag == DiffTag::Equal {
            before.for_each(|line| push_marked_line(' ', old[line], &mut lines));
        } else {
            before.for_each(|line| push_marked_line('-', old[line], &mut lines));
            after.for_each(|line| push_marked_line('+', new[line], &mut lines));
        }
    }
    let old_lines = changes.iter().map(|change| change.old_range().len()).sum();
    let new_lines = changes.iter().map(|change| change.new_range().len()).sum();
    let (old_start, new_start) =
        changes.first().map_or((0, 0), |change| (change.old_range().start, change.new_range().start));
    Hunk { old_start: old_start + first, old_lines, new_start: new_start + first, new_lines, lines }
}

fn push_marked_line(mark: char, line: &str, lines: &mut Vec<String>) {
    let text = line.strip_suffix('\n').unwrap_or(line);
    lines.push(format!("{mark}{}", text.strip_suffix('\r').unwrap_or(text)));
    if text.len() == line.len() {
        lines.push("\\ No newline at end of file".into());
    }
}

/// Bytes at the start and end that both texts share, in whole lines and less the context. Only the rest is diffed.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = common_prefix_len(old.as_bytes().chunks(64), new.as_bytes().chunks(64));
    let head = context_start(old, same);
    let (old_rest, new_rest) = (&old.as_bytes()[head..], &new.as_bytes()[head..]);
    let same = common_suffix_len(old_rest, new_rest);
    let tail = &old.as_bytes()[old.len() - same..];
    let mut newlines =
        tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1);
    (head, newlines.nth(CONTEXT_LINES).map_or(0, |index| same - index))
}

/// Start of the line that is [`CONTEXT_LINES`] lines before the line at `position`.
fn context_start(text: &str, position: usize) -> usize {
    let mut newlines =
        text.as_bytes()[..position].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    newlines.nth(CONTEXT_LINES).map_or(0, |(index, _)| index + 1)
}

fn common_prefix_len<'a>(old: impl Iterator<Item = &'a [u8]>, new: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut same = 0;
    for (old, new) in old.zip(new) {
        if old == new {
            same += old.len();
        } else {
            return same + old.iter().zip(new).take_while(|(a, b)| a == b).count();
        }
    }
    same
}

fn common_suffix_len(old: &[u8], new: &[u8]) -> usize {
    let mut same = 0;
    for (old, new) in old.rchunks(64).zip(new.rchunks(64)) {
        if old == new {
            same += old.len();
        } else {
            return same + old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        }
    }
    same
}

/// Renders the first changed region with line numbers, at most twelve lines.
pub(super) fn render_snippet(hunks: &[Hunk]) -> String {
    let Some(hunk) = hunks.first() else { return String::new() };
    let new_lines = hunk.lines.iter().filter(|line| line.starts_with([' ', '+'])).zip(hunk.new_start..);
    let lines =
        new_lines.take(12).map(|(line, number)| format!("{number}\t{}", truncate_chars(&line[1..], 200)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Truncates a text to a number of characters and appends `...`.
pub(super) fn truncate_chars(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_context() {
        let expected = Hunk {
            old_start: 1,
            old_lines: 3,
            new_start: 1,
            new_lines: 3,
            lines: [" one", "-two", "+2", " three"].map(String::from).to_vec(),
        };
        assert_eq!(compute_hunks("one\ntwo\nthree\n", "one\n2\nthree\n"), [expected]);
    }

    #[test]
    fn distant_changes_are_separate_hunks_with_correct_lines() {
        let old: String = (1..=100).map(|n| format!("{n}\n")).collect();
        let new = old.replace("20\n", "twenty\nand\n").replace("90\n", "ninety\n");
        let found = compute_hunks(&old, &new);
        let positions: Vec<_> =
            found.iter().map(|h| (h.old_start, h.old_lines, h.new_start, h.new_lines)).collect();
        assert_eq!(positions, [(17, 7, 17, 8), (87, 7, 88, 7)]);
        assert_eq!(
            render_snippet(&found),
            "17\t17\n18\t18\n19\t19\n20\ttwenty\n21\tand\n22\t21\n23\t22\n24\t23"
        );
    }

    #[test]
    fn a_missing_final_newline_is_marked() {
        assert_eq!(compute_hunks("a", "a\n")[0].lines, ["-a", "\\ No newline at end of file", "+a"]);
        assert_eq!(compute_hunks("", "a\n")[0].lines, ["+a"]);
        assert_eq!(compute_hunks("same\n", "same\n"), []);
    }

    #[test]
    fn json_size_equals_serialized_length() {
        for text in ["plain", "a \"quoted\" \\ line\n\tand\r", "\u{1b}[0m é", ""] {
            assert_eq!(json_size(text) + 2, serde_json::to_string(text).unwrap().len(), "{text:?}");
        }
    }

    fn apply_hunks(old: &str, hunks: &[Hunk]) -> Vec<String> {
        let old: Vec<&str> = old.split_terminator('\n').collect();
        let mut new = Vec::new();
        let mut position = 0;
        for hunk in hunks {
            new.extend(old[position..hunk.old_start - 1].iter().map(ToString::to_string));
            assert_eq!(new.len() + 1, hunk.new_start);
            new.extend(hunk.lines.iter().filter(|l| l.starts_with([' ', '+'])).map(|l| l[1..].to_owned()));
            position = hunk.old_start - 1 + hunk.old_lines;
        }
        new.extend(old[position.min(old.len())..].iter().map(ToString::to_string));
        new
    }

    proptest! {
        #[test]
        fn hunks_transform_the_old_text_into_the_new(old in "([abc]{0,2}\n){0,40}", new in "([abc]{0,2}\n){0,40}") {
            let expected: Vec<&str> = new.split_terminator('\n').collect();
            prop_assert_eq!(apply_hunks(&old, &compute_hunks(&old, &new)), expected);
        }
    }
}
