//! Pastes of terminals without bracketed paste: lines that arrive faster than a person types are no messages. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::key::{Key, KeyCode, Modifiers};
use super::parser::Input;

/// Characters that come closer than this belong to one burst.
const BURST_WINDOW: Duration = Duration::from_millis(10);

/// Holds a line break that follows a character at once back, until it is clear whether more of a paste follows.
#[derive(Debug, Default)]
pub(super) struct BurstFilter {
    /// When the last character came.
    last: Option<Instant>,
    /// A line break and what followed it within the window.
    held: Vec<Input>,
}

impl BurstFilter {
    /// Takes what was read and returns what is decided.
    pub(super) fn feed(&mut self, inputs: Vec<Input>, now: Instant) -> Vec<Input> {
        let mut decided = Vec::with_capacity(inputs.len());
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            decided.extend(self.flush());
        }
        for input in inputs {
            let Some(character) = typed_character(&input) else {
                decided.extend(self.flush());
                decided.push(input);
                continue;
            };
            let is_burst = self.last.is_some_and(|last| now.saturating_duration_since(last) < BURST_WINDOW);
            self.last = Some(now);
            if !self.held.is_empty() || (character == '\n' && is_burst) {
                self.held.push(input);
            } else {
                decided.push(input);
            }
        }
        decided
    }

    /// When [`Self::flush`] is due; none if nothing is held back.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.last.filter(|_| !self.held.is_empty()).map(|last| last + BURST_WINDOW)
    }

    /// Decides on what was held back: with text behind the line break it is a paste.
    pub(super) fn flush(&mut self) -> Vec<Input> {
        let held = std::mem::take(&mut self.held);
        let text: String = held.iter().filter_map(typed_character).collect();
        if text.trim_matches('\n').is_empty() { held } else { vec![Input::Paste(text)] }
    }
}

/// The character that a key types, if it is one that a paste may contain.
fn typed_character(input: &Input) -> Option<char> {
    match input {
        Input::Key(Key { code: KeyCode::Char(character), modifiers, .. })
            if *modifiers == Modifiers::NONE =>
        {
            Some(*character)
        }
        Input::Key(Key { code: KeyCode::Enter, modifiers, .. }) if *modifiers == Modifiers::NONE => {
            Some('\n')
        }
        Input::Key(Key { code: KeyCode::Tab, modifiers, .. }) if *modifiers == Modifiers::NONE => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Input> {
        let code = |character| match character {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            character => KeyCode::Char(character),
        };
        text.chars().map(|character| Input::Key(Key::plain(code(character)))).collect()
    }

    /// What becomes of pieces that are read at these times, in milliseconds: typed text, with pastes in brackets.
    fn typed(pieces: &[(u64, &str)]) -> String {
        let start = Instant::now();
        let mut filter = BurstFilter::default();
        let mut decided = Vec::new();
        for (ms, text) in pieces {
            decided.extend(filter.feed(keys(text), start + Duration::from_millis(*ms)));
        }
        decided.extend(filter.flush());
        let shown = decided.iter().map(|input| match input {
            Input::Paste(text) => format!("[{text}]"),
            input => typed_character(input).map(String::from).unwrap_or_default(),
        });
        shown.collect()
    }

    #[test]
    fn lines_within_the_window_are_a_paste() {
        let rows: [(&[(u64, &str)], &str); 7] = [
            (&[(0, "hello")], "hello"),
            (&[(0, "hello\n")], "hello\n"),
            (&[(0, "\n")], "\n"),
            (&[(0, "a\nb")], "a[\nb]"),
            (&[(0, "a\n"), (9, "\tb\n")], "a[\n\tb\n]"),
            (&[(0, "a\n"), (10, "b")], "a\nb"),
            (&[(0, "a"), (50, "\n"), (55, "b")], "a\nb"),
        ];
        for (pieces, expected) in rows {
            assert_eq!(typed(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn only_a_line_break_within_a_burst_waits() {
        let now = Instant::now();
        let mut filter = BurstFilter::default();
        filter.feed(keys("ab"), now);
        assert_eq!(filter.deadline(), None);
        filter.feed(keys("\n"), now + Duration::from_millis(1));
        assert_eq!(filter.deadline(), Some(now + Duration::from_millis(1) + BURST_WINDOW));
    }
}
