//! Renders a page of the results as text for the model and as JSON for the host.

use std::path::Path;

use serde_json::{Value, json};

use super::GrepInput;
use super::excerpt::{Excerpt, OutputLimit};
use super::search::{GrepFindings, GrepMatches};
use crate::api::ToolOutput;
use crate::builtin::walk::{self, SearchOutcome};

/// Default number of lines or files on a page.
const DEFAULT_PAGE_SIZE: usize = 250;

/// Maximum size of a page in bytes.
const MAX_PAGE_BYTES: usize = 30_000;

/// Estimated maximum length of an excerpt line.
const LINE_BYTES_ESTIMATE: usize = 1_000;

/// The requested part of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultPage {
    offset: usize,
    /// `None`: limited by size only.
    limit: Option<usize>,
}

impl ResultPage {
    pub(super) fn from_input(input: &GrepInput) -> Self {
        let limit = input.head_limit.unwrap_or(DEFAULT_PAGE_SIZE);
        Self { offset: input.offset.unwrap_or(0), limit: (limit > 0).then_some(limit) }
    }

    /// What must be collected to fill the page and to know whether more follows.
    pub(super) fn collection_limit(self) -> OutputLimit {
        let lines =
            self.limit.map_or(usize::MAX, |limit| self.offset.saturating_add(limit).saturating_add(1));
        OutputLimit {
            lines,
            bytes: self.offset.saturating_mul(LINE_BYTES_ESTIMATE).saturating_add(MAX_PAGE_BYTES),
        }
    }

    /// Selects the lines of the page.
    fn slice<'a>(self, lines: impl Iterator<Item = &'a str>) -> PageSlice<'a> {
        let mut slice = PageSlice { lines: Vec::new(), skipped: 0, has_more: false };
        let mut bytes = 0;
        for line in lines {
            if slice.skipped < self.offset {
                slice.skipped += 1;
                continue;
            }
            bytes += line.len() + 1;
            let is_full =
                self.limit.is_some_and(|limit| slice.lines.len() >= limit) || bytes > MAX_PAGE_BYTES;
            if is_full && !slice.lines.is_empty() {
                slice.has_more = true;
                break;
            }
            slice.lines.push(line);
        }
        slice
    }

    /// Adds limit and offset to the metadata if they had an effect.
    fn add_meta(self, meta: &mut Value, slice: &PageSlice<'_>) {
        if slice.has_more {
            meta["appliedLimit"] = slice.lines.len().into();
        }
        if self.offset > 0 {
            meta["appliedOffset"] = self.offset.into();
        }
    }
}

/// The lines on a page.
struct PageSlice<'a> {
    lines: Vec<&'a str>,
    skipped: usize,
    has_more: bool,
}

impl PageSlice<'_> {
    /// Tells which part is shown, if not all.
    fn position_note(&self, noun: &str) -> String {
        let last = self.skipped + self.lines.len();
        match (self.has_more, self.lines.is_empty(), self.skipped) {
            (true, ..) => format!(
                "\n({noun} {} to {last}; there are more. Continue with offset {last}, or narrow the search.)",
                self.skipped + 1
            ),
            (false, true, 1..) => {
                format!("\n(No more results: there are only {} {}.)", self.skipped, noun.to_lowercase())
            }
            (false, false, 1..) => format!("\n({noun} {} to {last}; there are no more.)", self.skipped + 1),
            (false, _, 0) => String::new(),
        }
    }
}

pub(super) fn search_result(
    outcome: SearchOutcome<GrepMatches>,
    page: &ResultPage,
    cwd: &Path,
) -> ToolOutput {
    let SearchOutcome { found: GrepMatches { findings, skipped, is_binary }, timed_out } = outcome;
    let (mut text, mut meta) = match findings {
        GrepFindings::Files(files) => {
            let names: Vec<String> = files.iter().map(|(_, path)| walk::display_path(path, cwd)).collect();
            render_files(&names, *page)
        }
        GrepFindings::Counts(counts) => {
            let lines: Vec<String> = counts
                .iter()
                .map(|(path, count)| format!("{}:{count}", walk::display_path(path, cwd)))
                .collect();
            render_counts(&lines, counts.values().sum(), *page)
        }
        GrepFindings::Lines { excerpts, has_context } => render_lines(&excerpts, has_context, *page),
    };
    if is_binary {
        text.push_str("\n(The file is binary.)");
    }
    text.push_str(&walk::render_skipped(&skipped, timed_out, cwd));
    if timed_out {
        meta["timedOut"] = true.into();
    }
    ToolOutput::text(text, meta)
}

fn render_files(names: &[String], page: ResultPage) -> (String, Value) {
    let slice = page.slice(names.iter().map(String::as_str));
    let mut meta =
        json!({"mode": "files_with_matches", "numFiles": slice.lines.len(), "filenames": slice.lines});
    if slice.lines.len() < names.len() {
        meta["totalFiles"] = names.len().into();
    }
    page.add_meta(&mut meta, &slice);
    let text = match names.len() {
        0 => "No files found".to_owned(),
        total => format!(
            "Found {}{}{}",
            format_file_count(total),
            prefix_with_newlines(&slice.lines),
            slice.position_note("Files")
        ),
    };
    (text, meta)
}

fn render_counts(lines: &[String], total: u64, page: ResultPage) -> (String, Value) {
    let slice = page.slice(lines.iter().map(String::as_str));
    let content = slice.lines.join("\n");
    let mut meta = json!({
        "mode": "count", "numFiles": lines.len(), "filenames": [], "content": content, "numMatches": total,
    });
    page.add_meta(&mut meta, &slice);
    let text = match lines.len() {
        0 => "No matches found".to_owned(),
        found => {
            let noun = if total == 1 { "matching line" } else { "matching lines" };
            let total = format!("\n\n{total} {noun} in {}", format_file_count(found));
            format!("{content}{total}{}", slice.position_note("Files")).trim_start_matches('\n').to_owned()
        }
    };
    (text, meta)
}

fn render_lines(excerpts: &[Excerpt], has_context: bool, page: ResultPage) -> (String, Value) {
    let separator = has_context.then_some("--");
    let lines = excerpts.iter().enumerate().flat_map(|(index, excerpt)| {
        separator.filter(|_| index > 0).into_iter().chain(excerpt.text.split_terminator('\n'))
    });
    let slice = page.slice(lines);
    let content = slice.lines.join("\n");
    let text = match excerpts {
        [] => "No matches found".to_owned(),
        _ => format!("{content}{}", slice.position_note("Lines")).trim_start_matches('\n').to_owned(),
    };
    let mut meta = json!({
        "mode": "content", "numFiles": count_files_on_page(&slice, excerpts, has_context), "filenames": [], "content": content, "numLines": slice.lines.len(),
    });
    page.add_meta(&mut meta, &slice);
    (text, meta)
}

/// Number of files that the lines of a page come from.
fn count_files_on_page(slice: &PageSlice<'_>, excerpts: &[Excerpt], has_context: bool) -> usize {
    let mut end = 0;
    let ends = excerpts.iter().enumerate().map(|(index, excerpt)| {
        let start = end;
        end += excerpt.lines + usize::from(has_context && index > 0);
        (start, end)
    });
    ends.filter(|&(start, end)| start < slice.skipped + slice.lines.len() && end > slice.skipped).count()
}

fn format_file_count(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Prefixes each line with a newline.
fn prefix_with_newlines(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| ["\n", line]).collect()
}
