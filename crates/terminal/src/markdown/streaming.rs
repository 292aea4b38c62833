//! Markdown that arrives in pieces. Blocks that cannot change any more are handed out once; the unfinished one can be
//! shown as it is.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use super::highlight::Highlighter;
use super::render::{code_line, options, render};
use crate::text::Line;
use crate::theme::Theme;

/// A text that is still being written.
#[derive(Debug)]
pub(crate) struct StreamingMarkdown {
    theme: Theme,
    /// The source since the last finished block.
    pending: String,
    /// A block of code whose lines are handed out one by one.
    fence: Option<Fence>,
    /// Whether a blank line comes before the next block.
    gap: Gap,
}

/// An open block of code.
#[derive(Debug)]
struct Fence {
    /// The character and the number of the marks that opened it.
    mark: char,
    length: usize,
    indent: usize,
    highlighter: Highlighter,
}

/// What comes before the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Nothing: it is the first one, or it goes on with a list.
    None,
    Blank,
}

/// A block of the pending source.
struct Block {
    range: Range<usize>,
    /// Where each item of a list begins; empty for other blocks.
    items: Vec<usize>,
    is_fence: bool,
}

impl StreamingMarkdown {
    pub(crate) fn new(theme: Theme) -> Self {
        Self { theme, pending: String::new(), fence: None, gap: Gap::None }
    }

    /// Adds text and returns the lines that are final.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<Line> {
        self.pending.push_str(text);
        if !text.contains('\n') {
            return Vec::new();
        }
        let mut lines = Vec::new();
        loop {
            let before = self.pending.len();
            if self.fence.is_some() {
                self.take_code(&mut lines);
            } else {
                self.take_blocks(columns, &mut lines);
            }
            if self.pending.len() == before {
                return lines;
            }
        }
    }

    /// The unfinished block.
    pub(crate) fn tail(&self, columns: usize) -> Vec<Line> {
        match &self.fence {
            Some(fence) => fence.clone_highlighter_lines(&self.pending),
            None => self.render_block(without_open_marks(&self.pending), columns),
        }
    }

    /// Ends the text and returns what is left of it.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.pending.is_empty() && !self.pending.ends_with('\n') {
            lines = self.push("\n", columns);
        }
        if self.fence.take().is_none() {
            lines.extend(self.render_block(&self.pending, columns));
        }
        self.pending.clear();
        self.gap = Gap::None;
        lines
    }

    /// Renders a piece of the source, with the blank line before it.
    fn render_block(&self, source: &str, columns: usize) -> Vec<Line> {
        let block = render(source, columns, &self.theme);
        let gap = (self.gap == Gap::Blank && !block.is_empty()).then(Line::empty);
        gap.into_iter().chain(block).collect()
    }

    /// Takes the blocks that are followed by another one, and the finished items of a list that goes on.
    fn take_blocks(&mut self, columns: usize, lines: &mut Vec<Line>) {
        // The last line may still grow, and its beginning decides what it is.
        let complete = self.pending.rfind('\n').map_or(0, |at| at + 1);
        let blocks = blocks(&self.pending[..complete]);
        let mut taken = 0;
        for (at, block) in blocks.iter().enumerate() {
            let is_last = at + 1 == blocks.len();
            if !is_last {
                let source = &self.pending[taken..blocks[at + 1].range.start];
                lines.extend(self.render_block(source, columns));
                taken = blocks[at + 1].range.start;
                self.gap = Gap::Blank;
            } else if block.is_fence {
                let source = &self.pending[block.range.clone()];
                if let Some(fence) = Fence::open(source, self.theme) {
                    lines.extend((self.gap == Gap::Blank).then(Line::empty));
                    taken = block.range.start + source.find('\n').map_or(source.len(), |at| at + 1);
                    self.fence = Some(fence);
                }
            } else if let Some(item) = block.items.last().filter(|item| **item > block.range.start) {
                lines.extend(self.render_block(&self.pending[taken..*item], columns));
                taken = *item;
                self.gap = Gap::None;
            } else if self.is_closed(block, complete) {
                lines.extend(self.render_block(&self.pending[taken..block.range.end], columns));
                taken = block.range.end;
                self.gap = Gap::Blank;
            }
        }
        self.pending.drain(..taken);
    }

    /// True for a block that a blank line ends: what follows cannot belong to it.
    fn is_closed(&self, block: &Block, complete: usize) -> bool {
        let source = &self.pending[block.range.clone()];
        let is_open_ended = !block.items.is_empty() || source.starts_with(['>', '<', ' ', '\t']);
        let rest = &self.pending[block.range.end..complete];
        let ends_with_break = source.ends_with('\n') && rest.contains('\n');
        !is_open_ended && (ends_with_break || source.starts_with('#'))
    }

    /// Takes complete lines of code, up to the end of their block.
    fn take_code(&mut self, lines: &mut Vec<Line>) {
        let Some(fence) = &mut self.fence else { return };
        let mut taken = 0;
        while let Some(length) = self.pending[taken..].find('\n') {
            let line = &self.pending[taken..taken + length];
            taken += length + 1;
            if fence.is_closed_by(line) {
                self.fence = None;
                self.gap = Gap::Blank;
                break;
            }
            lines.push(fence.line(line));
        }
        self.pending.drain(..taken);
    }
}

impl Fence {
    /// Reads the first line of a block of code.
    fn open(source: &str, theme: Theme) -> Option<Self> {
        let line = source.lines().next()?;
        let marks = line.trim_start_matches(' ');
        let mark = marks.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = marks.chars().take_while(|character| *character == mark).count();
        let language = marks[length..].trim().split([' ', ',', '{']).next().unwrap_or_default();
        Some(Self {
            mark,
            length,
            indent: line.len() - marks.len(),
            highlighter: Highlighter::new(language, theme),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim();
        line.len() - line.trim_start().len() < 4
            && marks.len() >= self.length
            && marks.chars().all(|character| character == self.mark)
    }

    fn line(&mut self, text: &str) -> Line {
        let blanks = text.len() - text.trim_start_matches(' ').len();
        let text = text[blanks.min(self.indent)..].trim_end_matches('\r');
        code_line(self.highlighter.line(text))
    }

    /// The line that is being written.
    fn clone_highlighter_lines(&self, pending: &str) -> Vec<Line> {
        let is_mark = |text: &str| !text.is_empty() && text.trim().chars().all(|c| c == self.mark);
        if pending.is_empty() || is_mark(pending) {
            return Vec::new();
        }
        let mut copy = Self { ..*self };
        vec![copy.line(pending)]
    }
}

/// The outermost blocks of a source.
fn blocks(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let range = start_of_line(source, range.start)..range.end;
                    let is_fence = matches!(tag, Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(_)));
                    blocks.push(Block { range, items: Vec::new(), is_fence });
                } else if depth == 1
                    && tag == Tag::Item
                    && let Some(block) = blocks.last_mut()
                {
                    block.items.push(start_of_line(source, range.start));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(Block { range, items: Vec::new(), is_fence: false }),
            _ => {}
        }
    }
    blocks
}

/// Where the line of a position begins: the indent belongs to the block.
fn start_of_line(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Leaves out marks at the end that nothing follows yet: they would be shown for a moment and then vanish.
fn without_open_marks(source: &str) -> &str {
    let end = source.trim_end_matches(['*', '_', '`', '~', '#', '[', '!']);
    let is_start_of_line = end.is_empty() || end.ends_with('\n');
    if is_start_of_line { end } else { end.strip_suffix("\n-").unwrap_or(end) }
}

#[cfg(test)]
mod tests;
