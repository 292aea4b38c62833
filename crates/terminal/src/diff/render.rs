//! A diff as lines: numbers, signs, colors of the language, changed words marked. The signs tell without colors.

use std::ops::Range;

use super::file_diff::{DiffLine, FileChange, FileDiff, Hunk, Side};
use super::words::changed_words;
use crate::markdown::highlight::Highlighter;
use crate::text::{Flow, Line, Style, sanitize};
use crate::theme::Theme;

/// How much of a long text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// At most so many lines, with a note on the rest.
    At(usize),
    /// Everything.
    None,
}

impl Fold {
    /// Cuts lines, and says how many are hidden.
    pub(crate) fn apply(self, mut lines: Vec<Line>, theme: &Theme) -> Vec<Line> {
        let Self::At(limit) = self else { return lines };
        // One hidden line would take as much room as the note.
        if lines.len() > limit + 1 {
            let hidden = lines.len() - limit;
            lines.truncate(limit);
            lines.push(Line::styled(&format!("… {hidden} more lines (Ctrl+O shows all)"), theme.dim));
        }
        lines
    }
}

/// Renders the hunks of a diff without a title. Long lines are whole: the caller cuts or wraps them.
pub(crate) fn render(diff: &FileDiff, theme: &Theme, fold: Fold) -> Vec<Line> {
    let numbers = diff.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.number);
    let digits = if diff.has_numbers { numbers.max().unwrap_or(0).to_string().len() } else { 0 };
    let layout = Layout { digits, theme, path: &diff.path, change: diff.change };
    let mut lines = Vec::new();
    for (at, hunk) in diff.hunks.iter().enumerate() {
        if at > 0 {
            lines.push(Line::styled(&format!("{:>digits$} ⋮", ""), theme.dim));
        }
        layout.hunk(hunk, &mut lines);
    }
    fold.apply(lines, theme)
}

struct Layout<'a> {
    digits: usize,
    theme: &'a Theme,
    path: &'a str,
    change: FileChange,
}

impl Layout<'_> {
    fn hunk(&self, hunk: &Hunk, lines: &mut Vec<Line>) {
        let mut old = Highlighter::for_path(self.path, *self.theme);
        let mut new = old;
        let marks = word_marks(&hunk.lines);
        for (line, marks) in hunk.lines.iter().zip(&marks) {
            let text = expand_tabs(&line.text);
            let colored = match line.side {
                Side::Old => old.line(&text),
                Side::New => new.line(&text),
                Side::Both => {
                    old.line(&text);
                    new.line(&text)
                }
            };
            lines.push(self.line(line, &text, colored, marks));
        }
    }

    fn line(&self, line: &DiffLine, text: &str, colored: Line, marks: &[Range<usize>]) -> Line {
        let theme = self.theme;
        let (sign, style, word) = match line.side {
            Side::Both => (' ', theme.dim, Style::PLAIN),
            Side::Old => ('-', theme.removed, theme.removed_word),
            Side::New => ('+', theme.added, theme.added_word),
        };
        let mut row = Line::empty().flow(Flow::Anywhere);
        if self.digits > 0 {
            row.push(&format!("{:>width$} ", line.number, width = self.digits), theme.dim);
        }
        row.push(&format!("{sign} "), style);
        let indent = " ".repeat(row.width());
        match line.side {
            // A new file is read rather than compared: it keeps the colors of its language.
            Side::Both => _ = row.append(colored),
            Side::New if self.change == FileChange::Created => _ = row.append(colored),
            Side::Old | Side::New => push_marked(&mut row, text, style, word, marks),
        }
        row.continued_with(&indent, Style::PLAIN)
    }
}

/// Adds a changed line: its color tells the side, and changed words stand out.
fn push_marked(row: &mut Line, text: &str, style: Style, word: Style, marks: &[Range<usize>]) {
    let mut at = 0;
    for mark in marks {
        row.push(text.get(at..mark.start).unwrap_or_default(), style);
        row.push(text.get(mark.clone()).unwrap_or_default(), word);
        at = mark.end;
    }
    row.push(text.get(at..).unwrap_or_default(), style);
}

/// Marks for each line: removed lines are compared with the added ones that follow them, one by one.
fn word_marks(lines: &[DiffLine]) -> Vec<Vec<Range<usize>>> {
    let mut marks = vec![Vec::new(); lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, side: Side| lines[from..].iter().take_while(|line| line.side == side).count();
        let removed = run(at, Side::Old);
        let added = run(at + removed, Side::New);
        if removed == added {
            for pair in 0..removed {
                let (old, new) = (at + pair, at + removed + pair);
                let texts = (expand_tabs(&lines[old].text), expand_tabs(&lines[new].text));
                (marks[old], marks[new]) = changed_words(&texts.0, &texts.1);
            }
        }
        at += (removed + added).max(1);
    }
    marks
}

/// Puts tabs to stops of four columns and makes hidden characters visible, so that marks and columns agree.
fn expand_tabs(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    for (at, piece) in text.split('\t').enumerate() {
        if at > 0 {
            let stop = 4 - crate::text::width(&expanded) % 4;
            expanded.extend(std::iter::repeat_n(' ', stop));
        }
        expanded.push_str(&sanitize(piece));
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_have_numbers_and_signs() {
        let old: String = (1..=12).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 5\n", "line five\n").replace("line 12\n", "");
        let diff = FileDiff::from_texts("a.txt", Some(&old), Some(&new));
        assert_eq!(
            texts(&render(&diff, &Theme::DARK, Fold::None)),
            [
                " 2   line 2",
                " 3   line 3",
                " 4   line 4",
                " 5 - line 5",
                " 5 + line five",
                " 6   line 6",
                " 7   line 7",
                " 8   line 8",
                " 9   line 9",
                "10   line 10",
                "11   line 11",
                "12 - line 12",
            ]
        );
    }

    #[test]
    fn long_diffs_are_folded() {
        let new: String = (0..100).map(|number| format!("{number}\n")).collect();
        let diff = FileDiff::from_texts("a.txt", None, Some(&new));
        let lines = texts(&render(&diff, &Theme::DARK, Fold::At(40)));
        assert_eq!((lines.len(), lines[40].as_str()), (41, "… 60 more lines (Ctrl+O shows all)"));
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_columns() {
        let diff = FileDiff::from_texts("a.txt", Some("a\tb\n鷸\tb\n"), Some("a\tc\n鷸\tb\n"));
        let lines = texts(&render(&diff, &Theme::DARK, Fold::None));
        assert_eq!(lines, ["1 - a   b", "1 + a   c", "2   鷸  b"]);
    }

    #[test]
    fn changed_words_stand_out() {
        let diff = FileDiff::from_texts("a.txt", Some("let a = 1;\n"), Some("let a = 2;\n"));
        let lines = render(&diff, &Theme::DARK, Fold::None);
        let marked = lines[1].spans().iter().find(|span| span.style() == Theme::DARK.added_word).unwrap();
        assert_eq!(marked.text(), "2");
    }

    #[test]
    fn long_lines_wrap_behind_the_sign() {
        let diff = FileDiff::from_texts("a.txt", None, Some(&"x".repeat(15)));
        let lines = render(&diff, &Theme::DARK, Fold::None);
        assert_eq!(texts(&lines[0].wrapped(10)), ["1 + xxxxxx", "    xxxxxx", "    xxx"]);
    }
}
