//! A line of styled text. It is sanitized when it is built, so nothing in it can control the terminal.

use super::style::Style;
use super::width::{graphemes, width};
use super::{sanitize, wrap};

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    text: String,
    style: Style,
}

impl Span {
    pub(crate) fn new(text: &str, style: Style) -> Self {
        Self { text: sanitize(text).into_owned(), style }
    }

    /// A piece of a span; its text is sanitized already.
    pub(super) fn part(text: &str, style: Style) -> Self {
        Self { text: text.to_owned(), style }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

/// What happens to a line that is wider than the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It breaks between words.
    #[default]
    Words,
    /// It breaks at any grapheme, as the terminal does by itself: code, output of programs.
    Anywhere,
    /// It is cut: tables, diffs.
    Cut,
}

/// A line of text, which may take several rows of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<Span>,
    flow: Flow,
    /// What the second and all further rows begin with.
    continuation: Option<Span>,
}

impl Line {
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    pub(crate) fn plain(text: &str) -> Self {
        Self::styled(text, Style::PLAIN)
    }

    pub(crate) fn styled(text: &str, style: Style) -> Self {
        Self::empty().with(text, style)
    }

    /// Adds text at the end.
    pub(crate) fn push(&mut self, text: &str, style: Style) -> &mut Self {
        self.push_span(Span::new(text, style));
        self
    }

    pub(crate) fn push_span(&mut self, span: Span) {
        match self.spans.last_mut() {
            _ if span.text.is_empty() => {}
            Some(last) if last.style == span.style => last.text.push_str(&span.text),
            _ => self.spans.push(span),
        }
    }

    /// Adds all spans of another line at the end.
    pub(crate) fn append(&mut self, other: Self) -> &mut Self {
        other.spans.into_iter().for_each(|span| self.push_span(span));
        self
    }

    pub(crate) fn with(mut self, text: &str, style: Style) -> Self {
        self.push(text, style);
        self
    }

    pub(crate) fn flow(mut self, flow: Flow) -> Self {
        self.flow = flow;
        self
    }

    /// Begins every row but the first with `text`.
    pub(crate) fn continued_with(mut self, text: &str, style: Style) -> Self {
        self.continuation = Some(Span::new(text, style));
        self
    }

    /// The first row begins with `first`, all others with `rest`.
    pub(crate) fn indented(self, first: &str, rest: &str, style: Style) -> Self {
        let mut line = Self { flow: self.flow, ..Self::styled(first, style) };
        let own = self.continuation.as_ref().map_or("", |span| span.text.as_str());
        line.continuation = Some(Span::new(&format!("{rest}{own}"), style));
        line.append(self);
        line
    }

    /// Puts all of the line over a style.
    pub(crate) fn over(mut self, base: Style) -> Self {
        self.spans.iter_mut().for_each(|span| span.style = span.style.over(base));
        self
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn flow_of(&self) -> Flow {
        self.flow
    }

    pub(super) fn continuation(&self) -> Option<&Span> {
        self.continuation.as_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// The text without styles.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The line in at most `columns` columns, with `…` at the end if it was longer.
    pub(crate) fn truncated(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut cut = self.cut(columns.saturating_sub(1));
        if columns > 0 {
            let style = cut.spans.last().map_or(Style::PLAIN, |span| span.style);
            cut.push("…", style);
        }
        cut
    }

    /// The line in at most `columns` columns.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        let mut line = Self { spans: Vec::new(), ..self.clone() };
        let mut room = columns;
        for span in &self.spans {
            let mut end = 0;
            let mut is_full = false;
            for grapheme in graphemes(&span.text) {
                let columns = width(grapheme);
                if columns > room {
                    is_full = true;
                    break;
                }
                room -= columns;
                end += grapheme.len();
            }
            line.push_span(Span::part(&span.text[..end], span.style));
            if is_full {
                break;
            }
        }
        line
    }

    /// The line in exactly `columns` columns: cut, or filled with blanks in `style`.
    pub(crate) fn padded(&self, columns: usize, style: Style) -> Self {
        let mut line = self.truncated(columns);
        let missing = columns.saturating_sub(line.width());
        line.push_span(Span::part(&" ".repeat(missing), style));
        line
    }

    /// The rows of the line on a screen of `columns` columns, as lines of their own.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<Self> {
        wrap::rows(self, columns.max(1)).into_iter().map(|row| row.flow(Flow::Cut)).collect()
    }

    /// The rows that the terminal makes of the line by itself: they are full, whatever the flow, and have no indent.
    pub(crate) fn terminal_rows(&self, columns: usize) -> Vec<Self> {
        wrap::terminal_rows(self, columns.max(1)).into_iter().map(|row| row.flow(Flow::Cut)).collect()
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::plain(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_cut_by_columns() {
        let rows = [
            ("short", 9, "short"),
            ("exactly", 7, "exactly"),
            ("too long", 5, "too …"),
            ("鷸鷸鷸", 5, "鷸鷸…"),
        ];
        for (text, columns, expected) in rows {
            assert_eq!(Line::plain(text).truncated(columns).text(), expected, "{text} in {columns}");
        }
    }

    #[test]
    fn control_characters_never_reach_a_line() {
        let mut line = Line::plain("a\x1b[31m");
        line.push("\u{9b}2J", Style::PLAIN.bold());
        assert_eq!(line.text(), "a\\x1b[31m\\x9b2J");
    }
}
