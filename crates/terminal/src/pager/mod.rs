//! A page that is read with the keys of a pager: the transcript, of the session or of a subagent.

use crate::keys::{Action, KeyGroup, KeyTable};
use crate::menu::typed_text;
use crate::screen::{Key, KeyCode};
use crate::text::{Line, Style};
use crate::theme::Theme;

/// Place and search of a pager. Its lines are made by the drawing, for the width of the screen.
#[derive(Debug, Clone)]
pub(crate) struct Pager {
    /// First row that is shown; beyond the end it means the last page.
    top: usize,
    /// Number of rows when they were drawn last.
    row_count: usize,
    /// What is searched.
    query: String,
    is_typing: bool,
    /// Which transcript: none is the session, else the index of a subagent.
    agent: Option<usize>,
    /// A search that the next drawing carries out, when the rows are known.
    jump: Option<Jump>,
}

/// Direction of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
    Next,
    Previous,
}

impl Pager {
    /// The transcript of the session, at its end.
    pub(crate) fn transcript() -> Self {
        Self {
            top: usize::MAX,
            row_count: 0,
            query: String::new(),
            is_typing: false,
            agent: None,
            jump: None,
        }
    }

    /// Index of the subagent whose transcript is shown.
    pub(crate) fn agent(&self) -> Option<usize> {
        self.agent
    }

    /// Handles a key; true closes the pager.
    pub(crate) fn handle_key(&mut self, key: &Key, keys: &KeyTable, screen_rows: usize) -> bool {
        if self.is_typing {
            match key.code {
                KeyCode::Enter => {
                    self.is_typing = false;
                    self.jump = Some(Jump::Next);
                }
                KeyCode::Escape => {
                    self.is_typing = false;
                    self.query.clear();
                }
                KeyCode::Backspace => drop(self.query.pop()),
                _ => self.query.extend(typed_text(key)),
            }
            return false;
        }
        let page = screen_rows.saturating_sub(1).max(1);
        let last = self.row_count.saturating_sub(page);
        let top = self.top.min(last);
        self.top = match keys.actions(KeyGroup::Pager, key).next() {
            Some(Action::PagerUp) => top.saturating_sub(1),
            Some(Action::PagerDown) => top + 1,
            Some(Action::PagerPageUp) => top.saturating_sub(page),
            Some(Action::PagerPageDown) => top + page,
            Some(Action::PagerTop) => 0,
            Some(Action::PagerBottom) => usize::MAX,
            Some(Action::PagerSearch) => {
                self.query.clear();
                self.is_typing = true;
                top
            }
            Some(Action::PagerNextMatch) => {
                self.jump = Some(Jump::Next);
                top
            }
            Some(Action::PagerPreviousMatch) => {
                self.jump = Some(Jump::Previous);
                top
            }
            Some(Action::PagerClose) => return true,
            _ => match key.code {
                KeyCode::Tab => {
                    self.agent = self.agent.map_or(Some(0), |index| Some(index + 1));
                    usize::MAX
                }
                _ => top,
            },
        };
        false
    }

    /// The rows of the screen.
    pub(crate) fn render(
        &mut self,
        lines: &[Line],
        title: &str,
        (columns, rows): (usize, usize),
        theme: &Theme,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let page = rows.saturating_sub(1).max(1);
        let all: Vec<Line> = lines.iter().flat_map(|line| line.wrapped(columns)).collect();
        self.row_count = all.len();
        self.find_match(&all);
        let top = self.top.min(all.len().saturating_sub(page));
        let query = self.query.to_lowercase();
        let mut shown: Vec<Line> = all
            .iter()
            .skip(top)
            .take(page)
            .map(|line| {
                let is_match = !query.is_empty() && line.text().to_lowercase().contains(&query);
                if is_match { line.clone().over(Style::default().reversed()) } else { line.clone() }
            })
            .collect();
        shown.resize(page, Line::empty());
        let percent = if all.len() <= page { 100 } else { (top + page) * 100 / all.len() };
        let (bar, caret) = if self.is_typing {
            let bar = Line::styled("/", theme.accent).with(&self.query, Style::default());
            let column = bar.width().min(columns.saturating_sub(1));
            (bar, Some((page, column)))
        } else {
            let keys = "q closes · / searches · n next · Tab subagents";
            (Line::styled(&format!("{title} · {percent} % · {keys}"), theme.dim), None)
        };
        shown.push(bar.truncated(columns));
        (shown, caret)
    }

    /// Moves to the match that a key asked for; around the end if there is none behind.
    fn find_match(&mut self, rows: &[Line]) {
        let Some(jump) = self.jump.take() else { return };
        let query = self.query.to_lowercase();
        if query.is_empty() || rows.is_empty() {
            return;
        }
        let is_match = |row: &usize| rows[*row].text().to_lowercase().contains(&query);
        let top = self.top.min(rows.len() - 1);
        let found = match jump {
            Jump::Next => (top + 1..rows.len()).chain(0..=top).find(is_match),
            Jump::Previous => (0..top).rev().chain((top..rows.len()).rev()).find(is_match),
        };
        self.top = found.unwrap_or(top);
    }

    /// Shows the session if there is no such subagent.
    pub(crate) fn limit_agents(&mut self, count: usize) {
        self.agent = self.agent.filter(|index| *index < count);
    }
}
