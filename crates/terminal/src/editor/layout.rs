//! The rows of an input line on a screen: wrapped at blanks, with the place of the caret.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Editor;
use super::attachments::is_placeholder;

/// Width of a tab in the input line.
const TAB: &str = "    ";

/// The rows and the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) rows: Vec<Row>,
    pub(crate) caret: CaretPosition,
}

/// Place of the caret, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaretPosition {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is shown: control characters are visible, placeholders are labels.
    pub(crate) cells: Vec<Cell>,
    /// Offset of the end of the row in the text.
    end: usize,
}

/// What is shown for one grapheme, or for one grapheme of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) shown: String,
    pub(crate) width: usize,
    /// Part of the label of an attachment.
    pub(crate) is_label: bool,
    /// Offset of the grapheme in the text.
    offset: usize,
}

impl Row {
    /// The text of the row.
    pub(crate) fn text(&self) -> String {
        self.cells.iter().map(|cell| cell.shown.as_str()).collect()
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.width).sum()
    }
}

impl Layout {
    /// Lays out the input line; the width is at least 2.
    pub(crate) fn new(editor: &Editor, width: usize) -> Self {
        let width = width.max(2);
        let mut rows = vec![Row::default()];
        for (offset, grapheme) in editor.text().grapheme_indices(true) {
            if grapheme == "\n" || grapheme == "\r\n" {
                end_row(&mut rows, offset);
                rows.push(Row { cells: Vec::new(), end: offset + grapheme.len() });
                continue;
            }
            for cell in show(editor, offset, grapheme) {
                push_cell(&mut rows, cell, width);
            }
            end_row(&mut rows, offset + grapheme.len());
        }
        // The caret needs a cell of its own behind a full row.
        if rows.last().is_some_and(|row| row.width() >= width) && editor.caret() == editor.text().len() {
            rows.push(Row { cells: Vec::new(), end: editor.text().len() });
        }
        let caret = find_caret(&rows, editor.caret());
        Self { rows, caret }
    }

    /// Offset of the grapheme at a column of a row, or of the end of the row.
    pub(super) fn offset_at(&self, row: usize, column: usize) -> usize {
        let shown = &self.rows[row];
        let mut passed = 0;
        for cell in &shown.cells {
            if passed + cell.width > column {
                return cell.offset;
            }
            passed += cell.width;
        }
        let last = shown.cells.last().map_or(shown.end, |cell| cell.offset);
        if self.is_wrapped(row) { last } else { shown.end }
    }

    /// Returns whether the text goes on in the next row without a newline. There the end of the row belongs to the next.
    fn is_wrapped(&self, row: usize) -> bool {
        is_wrapped(&self.rows, row)
    }
}

fn is_wrapped(rows: &[Row], row: usize) -> bool {
    let next_start = |next: &Row| next.cells.first().map_or(next.end, |cell| cell.offset);
    rows.get(row + 1).is_some_and(|next| next_start(next) == rows[row].end)
}

fn end_row(rows: &mut [Row], offset: usize) {
    if let Some(row) = rows.last_mut() {
        row.end = offset;
    }
}

/// Adds a cell to the last row; if it is full, the word that it belongs to moves to a new one.
fn push_cell(rows: &mut Vec<Row>, cell: Cell, width: usize) {
    let Some(row) = rows.last_mut() else { return };
    if row.width() + cell.width <= width {
        row.cells.push(cell);
        return;
    }
    let is_blank = |cell: &Cell| cell.shown.chars().all(|character| character == ' ');
    let word_start = row.cells.iter().rposition(is_blank).map_or(0, |blank| blank + 1);
    let moved = if is_blank(&cell) || word_start == 0 { Vec::new() } else { row.cells.split_off(word_start) };
    let start = moved.first().map_or(cell.offset, |first| first.offset);
    row.end = start;
    let mut next = Row { cells: moved, end: cell.offset };
    next.cells.push(cell);
    rows.push(next);
}

/// The row and column of an offset. At the border of two wrapped rows the caret is on the second.
fn find_caret(rows: &[Row], offset: usize) -> CaretPosition {
    for (index, row) in rows.iter().enumerate() {
        let mut column = 0;
        for cell in &row.cells {
            if cell.offset >= offset {
                return CaretPosition { row: index, column };
            }
            column += cell.width;
        }
        if row.end > offset || (row.end == offset && !is_wrapped(rows, index)) {
            return CaretPosition { row: index, column };
        }
    }
    let last = rows.len() - 1;
    CaretPosition { row: last, column: rows[last].width() }
}

/// What is shown for a grapheme.
fn show(editor: &Editor, offset: usize, grapheme: &str) -> Vec<Cell> {
    let plain = |shown: String, is_label| {
        let width = UnicodeWidthStr::width(shown.as_str());
        Cell { shown, width, is_label, offset }
    };
    let first = grapheme.chars().next().unwrap_or_default();
    if is_placeholder(first)
        && let Some(label) = editor.attachments.label(first)
    {
        return label.graphemes(true).map(|part| plain(part.to_owned(), true)).collect();
    }
    if first == '\t' {
        return vec![plain(TAB.into(), false)];
    }
    if first.is_control() {
        return vec![plain(visible_control(first), false)];
    }
    vec![plain(grapheme.to_owned(), false)]
}

/// A control character as it is written in books: `^[`.
fn visible_control(character: char) -> String {
    match u32::from(character) {
        code @ 0..=0x1f => format!("^{}", char::from_u32(code + 0x40).unwrap_or('?')),
        0x7f => "^?".into(),
        code => format!("\\u{{{code:x}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out(text: &str, caret: usize, width: usize) -> (Vec<String>, (usize, usize)) {
        let mut editor = Editor::default();
        editor.set_inline_text(text, caret);
        let layout = Layout::new(&editor, width);
        (layout.rows.iter().map(Row::text).collect(), (layout.caret.row, layout.caret.column))
    }

    #[test]
    fn rows_wrap_at_blanks_and_show_the_caret() {
        type RowCase<'a> = (&'a str, &'a str, usize, usize, &'a [&'a str], (usize, usize));
        let rows: [RowCase<'_>; 10] = [
            ("empty", "", 0, 10, &[""], (0, 0)),
            ("short", "abc", 3, 10, &["abc"], (0, 3)),
            ("word moves", "hello world", 11, 8, &["hello ", "world"], (1, 5)),
            ("caret in the first row", "hello world", 2, 8, &["hello ", "world"], (0, 2)),
            ("caret at the border", "hello world", 6, 8, &["hello ", "world"], (1, 0)),
            ("long word is cut", "abcdefghij", 10, 4, &["abcd", "efgh", "ij"], (2, 2)),
            ("full row", "abcd", 4, 4, &["abcd", ""], (1, 0)),
            ("newline", "a\nb", 2, 10, &["a", "b"], (1, 0)),
            ("trailing newline", "a\n", 2, 10, &["a", ""], (1, 0)),
            ("wide characters", "日本語", 9, 5, &["日本", "語"], (1, 2)),
        ];
        for (name, text, caret, width, expected, place) in rows {
            let (shown, at) = lay_out(text, caret, width);
            assert_eq!(
                (shown, at),
                (expected.iter().map(|row| (*row).to_owned()).collect(), place),
                "{name}"
            );
        }
    }

    #[test]
    fn control_characters_are_visible() {
        assert_eq!(lay_out("a\u{1b}[2J", 0, 20).0, ["a^[[2J"]);
        assert_eq!(lay_out("a\tb", 0, 20).0, ["a    b"]);
    }
}
