//! The answer: a page of the findings as text for the model, and the same as a structure for the host.

use std::path::Path;

use serde_json::{Value, json};

use super::Input;
use super::excerpt::{Excerpt, Room};
use super::search::{Findings, Found};
use crate::tools::Done;
use crate::tools::walk::{self, Searched};

/// How many lines or files a page has if the call does not say.
const LIMIT: usize = 250;

/// How long a page may get, in bytes.
const LONGEST: usize = 30_000;

/// About the longest line that an excerpt has.
const LINE: usize = 1_000;

/// The part of the findings that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    offset: usize,
    /// `None`: as many as the length allows.
    limit: Option<usize>,
}

impl Page {
    /// The page that a call asks for.
    pub(super) fn of(input: &Input) -> Self {
        let limit = input.head_limit.unwrap_or(LIMIT);
        Self { offset: input.offset.unwrap_or(0), limit: (limit > 0).then_some(limit) }
    }

    /// What must be collected to fill the page and to know whether more follows.
    pub(super) fn room(self) -> Room {
        let lines =
            self.limit.map_or(usize::MAX, |limit| self.offset.saturating_add(limit).saturating_add(1));
        Room { lines, bytes: self.offset.saturating_mul(LINE).saturating_add(LONGEST) }
    }

    /// Takes the page's part of the lines.
    fn cut<'a>(self, lines: impl Iterator<Item = &'a str>) -> Cut<'a> {
        let mut cut = Cut { lines: Vec::new(), skipped: 0, has_more: false };
        let mut bytes = 0;
        for line in lines {
            if cut.skipped < self.offset {
                cut.skipped += 1;
                continue;
            }
            bytes += line.len() + 1;
            let is_full = self.limit.is_some_and(|limit| cut.lines.len() >= limit) || bytes > LONGEST;
            if is_full && !cut.lines.is_empty() {
                cut.has_more = true;
                break;
            }
            cut.lines.push(line);
        }
        cut
    }

    /// Adds to the meta what of the page had an effect.
    fn note(self, meta: &mut Value, cut: &Cut<'_>) {
        if cut.has_more {
            meta["appliedLimit"] = cut.lines.len().into();
        }
        if self.offset > 0 {
            meta["appliedOffset"] = self.offset.into();
        }
    }
}

/// The lines on a page.
struct Cut<'a> {
    lines: Vec<&'a str>,
    skipped: usize,
    has_more: bool,
}

impl Cut<'_> {
    /// Says which part was shown, if it was not all.
    fn remark(&self, things: &str) -> String {
        let upto = self.skipped + self.lines.len();
        match (self.has_more, self.lines.is_empty(), self.skipped) {
            (true, ..) => format!(
                "\n({things} {} to {upto}; there are more. Go on with offset {upto}, or narrow the search.)",
                self.skipped + 1
            ),
            (false, true, 1..) => {
                format!("\n(Nothing left: there are only {} {}.)", self.skipped, things.to_lowercase())
            }
            (false, false, 1..) => format!("\n({things} {} to {upto}; there are no more.)", self.skipped + 1),
            (false, _, 0) => String::new(),
        }
    }
}

/// Makes the answer.
pub(super) fn answer(searched: Searched<Found>, page: &Page, cwd: &Path) -> Done {
    let Searched { found: Found { what, gaps, is_binary }, out_of_time } = searched;
    let (mut text, mut meta) = match what {
        Findings::Files(files) => {
            let names: Vec<String> = files.iter().map(|(_, path)| walk::shown(path, cwd)).collect();
            files_answer(&names, *page)
        }
        Findings::Counts(counts) => {
            let lines: Vec<String> =
                counts.iter().map(|(path, count)| format!("{}:{count}", walk::shown(path, cwd))).collect();
            counts_answer(&lines, counts.values().sum(), *page)
        }
        Findings::Lines { excerpts, has_context } => lines_answer(&excerpts, has_context, *page),
    };
    if is_binary {
        text.push_str("\n(The file is binary.)");
    }
    text.push_str(&walk::gaps(&gaps, out_of_time, cwd));
    if out_of_time {
        meta["timedOut"] = true.into();
    }
    Done::text(text, meta)
}

fn files_answer(names: &[String], page: Page) -> (String, Value) {
    let cut = page.cut(names.iter().map(String::as_str));
    let mut meta = json!({"mode": "files_with_matches", "numFiles": cut.lines.len(), "filenames": cut.lines});
    if cut.lines.len() < names.len() {
        meta["totalFiles"] = names.len().into();
    }
    page.note(&mut meta, &cut);
    let text = match names.len() {
        0 => "No files found".to_owned(),
        total => format!("Found {}{}{}", files(total), below(&cut.lines), cut.remark("Files")),
    };
    (text, meta)
}

fn counts_answer(lines: &[String], total: u64, page: Page) -> (String, Value) {
    let cut = page.cut(lines.iter().map(String::as_str));
    let content = cut.lines.join("\n");
    let mut meta = json!({
        "mode": "count", "numFiles": lines.len(), "filenames": [], "content": content, "numMatches": total,
    });
    page.note(&mut meta, &cut);
    let text = match lines.len() {
        0 => "No matches found".to_owned(),
        found => {
            let noun = if total == 1 { "matching line" } else { "matching lines" };
            let total = format!("\n\n{total} {noun} in {}", files(found));
            format!("{content}{total}{}", cut.remark("Files")).trim_start_matches('\n').to_owned()
        }
    };
    (text, meta)
}

fn lines_answer(excerpts: &[Excerpt], has_context: bool, page: Page) -> (String, Value) {
    let mark = has_context.then_some("--");
    let lines = excerpts.iter().enumerate().flat_map(|(at, excerpt)| {
        mark.filter(|_| at > 0).into_iter().chain(excerpt.text.split_terminator('\n'))
    });
    let cut = page.cut(lines);
    let content = cut.lines.join("\n");
    let text = match excerpts {
        [] => "No matches found".to_owned(),
        _ => format!("{content}{}", cut.remark("Lines")).trim_start_matches('\n').to_owned(),
    };
    let mut meta = json!({
        "mode": "content", "numFiles": files_on(&cut, excerpts, has_context), "filenames": [], "content": content, "numLines": cut.lines.len(),
    });
    page.note(&mut meta, &cut);
    (text, meta)
}

/// How many files the lines of a page come from.
fn files_on(cut: &Cut<'_>, excerpts: &[Excerpt], has_context: bool) -> usize {
    let mut upto = 0;
    let ends = excerpts.iter().enumerate().map(|(at, excerpt)| {
        let from = upto;
        upto += excerpt.lines + usize::from(has_context && at > 0);
        (from, upto)
    });
    ends.filter(|&(from, upto)| from < cut.skipped + cut.lines.len() && upto > cut.skipped).count()
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// The lines, each after a line end.
fn below(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| ["\n", line]).collect()
}
