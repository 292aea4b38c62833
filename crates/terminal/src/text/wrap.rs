//! Breaking a line into rows of the screen.

use super::line::{Flow, Line, Span};
use super::style::Style;
use super::width::{graphemes, widest};

/// A word, a run of blanks, or a single grapheme: what is not broken if a row has room for it.
struct Piece<'a> {
    parts: Vec<(&'a str, Style)>,
    columns: usize,
    is_blank: bool,
}

/// The rows that the terminal itself makes of a line that is written without line breaks.
pub(super) fn terminal_rows(line: &Line, columns: usize) -> Vec<Line> {
    if line.flow_of() == Flow::Cut {
        return vec![line.cut(columns)];
    }
    let mut rows = Vec::new();
    let mut row = Line::empty();
    let mut used = 0;
    for span in line.spans() {
        let mut start = 0;
        let mut at = 0;
        for grapheme in graphemes(span.text()) {
            let columns_of_grapheme = widest(grapheme);
            if used + columns_of_grapheme > columns && used > 0 {
                row.push_span(Span::part(&span.text()[start..at], span.style()));
                rows.push(std::mem::take(&mut row));
                start = at;
                used = 0;
            }
            used += columns_of_grapheme;
            at += grapheme.len();
        }
        row.push_span(Span::part(&span.text()[start..], span.style()));
    }
    rows.push(row);
    rows
}

pub(super) fn rows(line: &Line, columns: usize) -> Vec<Line> {
    match line.flow_of() {
        Flow::Cut => vec![line.cut(columns)],
        // The last column stays free, so that a blank always separates the words of two rows.
        Flow::Words => Wrapper::new(line, columns, columns.saturating_sub(1).max(1)).wrap(&words(line)),
        Flow::Anywhere => Wrapper::new(line, columns, columns).wrap(&characters(line)),
    }
}

struct Wrapper<'a> {
    line: &'a Line,
    /// Columns of the screen, and those that words may fill.
    columns: usize,
    room: usize,
    row: Line,
    used: usize,
    rows: Vec<Line>,
}

impl<'a> Wrapper<'a> {
    fn new(line: &'a Line, columns: usize, room: usize) -> Self {
        let row = Line::empty().flow(line.flow_of());
        Self { line, columns, room, row, used: 0, rows: Vec::new() }
    }

    fn wrap(mut self, pieces: &[Piece<'_>]) -> Vec<Line> {
        for piece in pieces {
            let fits = self.used + piece.columns <= self.room;
            match piece {
                _ if fits => self.push(piece),
                // Blanks at the end of a row become the break, unless they are an indent.
                _ if piece.is_blank => self.end_row(),
                // A piece that no row can hold is broken where the row is full.
                _ if piece.columns + self.indent() > self.room => self.push_broken(piece),
                _ => {
                    self.end_row();
                    self.push(piece);
                }
            }
        }
        let has_text = self.used > self.indent();
        // Only blanks may be left.
        if has_text || self.rows.is_empty() {
            self.rows.push(self.row);
        }
        self.rows
    }

    fn push(&mut self, piece: &Piece<'_>) {
        let is_new_row = !self.rows.is_empty() && self.used == self.indent();
        if piece.is_blank && is_new_row {
            return;
        }
        piece.parts.iter().for_each(|(text, style)| self.row.push_span(Span::part(text, *style)));
        self.used += piece.columns;
    }

    fn push_broken(&mut self, piece: &Piece<'_>) {
        for (text, style) in &piece.parts {
            for grapheme in graphemes(text) {
                let columns = widest(grapheme);
                if self.used + columns > self.columns && self.used > self.indent() {
                    self.end_row();
                }
                self.row.push_span(Span::part(grapheme, *style));
                self.used += columns;
            }
        }
    }

    fn end_row(&mut self) {
        let mut next = Line::empty().flow(self.line.flow_of());
        let indent = self.indent();
        if let Some(span) = self.line.continuation().filter(|_| indent > 0) {
            next.push_span(span.clone());
        }
        self.rows.push(std::mem::replace(&mut self.row, next));
        self.used = indent;
    }

    /// Columns that a further row begins with; none where they would take half of a narrow screen.
    fn indent(&self) -> usize {
        let columns = self.line.continuation().map_or(0, |span| super::width(span.text()));
        if columns * 2 > self.columns { 0 } else { columns }
    }
}

/// Splits a line into words and blanks. Wide characters, as in Chinese, are pieces of their own.
fn words(line: &Line) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    // True if the next grapheme of the same kind belongs to the last piece.
    let mut is_open = false;
    for span in line.spans() {
        let mut start = 0;
        let mut at = 0;
        for grapheme in graphemes(span.text()) {
            let columns = widest(grapheme);
            let is_blank = grapheme == " ";
            let is_wide = columns > 1 && !grapheme.is_ascii();
            let joins = is_open && !is_wide && pieces.last().is_some_and(|piece| piece.is_blank == is_blank);
            if !joins {
                push_part(&mut pieces, &span.text()[start..at], span.style());
                start = at;
                pieces.push(Piece { parts: Vec::new(), columns: 0, is_blank });
            }
            is_open = !is_wide;
            at += grapheme.len();
            if let Some(piece) = pieces.last_mut() {
                piece.columns += columns;
            }
        }
        push_part(&mut pieces, &span.text()[start..], span.style());
    }
    pieces
}

fn push_part<'a>(pieces: &mut [Piece<'a>], text: &'a str, style: Style) {
    if let Some(piece) = pieces.last_mut().filter(|_| !text.is_empty()) {
        piece.parts.push((text, style));
    }
}

/// A line as one piece per span, which is broken where a row is full.
fn characters(line: &Line) -> Vec<Piece<'_>> {
    let columns = |text| graphemes(text).map(widest).sum();
    line.spans()
        .iter()
        .flat_map(|span| graphemes(span.text()).map(move |grapheme| (grapheme, span.style())))
        .map(|part| Piece { parts: vec![part], columns: columns(part.0), is_blank: false })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(line: &Line, columns: usize) -> Vec<String> {
        line.wrapped(columns).iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn words_are_kept_whole() {
        let rows: [(&str, usize, &[&str]); 8] = [
            ("one two three", 20, &["one two three"]),
            ("one two three", 9, &["one two", "three"]),
            ("one two three", 8, &["one two", "three"]),
            ("", 8, &[""]),
            ("abcdefghijkl", 5, &["abcde", "fghij", "kl"]),
            ("a abcdefghijkl", 5, &["a abc", "defgh", "ijkl"]),
            ("鷸鷸鷸鷸", 5, &["鷸鷸", "鷸鷸"]),
            ("blank end     ", 10, &["blank end"]),
        ];
        for (text, columns, expected) in rows {
            assert_eq!(texts(&Line::plain(text), columns), expected, "{text} in {columns}");
        }
    }

    #[test]
    fn code_breaks_where_the_row_is_full() {
        let line = Line::plain("let a = bcd;").flow(Flow::Anywhere);
        assert_eq!(texts(&line, 5), ["let a", " = bc", "d;"]);
    }

    #[test]
    fn terminal_rows_are_full_and_have_no_indent() {
        let line = Line::plain("one two 鷸鷸").indented("- ", "  ", Style::PLAIN);
        let rows: Vec<String> = line.terminal_rows(6).iter().map(Line::text).collect();
        assert_eq!(rows, ["- one ", "two 鷸", "鷸"]);
    }

    #[test]
    fn continuation_begins_every_further_row() {
        let line = Line::plain("one two three four").indented("• ", "  ", Style::PLAIN);
        assert_eq!(texts(&line, 10), ["• one two", "  three", "  four"]);
    }

    proptest! {
        #[test]
        fn wrapped_rows_fit_and_keep_every_letter(text in "[a-z鷸👍 ]{0,80}", columns in 3..30usize) {
            let line = Line::plain(&text);
            let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').collect::<String>();
            let rows = line.wrapped(columns);
            prop_assert!(rows.iter().all(|row| row.width() <= columns));
            let joined: String = rows.iter().map(Line::text).collect();
            prop_assert_eq!(letters(&joined), letters(&text));
        }
    }
}
