//! Killed texts, newest first. Kills in a row make one text.

use std::collections::VecDeque;

/// Number of texts that are kept.
const MAX_KILLS: usize = 32;

/// Side of the caret on which a killed text was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillDirection {
    Left,
    Right,
}

#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    texts: VecDeque<String>,
    /// The next kill joins the latest text.
    is_chained: bool,
}

impl KillRing {
    /// Adds a killed text.
    pub(super) fn add(&mut self, text: &str, direction: KillDirection) {
        match (self.texts.front_mut().filter(|_| self.is_chained), direction) {
            (Some(latest), KillDirection::Left) => latest.insert_str(0, text),
            (Some(latest), KillDirection::Right) => latest.push_str(text),
            (None, _) => {
                self.texts.push_front(text.to_owned());
                self.texts.truncate(MAX_KILLS);
            }
        }
        self.is_chained = true;
    }

    /// The next kill begins a text of its own.
    pub(super) fn break_chain(&mut self) {
        self.is_chained = false;
    }

    /// The latest text.
    pub(super) fn latest(&self) -> Option<&str> {
        self.texts.front().map(String::as_str)
    }

    /// Makes the text before the latest one the latest.
    pub(super) fn rotate(&mut self) -> Option<&str> {
        let latest = self.texts.pop_front()?;
        self.texts.push_back(latest);
        self.latest()
    }
}
