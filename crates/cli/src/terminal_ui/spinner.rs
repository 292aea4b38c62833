//! Spinner on stderr, with the elapsed time.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use whimbrel_os::clock;

use super::Style;
use crate::terminal::columns;

/// Interval between two glyphs.
pub(crate) const TICK_INTERVAL: Duration = Duration::from_millis(120);

/// Delay before the spinner appears.
const SHOW_DELAY: Duration = Duration::from_millis(300);

/// Terminal width if it is unknown, and the maximum width of the label.
const DEFAULT_WIDTH: usize = 80;
const MAX_LABEL_WIDTH: usize = 60;

const GLYPHS: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠴', '⠦', '⠧', '⠏'];

/// A spinner. It owns its line: other output must clear it first.
#[derive(Debug)]
pub(crate) struct Spinner {
    style: Style,
    /// Time since which nothing else was written.
    idle_since: Option<Instant>,
    glyph_index: usize,
    is_shown: bool,
}

impl Spinner {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, idle_since: None, glyph_index: 0, is_shown: false }
    }

    /// Shows the next glyph.
    pub(super) fn advance(&mut self, label: &str) {
        let since = self.idle_since.get_or_insert_with(clock::monotonic);
        let waited = clock::monotonic() - *since;
        if waited < SHOW_DELAY {
            return;
        }
        self.glyph_index = (self.glyph_index + 1) % GLYPHS.len();
        self.is_shown = true;
        let width = columns(io::stderr()).unwrap_or(DEFAULT_WIDTH);
        let line = self.style.dim(&render_label(GLYPHS[self.glyph_index], label, waited.as_secs(), width));
        draw(&format!("\r\u{1b}[2K{line}"));
    }

    /// Removes the spinner from the terminal.
    pub(super) fn clear(&mut self) {
        self.idle_since = None;
        if std::mem::take(&mut self.is_shown) {
            draw("\r\u{1b}[2K");
        }
    }
}

/// Renders the spinner. It must fit into one line, or it could not be cleared; non-ASCII characters count as two
/// columns, and the last column stays free.
fn render_label(glyph: char, label: &str, seconds: u64, width: usize) -> String {
    let time = if seconds == 0 { String::new() } else { format!("  {seconds} s") };
    let mut room = width.saturating_sub(3 + time.len()).min(MAX_LABEL_WIDTH);
    let fits = |character: &char| {
        let wide = if character.is_ascii() { 1 } else { 2 };
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let label: String = label.chars().filter(|character| !character.is_control()).take_while(fits).collect();
    let line = format!("{glyph} {label}{time}");
    line.chars().take(width.saturating_sub(1)).collect()
}

/// Writes to stderr; errors are ignored.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinner_fits_into_one_line() {
        let rows = [
            ("Bash  cargo test", 0, 80, "- Bash  cargo test"),
            ("Bash  cargo test", 7, 80, "- Bash  cargo test  7 s"),
            ("Bash  cargo test", 12, 20, "- Bash  cargo  12 s"),
            ("鷸鷸鷸鷸鷸鷸鷸鷸鷸鷸", 0, 20, "- 鷸鷸鷸鷸鷸鷸鷸鷸"),
            ("Bash", 100, 5, "-   "),
            ("Bash", 0, 0, ""),
        ];
        for (label, seconds, width, expected) in rows {
            assert_eq!(render_label('-', label, seconds, width), expected, "{label} in {width} columns");
        }
    }
}
