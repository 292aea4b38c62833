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
    /// The rows of the page, and what they were made of.
    rows: Vec<Line>,
    source: Option<PageSource>,
    /// What is searched.
    query: String,
    is_typing: bool,
    /// Which transcript: none is the session, else the index of a subagent.
    agent: Option<usize>,
    /// A search that the next drawing carries out, when the rows are known.
    jump: Option<Jump>,
}

/// What the rows of a page depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageSource {
    agent: Option<usize>,
    version: u64,
    columns: usize,
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
            rows: Vec::new(),
            source: None,
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
        let last = self.rows.len().saturating_sub(page);
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

    /// Makes the rows of the page, if its transcript or the width has changed since the last time.
    pub(crate) fn load(&mut self, version: u64, columns: usize, lines: impl FnOnce() -> Vec<Line>) {
        let source = PageSource { agent: self.agent, version, columns };
        if self.source != Some(source) {
            self.rows = lines().iter().flat_map(|line| line.wrapped(columns)).collect();
            self.source = Some(source);
        }
    }

    /// The rows of the screen.
    pub(crate) fn render(
        &mut self,
        title: &str,
        (columns, rows): (usize, usize),
        theme: &Theme,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let page = rows.saturating_sub(1).max(1);
        self.find_match();
        let all = &self.rows;
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
    fn find_match(&mut self) {
        let Some(jump) = self.jump.take() else { return };
        let rows = &self.rows;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_made_only_when_its_source_changes() {
        let mut pager = Pager::transcript();
        let mut made = 0;
        for (version, columns, expected) in [(1, 20, 1), (1, 20, 1), (2, 20, 2), (2, 10, 3), (2, 10, 3)] {
            pager.load(version, columns, || {
                made += 1;
                vec![Line::plain("one two three four")]
            });
            assert_eq!(made, expected, "{version} {columns}");
        }
        let (rows, _) = pager.render("title", (10, 4), &Theme::PLAIN);
        let texts: Vec<String> = rows.iter().take(3).map(|row| row.text().trim_end().to_owned()).collect();
        assert_eq!(texts, ["one two", "three", "four"]);
    }
}
