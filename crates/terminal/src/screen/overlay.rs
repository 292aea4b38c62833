//! Frames of the alternate screen: rows of the whole screen, written where they changed.

use super::Size;
use super::encode::Encoder;
use super::frame::Live;
use crate::text::{Flow, Line};
use crate::theme::ColorLevel;

/// What the alternate screen shows.
#[derive(Debug)]
pub(super) struct Overlay {
    rows: Vec<Line>,
    size: Size,
    is_blank: bool,
}

impl Overlay {
    pub(super) const OPEN: &str = "\x1b[?1049h\x1b[H";
    pub(super) const CLOSE: &str = "\x1b[?1049l";

    pub(super) fn new(size: Size) -> Self {
        Self { rows: Vec::new(), size, is_blank: false }
    }

    /// Draws everything with the next frame.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
        self.is_blank = false;
    }

    pub(super) fn frame(&mut self, size: Size, level: ColorLevel, live: &Live) -> Vec<u8> {
        if size != self.size {
            self.size = size;
            self.forget();
        }
        let (columns, height) = (usize::from(size.columns).max(1), usize::from(size.rows).max(1));
        let mut out = Encoder::new(level, columns);
        out.raw("\x1b[?2026h\x1b[?7l");
        let rows: Vec<Line> =
            live.lines.iter().take(height).map(|line| line.cut(columns).flow(Flow::Cut)).collect();
        for at in 0..height {
            let (old, new) = (self.rows.get(at), rows.get(at));
            if self.is_blank && old == new {
                continue;
            }
            out.raw(&format!("\x1b[{};1H", at + 1));
            let end = new.map_or(0, |row| out.line(row, 0));
            if end < columns {
                out.erase_to_end();
            }
        }
        self.rows = rows;
        self.is_blank = true;
        out.set_style(crate::text::Style::PLAIN);
        match live.cursor {
            Some((row, column)) => {
                out.raw(&format!(
                    "\x1b[?7h\x1b[{};{}H\x1b[?25h\x1b[?2026l",
                    row + 1,
                    column.min(columns - 1) + 1
                ));
            }
            None => out.raw("\x1b[?7h\x1b[?25l\x1b[?2026l"),
        }
        out.finish()
    }
}
