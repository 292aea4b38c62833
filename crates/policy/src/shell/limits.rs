//! How much is made of one command: the one place that says what the analysis of a text may cost.
//!
//! The text itself is always read to its end. What is counted here is what comes of it besides. What a limit leaves out is
//! searched as plain text, or the script is cut short; it never counts as looked at.

use super::inspect::Inspector;

/// As how many bytes more a text counts that is taken apart or searched.
const PER_TEXT: usize = 64;

/// As how many characters more a word counts that braces make.
pub(super) const PER_WORD: usize = 8;

/// How many words make one more reading of a command.
const MANY_WORDS: usize = 32;

/// What is left of each sort.
#[derive(Debug)]
pub(super) struct Limits {
    /// Bytes of text inside text that are taken apart.
    texts: usize,
    /// Bytes of text that are searched as they are.
    unfollowed: usize,
    /// Commands inside texts and behind other commands.
    commands: usize,
    /// Words behind other commands.
    words: usize,
    /// Readings of commands by other values of their variables.
    readings: usize,
    /// Values and texts that are made of variables with several values.
    values: usize,
    /// Words that are filled into commands by what they read.
    filled: usize,
    /// Other meanings of commands.
    meanings: usize,
}

impl Limits {
    pub(super) fn of(text: &str) -> Self {
        Self {
            texts: text.len() + 65_536,
            unfollowed: text.len() + 65_536,
            commands: 24_000,
            words: text.len() / 2 + 32_768,
            readings: 1_000,
            values: 60_000,
            filled: 8_000,
            meanings: 1_000,
        }
    }

    /// How many characters variables and braces may bring into words.
    pub(super) fn room(text: &str) -> usize {
        text.len() + 65_536
    }

    /// Whether a text may be taken apart.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let length = text.len() + PER_TEXT;
        // A shorter one may still have its turn.
        self.commands > 0 && self.texts >= length && take(&mut self.texts, length)
    }

    /// Whether a text may be searched as it is.
    pub(super) fn take_unfollowed(&mut self, text: &str) -> bool {
        take(&mut self.unfollowed, text.len() + PER_TEXT)
    }

    /// Whether one more command inside a text may be looked at.
    pub(super) fn take_command(&mut self) -> bool {
        take(&mut self.commands, 1)
    }

    /// Whether a command with so many words behind another one may be looked at.
    pub(super) fn take_words(&mut self, count: usize) -> bool {
        take(&mut self.words, count) && self.take_command()
    }

    /// Whether a command with so many words may be read in so many ways more.
    pub(super) fn take_readings(&mut self, count: usize, words: usize) -> bool {
        take(&mut self.readings, count * (1 + words / MANY_WORDS))
    }

    /// Whether so many values or texts may be made of variables.
    pub(super) fn take_values(&mut self, count: usize) -> bool {
        take(&mut self.values, count)
    }

    /// Whether so many words may be filled in.
    pub(super) fn take_filled(&mut self, count: usize) -> bool {
        take(&mut self.filled, count)
    }

    /// Whether so many other meanings of commands may be searched.
    pub(super) fn take_meanings(&mut self, count: usize) -> bool {
        take(&mut self.meanings, count)
    }
}

/// Takes so much if there is so much; else there is nothing left.
fn take(left: &mut usize, count: usize) -> bool {
    let enough = *left >= count;
    *left = left.saturating_sub(count);
    enough
}

impl Inspector<'_> {
    /// Notes that more came of the text than is followed. Not searched for lack of time is not the same as not found.
    pub(super) fn cut_short(&mut self) {
        if !std::mem::replace(&mut self.script.cut_short, true) {
            self.script.unanalysable.push(super::Kind::TooDeep);
        }
    }
}
