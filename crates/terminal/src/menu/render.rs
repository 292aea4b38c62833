//! A menu as lines.

use super::{MAX_SHOWN_CHOICES, Menu, MenuStyle};
use crate::editor::layout::Layout;
use crate::text::{Line, Style};
use crate::theme::Theme;

/// The rows of a menu, and the place of the caret in them if the user types.
pub(crate) struct RenderedMenu {
    pub(crate) lines: Vec<Line>,
    pub(crate) caret: Option<(usize, usize)>,
}

impl Menu {
    /// Renders the menu with at most this number of rows for choices.
    pub(crate) fn render(&self, columns: usize, max_choices: usize, theme: &Theme) -> RenderedMenu {
        let mut lines = Vec::new();
        let mut caret = None;
        if !self.title.is_empty() {
            lines.extend(Line::styled(&self.title, theme.strong).wrapped(columns));
        }
        for note in &self.notes {
            lines.extend(Line::styled(note, theme.dim).wrapped(columns));
        }
        if self.style == MenuStyle::Filtered {
            let line = Line::styled("search: ", theme.dim).with(self.filter(), Style::default());
            caret = Some((lines.len(), line.width().min(columns.saturating_sub(1))));
            lines.push(line.truncated(columns));
        }
        self.render_choices(columns, max_choices, theme, &mut lines, &mut caret);
        if !self.footer.is_empty() {
            lines.extend(Line::styled(&self.footer, theme.dim).wrapped(columns));
        }
        RenderedMenu { lines, caret }
    }

    fn render_choices(
        &self,
        columns: usize,
        max_choices: usize,
        theme: &Theme,
        lines: &mut Vec<Line>,
        caret: &mut Option<(usize, usize)>,
    ) {
        let matching = self.matching();
        if matching.is_empty() {
            lines.push(Line::styled("  nothing matches", theme.dim));
        }
        let shown = max_choices.clamp(1, MAX_SHOWN_CHOICES);
        let first = (self.selected + 1).saturating_sub(shown).min(matching.len().saturating_sub(shown));
        if first > 0 {
            lines.push(Line::styled(&format!("  ↑ {first} more"), theme.dim));
        }
        for (row, index) in matching.iter().enumerate().skip(first).take(shown) {
            let is_selected = row == self.selected;
            lines.extend(self.render_choice(*index, is_selected, columns, theme));
            if is_selected && let Some(editor) = &self.own_words {
                let layout = Layout::new(editor, columns.saturating_sub(6));
                *caret = Some((lines.len() + layout.caret.row, layout.caret.column + 4));
                if editor.is_empty() {
                    let hint = self.choices[*index].text_hint.as_deref().unwrap_or_default();
                    lines.push(Line::styled("  › ", theme.accent).with(hint, theme.dim).truncated(columns));
                } else {
                    for (number, row) in layout.rows.iter().enumerate() {
                        let mark = if number == 0 { "  › " } else { "    " };
                        lines.push(Line::styled(mark, theme.accent).with(&row.text(), Style::default()));
                    }
                }
            }
        }
        let below = matching.len().saturating_sub(first + shown);
        if below > 0 {
            lines.push(Line::styled(&format!("  ↓ {below} more"), theme.dim));
        }
    }

    fn render_choice(&self, index: usize, is_selected: bool, columns: usize, theme: &Theme) -> Vec<Line> {
        let choice = &self.choices[index];
        let style = if is_selected { theme.selected } else { Style::default() };
        let pointer = if is_selected { "❯ " } else { "  " };
        let number = match self.style {
            MenuStyle::Filtered => String::new(),
            MenuStyle::Numbered => format!("{}. ", index + 1),
            MenuStyle::Marked if choice.text_hint.is_some() => format!("{}.     ", index + 1),
            MenuStyle::Marked => format!("{}. [{}] ", index + 1, if choice.is_marked { 'x' } else { ' ' }),
        };
        let current = if choice.is_current { " (current)" } else { "" };
        let mut line =
            Line::styled(pointer, theme.accent).with(&format!("{number}{}{current}", choice.label), style);
        if !choice.detail.is_empty() {
            line.push("  ", Style::default());
            line.push(&choice.detail, theme.dim);
        }
        match self.style {
            // Lists of many entries keep one row each.
            MenuStyle::Filtered => vec![line.truncated(columns)],
            MenuStyle::Numbered | MenuStyle::Marked => {
                let indent = " ".repeat(2 + number.len());
                line.continued_with(&indent, Style::default()).wrapped(columns)
            }
        }
    }
}
