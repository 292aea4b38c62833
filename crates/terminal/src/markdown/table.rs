//! Tables in columns that fit the screen. Cells wrap; where the columns would be too narrow, each row becomes a list.

use pulldown_cmark::Alignment;

use crate::text::{Flow, Line, Style};
use crate::theme::Theme;

const MIN_COLUMN_WIDTH: usize = 6;
const SEPARATOR: &str = " │ ";

#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first row is the head.
    rows: Vec<Vec<Line>>,
    open_row: Vec<Line>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, ..Self::default() }
    }

    pub(super) fn push_cell(&mut self, cell: Line) {
        self.open_row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.open_row));
    }

    pub(super) fn render(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let count = self.alignments.len();
        let gaps = SEPARATOR.chars().count() * count.saturating_sub(1);
        match fit_widths(&self.natural_widths(), columns.saturating_sub(gaps)) {
            Some(widths) => self.render_grid(&widths, theme),
            None => self.render_list(theme),
        }
    }

    fn natural_widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(Line::width).max().unwrap_or(0).max(1)
        };
        (0..self.alignments.len()).map(width).collect()
    }

    fn render_grid(&self, widths: &[usize], theme: &Theme) -> Vec<Line> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let style = if at == 0 { theme.strong } else { Style::PLAIN };
            lines.extend(self.render_row(row, widths, style, theme));
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(&rule.join("─┼─"), theme.border).flow(Flow::Cut));
            }
        }
        lines
    }

    fn render_row(&self, row: &[Line], widths: &[usize], style: Style, theme: &Theme) -> Vec<Line> {
        let empty = Line::empty();
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let cell = row.get(column).unwrap_or(&empty).clone().over(style);
                // Words may use the last column too: each cell has its own.
                if cell.width() <= *width { vec![cell.flow(Flow::Cut)] } else { cell.wrapped(width + 1) }
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let line = |at: usize| {
            let mut line = Line::empty().flow(Flow::Cut);
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    line.push(SEPARATOR, theme.border);
                }
                let cell = cells[column].get(at).unwrap_or(&empty);
                line.append(self.aligned(cell, column, *width));
            }
            line
        };
        (0..height).map(line).collect()
    }

    fn aligned(&self, cell: &Line, column: usize, width: usize) -> Line {
        let missing = width.saturating_sub(cell.width());
        let left = match self.alignments.get(column) {
            Some(Alignment::Right) => missing,
            Some(Alignment::Center) => missing / 2,
            _ => 0,
        };
        let mut line = Line::plain(&" ".repeat(left));
        line.append(cell.clone());
        line.padded(width, Style::PLAIN)
    }

    /// Each row as lines `head: cell`.
    fn render_list(&self, theme: &Theme) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Line::empty());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut line = Line::styled(&format!("{}: ", name.text()), theme.strong);
                line.append(cell.clone());
                lines.push(line.continued_with("  ", Style::PLAIN));
            }
        }
        lines
    }
}

/// Widths of the columns in at most `room` columns: the widest ones give way. None if that would be too narrow.
fn fit_widths(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut widths = natural.to_vec();
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        if *widest <= MIN_COLUMN_WIDTH {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

#[cfg(test)]
mod tests {
    use crate::markdown::render;
    use crate::text::Line;
    use crate::theme::Theme;

    const SOURCE: &str =
        "| Name | Size | About |\n|---|--:|---|\n| a.rs | 12 | reads the file |\n| 鷸.md | 3456 | `x` |\n";

    fn text(columns: usize) -> String {
        render(SOURCE, columns, &Theme::DARK)
            .iter()
            .map(|line| Line::text(line).trim_end().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            text(60),
            "Name  │ Size │ About\n──────┼──────┼───────────────\na.rs  │   12 │ reads the file\n鷸.md │ 3456 │ x\n"
        );
    }

    #[test]
    fn cells_wrap_where_the_screen_is_narrow() {
        assert_eq!(
            text(26),
            "Name  │ Size │ About\n──────┼──────┼────────────\na.rs  │   12 │ reads the\n      │      │ file\n鷸.md │ 3456 │ x\n"
        );
    }

    #[test]
    fn rows_become_lists_where_there_is_no_room() {
        assert_eq!(
            text(18),
            "Name: a.rs\nSize: 12\nAbout: reads the file\n\nName: 鷸.md\nSize: 3456\nAbout: x\n"
        );
    }
}
