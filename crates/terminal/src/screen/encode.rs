//! Styled lines as bytes for the terminal.

use std::io::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::text::{self, Color, Line, Style};
use crate::theme::ColorLevel;

/// Bytes of one frame, and the style that the terminal has after them.
pub(super) struct Encoder {
    bytes: Vec<u8>,
    style: Style,
    level: ColorLevel,
    columns: usize,
}

impl Encoder {
    pub(super) fn new(level: ColorLevel, columns: usize) -> Self {
        Self { bytes: Vec::with_capacity(1024), style: Style::PLAIN, level, columns }
    }

    pub(super) fn raw(&mut self, sequence: &str) {
        self.bytes.extend_from_slice(sequence.as_bytes());
    }

    /// Writes `CSI number final`.
    pub(super) fn csi(&mut self, number: usize, final_byte: char) {
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "\x1b[{number}{final_byte}");
    }

    pub(super) fn move_to_column(&mut self, column: usize) {
        if column == 0 {
            self.raw("\r");
        } else {
            self.csi(column + 1, 'G');
        }
    }

    pub(super) fn erase_to_end(&mut self) {
        self.set_style(Style::PLAIN);
        self.raw("\x1b[K");
    }

    pub(super) fn blanks(&mut self, count: usize) {
        self.set_style(Style::PLAIN);
        self.bytes.resize(self.bytes.len() + count, b' ');
    }

    /// Writes the text of a line. The cursor is at `column` before; the column after it is returned.
    pub(super) fn line(&mut self, line: &Line, column: usize) -> usize {
        let mut column = column;
        for span in line.spans() {
            self.set_style(span.style());
            column = self.text(span.text(), column);
        }
        column
    }

    /// Writes sanitized text. After a grapheme whose width terminals dispute, the cursor is put where it belongs.
    fn text(&mut self, text: &str, column: usize) -> usize {
        if text.is_ascii() {
            self.bytes.extend_from_slice(text.as_bytes());
            return column + text.len();
        }
        let mut column = column;
        for grapheme in text::graphemes(text) {
            self.bytes.extend_from_slice(grapheme.as_bytes());
            column += grapheme.width();
            if column < self.columns && text::is_disputed(grapheme) {
                self.move_to_column(column);
            }
        }
        column
    }

    /// Ends the frame and returns its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.set_style(Style::PLAIN);
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn set_style(&mut self, style: Style) {
        let style = style.fg(self.level.reduce(style.foreground)).bg(self.level.reduce(style.background));
        if style == self.style {
            return;
        }
        let mut parameters = String::new();
        let mut push = |parameter: &str| {
            if !parameters.is_empty() {
                parameters.push(';');
            }
            parameters.push_str(parameter);
        };
        if self.style != Style::PLAIN && style != Style::PLAIN {
            push("0");
        }
        style.attribute_parameters().for_each(|parameter| push(&parameter.to_string()));
        if let Some(color) = color_parameters(style.foreground, 30) {
            push(&color);
        }
        if let Some(color) = color_parameters(style.background, 40) {
            push(&color);
        }
        let _ = write!(self.bytes, "\x1b[{parameters}m");
        self.style = style;
    }
}

/// SGR parameters of a color; `base` is 30 for the foreground and 40 for the background.
fn color_parameters(color: Color, base: u8) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Ansi(index @ 0..=7) => Some((base + index).to_string()),
        Color::Ansi(index) => Some((base + 60 + (index & 7)).to_string()),
        Color::Indexed(index) => Some(format!("{};5;{index}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(line: &Line, level: ColorLevel) -> String {
        let mut encoder = Encoder::new(level, 80);
        encoder.line(line, 0);
        String::from_utf8(encoder.finish()).unwrap()
    }

    #[test]
    fn styles_are_set_and_reset_once() {
        let line = Line::plain("a").with("b", Style::PLAIN.bold().fg(Color::Ansi(2))).with("c", Style::PLAIN);
        assert_eq!(encode(&line, ColorLevel::True), "a\x1b[1;32mb\x1b[mc");
    }

    #[test]
    fn colors_are_left_out_where_there_are_none() {
        let line = Line::styled("a", Style::PLAIN.fg(Color::Rgb(1, 2, 3)));
        assert_eq!(encode(&line, ColorLevel::None), "a");
        assert_eq!(encode(&line, ColorLevel::True), "\x1b[38;2;1;2;3ma\x1b[m");
    }

    #[test]
    fn column_is_set_after_disputed_graphemes() {
        assert_eq!(encode(&Line::plain("👨‍👩‍👧x"), ColorLevel::True), "👨‍👩‍👧\x1b[3Gx");
        assert_eq!(encode(&Line::plain("鷸x"), ColorLevel::True), "鷸x");
    }
}
