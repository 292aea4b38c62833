//! Search results of one file: match, counts or lines.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

/// Longer lines are clipped.
const MAX_LINE_BYTES: usize = 500;

/// What a search collects from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchGoal {
    Match,
    LineCount,
    MatchCount,
    /// The lines, up to a limit.
    Lines(OutputLimit),
    /// The matching parts of the lines, up to a limit.
    Parts(OutputLimit),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputLimit {
    pub(super) lines: usize,
    pub(super) bytes: usize,
}

impl OutputLimit {
    pub(super) fn is_reached(self, lines: usize, bytes: usize) -> bool {
        lines >= self.lines || bytes >= self.bytes
    }
}

#[derive(Debug, Default)]
pub(super) struct Excerpt {
    /// Matching lines or parts counted so far.
    pub(super) hits: u64,
    /// The shown lines, each with its newline.
    pub(super) text: String,
    /// Number of shown lines.
    pub(super) lines: usize,
}

#[derive(Debug)]
pub(super) enum FileOutcome {
    Match(Excerpt),
    NoMatch,
    /// Not a text file.
    Binary,
}

/// Receives the searcher's results for one file.
pub(super) struct ExcerptSink<'a> {
    matcher: &'a RegexMatcher,
    goal: SearchGoal,
    /// Computes the displayed file name; called once, at the first match.
    label: &'a dyn Fn() -> String,
    name: Option<String>,
    excerpt: Excerpt,
    is_binary: bool,
}

impl<'a> ExcerptSink<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, goal: SearchGoal, label: &'a dyn Fn() -> String) -> Self {
        Self { matcher, goal, label, name: None, excerpt: Excerpt::default(), is_binary: false }
    }

    pub(super) fn into_outcome(self) -> FileOutcome {
        match self.excerpt {
            _ if self.is_binary => FileOutcome::Binary,
            excerpt if excerpt.hits > 0 => FileOutcome::Match(excerpt),
            _ => FileOutcome::NoMatch,
        }
    }

    /// Counts the single matches instead of the matched lines.
    fn count_matches(&mut self, bytes: &[u8]) {
        self.excerpt.hits -= 1;
        self.for_each_match(bytes, |sink, _, _| sink.excerpt.hits += 1);
    }

    fn push_lines(&mut self, found: &SinkMatch<'_>) {
        let mut number = found.line_number();
        for line in found.lines() {
            let line = trim_line_end(line);
            let offset = if line.len() > MAX_LINE_BYTES { self.first_match_offset(line) } else { 0 };
            self.push_output_line(':', number, line, offset);
            number = number.map(|number| number + 1);
        }
    }

    fn push_matches(&mut self, found: &SinkMatch<'_>) {
        let bytes = found.bytes();
        self.for_each_match(bytes, |sink, part, lines_before| {
            let mut number = found.line_number().map(|number| number + lines_before);
            for line in part.split(|&byte| byte == b'\n') {
                sink.push_output_line(':', number, trim_line_end(line), 0);
                number = number.map(|number| number + 1);
            }
        });
    }

    /// Calls `callback` for every non-empty match with the number of newlines before it.
    fn for_each_match(&mut self, bytes: &[u8], mut callback: impl FnMut(&mut Self, &[u8], u64)) {
        let text = trim_line_end(bytes);
        let matcher = self.matcher;
        let (mut position, mut line_ends) = (0, 0);
        // A regex matcher cannot fail.
        let _ = matcher.find_iter(text, |found| {
            line_ends += text[position..found.start()].iter().filter(|&&byte| byte == b'\n').count() as u64;
            position = found.start();
            if !found.is_empty() {
                callback(self, &text[found.start()..found.end()], line_ends);
            }
            true
        });
    }

    fn first_match_offset(&self, line: &[u8]) -> usize {
        self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
    }

    fn push_output_line(&mut self, separator: char, number: Option<u64>, line: &[u8], offset: usize) {
        let text = &mut self.excerpt.text;
        text.push_str(self.name.get_or_insert_with(self.label));
        text.push(separator);
        if let Some(number) = number {
            text.push_str(&number.to_string());
            text.push(separator);
        }
        push_clipped_line(text, line, offset);
        text.push('\n');
        self.excerpt.lines += 1;
    }

    fn has_capacity(&self) -> bool {
        match self.goal {
            SearchGoal::Match => false,
            SearchGoal::LineCount | SearchGoal::MatchCount => true,
            SearchGoal::Lines(limit) | SearchGoal::Parts(limit) => {
                !limit.is_reached(self.excerpt.lines, self.excerpt.text.len())
            }
        }
    }
}

impl Sink for ExcerptSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.excerpt.hits += 1;
        match self.goal {
            // Multi-line matches may share lines, so the matches are counted instead.
            SearchGoal::LineCount if searcher.multi_line_with_matcher(self.matcher) => {
                self.count_matches(found.bytes());
            }
            SearchGoal::Match | SearchGoal::LineCount => {}
            SearchGoal::MatchCount => self.count_matches(found.bytes()),
            SearchGoal::Lines(_) => self.push_lines(found),
            SearchGoal::Parts(_) => self.push_matches(found),
        }
        Ok(self.has_capacity())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push_output_line('-', context.line_number(), trim_line_end(context.bytes()), 0);
        Ok(self.has_capacity())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.excerpt.text.push_str("--\n");
        self.excerpt.lines += 1;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Appends a line; a long one is clipped around `offset`.
fn push_clipped_line(text: &mut String, line: &[u8], offset: usize) {
    if line.len() <= MAX_LINE_BYTES {
        text.push_str(&String::from_utf8_lossy(line));
        return;
    }
    let start = char_start(line, offset.saturating_sub(MAX_LINE_BYTES / 4).min(line.len() - MAX_LINE_BYTES));
    let end = char_start(line, start + MAX_LINE_BYTES);
    if start > 0 {
        text.push('…');
    }
    text.push_str(&String::from_utf8_lossy(&line[start..end]));
    if end < line.len() {
        text.push('…');
    }
    text.push_str(&format!(" [part of a line of {} bytes]", line.len()));
}

/// The last character boundary up to `offset`.
fn char_start(line: &[u8], offset: usize) -> usize {
    (0..=offset).rev().find(|&offset| line.get(offset).is_none_or(|byte| byte & 0xC0 != 0x80)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_clipped_around_the_match() {
        let mut text = String::new();
        let line = format!("{}needle{}", "ä".repeat(500), "b".repeat(1000));
        push_clipped_line(&mut text, line.as_bytes(), 1000);
        assert!(text.starts_with("…ä") && text.contains("äneedleb"), "{text}");
        assert!(text.ends_with("b… [part of a line of 2006 bytes]"), "{text}");
        assert!(text.len() < 560);
    }

    #[test]
    fn the_end_of_a_long_line_is_reached() {
        let mut text = String::new();
        push_clipped_line(&mut text, format!("{}needle", "a".repeat(1000)).as_bytes(), 1000);
        assert!(text.contains("aneedle [part"), "{text}");
    }
}
