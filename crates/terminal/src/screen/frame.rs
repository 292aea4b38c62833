//! One frame as bytes: finished lines above, then the live area by its difference to the last frame. Pure.
//!
//! Only relative movement is used, so the position of the live area on the screen need not be known. Room for new rows
//! is made by line breaks at the bottom, which every terminal saves into its scrollback. Nothing is cleared but single
//! rows of the live area.

use super::Size;
use super::encode::Encoder;
use crate::text::{Flow, Line, width};
use crate::theme::ColorLevel;

/// What is below the finished text: rows, and where the cursor stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// One line per row; a line that is too wide is cut, and rows that do not fit are left out at the top.
    pub(crate) lines: Vec<Line>,
    /// Row and column of the cursor; it is hidden if there is none.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Whether the terminal moves words to other rows when its width changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reflow {
    Yes,
    No,
}

/// What the terminal shows of the live area.
#[derive(Debug, Default)]
struct Drawn {
    rows: Vec<Line>,
    /// Where the cursor stands, in rows and columns of the live area.
    row: usize,
    column: usize,
    is_cursor_hidden: bool,
}

/// What a frame was drawn over, for the case that the terminal was narrower then than we thought.
#[derive(Debug, Default)]
struct Before {
    /// Columns of each row, and where the cursor stood.
    widths: Vec<usize>,
    row: usize,
    column: usize,
    /// Columns of each finished line of the frame, with the blanks that filled its rows.
    finished: Vec<usize>,
}

/// Turns finished lines and live areas into bytes.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    drawn: Drawn,
    before: Before,
    size: Size,
    level: ColorLevel,
    reflow: Reflow,
}

impl FrameWriter {
    pub(crate) fn new(size: Size, level: ColorLevel, reflow: Reflow) -> Self {
        Self { drawn: Drawn::default(), before: Before::default(), size, level, reflow }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Rows of the live area above the cursor.
    pub(crate) fn rows_above_cursor(&self) -> usize {
        self.drawn.row
    }

    /// The bytes that add `finished` to the history and show `live` below it.
    pub(crate) fn frame(&mut self, finished: &[Line], live: &Live) -> Vec<u8> {
        let (rows, cursor) = self.fit(live);
        self.remember(finished);
        let mut out = Encoder::new(self.level, self.columns());
        if !finished.is_empty() {
            self.write_finished(finished, &mut out);
        }
        self.write_rows(&rows, &mut out);
        self.drawn.rows = rows;
        self.place_cursor(cursor, &mut out);
        synchronized(out)
    }

    /// Erases the live area; the cursor stands at its top. For whatever writes to the terminal next.
    pub(crate) fn erase(&mut self) -> Vec<u8> {
        let mut out = Encoder::new(self.level, self.columns());
        let count = self.drawn.rows.len();
        self.erase_rows(self.drawn.row, count, &mut out);
        synchronized(out)
    }

    /// Takes a new size. The terminal may have moved what it shows: the live area is erased where it is now.
    pub(crate) fn resize(&mut self, size: Size) -> Vec<u8> {
        let old = std::mem::replace(&mut self.size, size);
        let (above, count) = if self.reflow == Reflow::Yes && size.columns < old.columns {
            self.reflowed()
        } else {
            (self.drawn.row, self.drawn.rows.len())
        };
        let mut out = Encoder::new(self.level, self.columns());
        self.erase_rows(above, count, &mut out);
        synchronized(out)
    }

    /// Takes the size at which the terminal drew the last frame. If it was narrower than we thought, the live area before
    /// that frame had been wrapped: what is left of it is erased, with the frame's own live area.
    pub(crate) fn drawn_at(&mut self, size: Size) -> Vec<u8> {
        if size.columns >= self.size.columns || self.reflow == Reflow::No || self.drawn.rows.is_empty() {
            return Vec::new();
        }
        self.size = size;
        let columns = self.columns();
        let height = |width: &usize| width.div_ceil(columns).max(1);
        let before = std::mem::take(&mut self.before);
        let old_height: usize = before.widths.iter().map(height).sum();
        let above: usize = before.widths.iter().take(before.row).map(|width| height(width) - 1).sum();
        let above = above + before.column / columns;
        let finished: usize = before.finished.iter().map(height).sum();
        let (row, count) = (self.drawn.row, self.drawn.rows.len());
        let mut out = Encoder::new(self.level, columns);
        if finished == 0 {
            self.erase_rows(row + above, (above + count).max(old_height), &mut out);
            return synchronized(out);
        }
        // The remains stand above the finished lines, if they are still on the screen.
        let distance = row + finished + above;
        if above > 0 && distance + (count - row) <= usize::from(size.rows) {
            out.raw("\r");
            move_rows(&mut out, distance, 0);
            for _ in 0..above {
                out.erase_to_end();
                move_rows(&mut out, 0, 1);
            }
            move_rows(&mut out, 0, distance - above);
        }
        self.erase_rows(row, count.max(old_height.saturating_sub(above + finished)), &mut out);
        synchronized(out)
    }

    fn remember(&mut self, finished: &[Line]) {
        let columns = self.columns();
        let cells = |line: &Line| {
            let rows = line.terminal_rows(columns);
            (rows.len() - 1) * columns + rows.last().map_or(0, Line::width)
        };
        self.before = Before {
            widths: self.drawn.rows.iter().map(Line::width).collect(),
            row: self.drawn.row,
            column: if self.drawn.column == usize::MAX { 0 } else { self.drawn.column },
            finished: finished.iter().map(cells).collect(),
        };
    }

    /// Forgets what is on the screen, as after another program used it.
    pub(crate) fn forget(&mut self) {
        self.drawn = Drawn::default();
    }

    /// Rows above the cursor, and all rows, after the terminal wrapped the live area to the new width.
    fn reflowed(&self) -> (usize, usize) {
        let columns = self.columns();
        let heights: Vec<usize> =
            self.drawn.rows.iter().map(|row| row.width().div_ceil(columns).max(1)).collect();
        let above = heights.iter().take(self.drawn.row).sum::<usize>() + self.drawn.column / columns;
        (above, heights.iter().sum())
    }

    /// Erases `count` rows, the first of which is `above` rows above the cursor.
    fn erase_rows(&mut self, above: usize, count: usize, out: &mut Encoder) {
        if count > 0 {
            erase_whole_rows(above, count, out);
        }
        if self.drawn.is_cursor_hidden {
            out.raw("\x1b[?25h");
        }
        self.drawn = Drawn::default();
    }

    /// Rows of the live area that fit the screen, and the cursor among them.
    fn fit(&self, live: &Live) -> (Vec<Line>, Option<(usize, usize)>) {
        let skipped = live.lines.len().saturating_sub(usize::from(self.size.rows).max(1));
        let columns = self.columns();
        let rows: Vec<Line> =
            live.lines[skipped..].iter().map(|line| line.cut(columns).flow(Flow::Cut)).collect();
        let cursor = live.cursor.and_then(|(row, column)| {
            let row = row.checked_sub(skipped)?;
            (row < rows.len()).then_some((row, column.min(columns - 1)))
        });
        (rows, cursor)
    }

    /// Writes finished lines from the top of the live area on, over what it showed. The terminal breaks them into rows, so
    /// that it joins the rows again where text is copied or the screen becomes wider.
    fn write_finished(&mut self, finished: &[Line], out: &mut Encoder) {
        self.erase_drawn(out);
        let columns = self.columns();
        for line in finished {
            let rows = line.terminal_rows(columns);
            for (at, row) in rows.iter().enumerate() {
                let end = out.line(row, 0);
                if let Some(next) = rows.get(at + 1)
                    // A wide character that does not fit makes the terminal break the row by itself.
                    && !(end + 1 == columns && begins_wide(next))
                {
                    // Terminals dispute the width of what comes next: without the blanks some would not break here.
                    out.blanks(columns.saturating_sub(end));
                }
            }
            out.set_style(crate::text::Style::PLAIN);
            out.raw("\r\n");
        }
    }

    /// Erases the live area for what is written in its place.
    fn erase_drawn(&mut self, out: &mut Encoder) {
        erase_whole_rows(self.drawn.row, self.drawn.rows.len(), out);
        self.drawn.rows.clear();
        self.drawn.row = 0;
        self.drawn.column = 0;
    }

    /// Writes the rows that differ from those of the last frame, with automatic wrapping off.
    fn write_rows(&mut self, rows: &[Line], out: &mut Encoder) {
        if *rows == *self.drawn.rows {
            return;
        }
        out.raw("\x1b[?7l");
        for (at, row) in rows.iter().enumerate() {
            let change = match self.drawn.rows.get(at) {
                Some(old) => Change::between(old, row),
                None => Some(Change::whole(row, OldText::Covered)),
            };
            if let Some(change) = change {
                self.move_to_row(at, out);
                change.write(out);
            }
        }
        for at in rows.len()..self.drawn.rows.len() {
            self.move_to_row(at, out);
            out.raw("\r");
            out.erase_to_end();
        }
        out.set_style(crate::text::Style::PLAIN);
        out.raw("\x1b[?7h");
        self.drawn.column = usize::MAX;
    }

    /// Moves to a row; rows that do not exist yet are made by line breaks.
    fn move_to_row(&mut self, row: usize, out: &mut Encoder) {
        let last = self.drawn.rows.len().saturating_sub(1);
        if row > last {
            move_rows(out, 0, last.saturating_sub(self.drawn.row));
            let missing = row - self.drawn.row.max(last);
            (0..missing).for_each(|_| out.raw("\r\n"));
            self.drawn.rows.resize(row + 1, Line::empty());
        } else {
            move_rows(out, self.drawn.row.saturating_sub(row), row.saturating_sub(self.drawn.row));
        }
        self.drawn.row = row;
    }

    fn place_cursor(&mut self, cursor: Option<(usize, usize)>, out: &mut Encoder) {
        let target = cursor.unwrap_or((self.drawn.rows.len().saturating_sub(1), 0));
        if target.0 != self.drawn.row {
            let (up, down) =
                (self.drawn.row.saturating_sub(target.0), target.0.saturating_sub(self.drawn.row));
            move_rows(out, up, down);
        }
        if target.1 != self.drawn.column || target.0 != self.drawn.row {
            out.move_to_column(target.1);
        }
        (self.drawn.row, self.drawn.column) = target;
        if cursor.is_none() != self.drawn.is_cursor_hidden {
            out.raw(if cursor.is_none() { "\x1b[?25l" } else { "\x1b[?25h" });
            self.drawn.is_cursor_hidden = cursor.is_none();
        }
    }

    fn columns(&self) -> usize {
        usize::from(self.size.columns).max(1)
    }
}

fn begins_wide(line: &Line) -> bool {
    line.spans()
        .first()
        .and_then(|span| crate::text::graphemes(span.text()).next())
        .is_some_and(|g| width(g) > 1)
}

/// Erases `count` rows, the first of which is `above` rows above the cursor, and stays at the first. Each row is erased from
/// its first column on: tmux counts cells that are erased behind a text as part of the row, and breaks it where the screen
/// becomes narrower.
fn erase_whole_rows(above: usize, count: usize, out: &mut Encoder) {
    out.raw("\r");
    move_rows(out, above, 0);
    for row in 0..count {
        if row > 0 {
            move_rows(out, 0, 1);
        }
        out.erase_to_end();
    }
    move_rows(out, count.saturating_sub(1), 0);
}

fn move_rows(out: &mut Encoder, up: usize, down: usize) {
    if up > 0 {
        out.csi(up, 'A');
    }
    if down > 0 {
        out.csi(down, 'B');
    }
}

/// Puts a frame between the marks of a synchronized update. Without any change there are no bytes.
fn synchronized(out: Encoder) -> Vec<u8> {
    if out.is_empty() {
        return Vec::new();
    }
    let mut bytes = b"\x1b[?2026h".to_vec();
    bytes.extend(out.finish());
    bytes.extend(b"\x1b[?2026l");
    bytes
}

/// The part of a row that is written.
struct Change {
    column: usize,
    text: Line,
    before: OldText,
}

/// What a row shows before a change of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OldText {
    /// Nothing, or what the change covers.
    Covered,
    /// More than the change covers: the row is erased first, from its first column on.
    Wider,
}

impl Change {
    fn whole(row: &Line, before: OldText) -> Self {
        Self { column: 0, text: row.clone(), before }
    }

    /// The difference between two rows: what lies between their common beginning and, if they are equally wide, their
    /// common end.
    fn between(old: &Line, new: &Line) -> Option<Self> {
        if old == new {
            return None;
        }
        let (old_width, new_width) = (old.width(), new.width());
        if old_width > new_width {
            return Some(Self::whole(new, OldText::Wider));
        }
        let (old_cells, new_cells) = (cells(old), cells(new));
        let start = common(old_cells.iter(), new_cells.iter());
        let column: usize = new_cells[..start].iter().map(|(grapheme, _)| width(grapheme)).sum();
        let end = if old_width == new_width {
            let limit = new_cells.len().min(old_cells.len()) - start;
            common(old_cells.iter().rev(), new_cells.iter().rev()).min(limit)
        } else {
            0
        };
        let mut text = Line::empty();
        for (grapheme, style) in &new_cells[start..new_cells.len() - end] {
            text.push(grapheme, *style);
        }
        Some(Self { column, text, before: OldText::Covered })
    }

    fn write(&self, out: &mut Encoder) {
        out.move_to_column(self.column);
        if self.before == OldText::Wider {
            out.erase_to_end();
        }
        out.line(&self.text, self.column);
    }
}

fn common<T: PartialEq>(left: impl Iterator<Item = T>, right: impl Iterator<Item = T>) -> usize {
    left.zip(right).take_while(|(left, right)| left == right).count()
}

fn cells(line: &Line) -> Vec<(&str, crate::text::Style)> {
    let spans = line.spans().iter();
    spans.flat_map(|span| crate::text::graphemes(span.text()).map(move |g| (g, span.style()))).collect()
}
