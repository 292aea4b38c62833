//! How much is made of one command: the one place that says what the analysis of a text may cost.
//!
//! The text itself is always read to its end. What is counted here is what comes of it besides. What a limit leaves out is
//! searched as plain text, or the script is cut short; it never counts as looked at.

use super::analyzer::Analyzer;

/// As how many bytes more a text counts that is taken apart or searched.
const TEXT_OVERHEAD: usize = 64;

/// As how many characters more a word counts that braces make.
pub(super) const WORD_OVERHEAD: usize = 8;

/// How many words make one more reading of a command.
const WORDS_PER_EXPANSION: usize = 32;

/// What is left of each sort.
#[derive(Debug)]
pub(super) struct AnalysisLimits {
    /// Bytes of text inside text that are taken apart.
    texts: usize,
    /// Bytes of text that are searched as they are.
    searched_texts: usize,
    /// Commands inside texts and behind other commands.
    commands: usize,
    /// Words behind other commands.
    words: usize,
    /// Readings of commands by other values of their variables.
    expansions: usize,
    /// Values and texts that are made of variables with several values.
    values: usize,
    /// Words that are filled into commands by what they read.
    placeholder_words: usize,
    /// Other meanings of commands.
    aliases: usize,
}

impl AnalysisLimits {
    pub(super) fn for_text(text: &str) -> Self {
        Self {
            texts: text.len() + 65_536,
            searched_texts: text.len() + 65_536,
            commands: 24_000,
            words: text.len() / 2 + 32_768,
            expansions: 1_000,
            values: 60_000,
            placeholder_words: 8_000,
            aliases: 1_000,
        }
    }

    /// How many characters variables and braces may bring into words.
    pub(super) fn word_budget(text: &str) -> usize {
        text.len() + 65_536
    }

    /// Whether a text may be taken apart.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let length = text.len() + TEXT_OVERHEAD;
        // A shorter one may still have its turn.
        self.commands > 0 && self.texts >= length && take(&mut self.texts, length)
    }

    /// Whether a text may be searched as it is.
    pub(super) fn take_searched_text(&mut self, text: &str) -> bool {
        take(&mut self.searched_texts, text.len() + TEXT_OVERHEAD)
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
    pub(super) fn take_expansions(&mut self, count: usize, words: usize) -> bool {
        take(&mut self.expansions, count * (1 + words / WORDS_PER_EXPANSION))
    }

    /// Whether so many values or texts may be made of variables.
    pub(super) fn take_values(&mut self, count: usize) -> bool {
        take(&mut self.values, count)
    }

    /// Whether so many words may be filled in.
    pub(super) fn take_placeholder_words(&mut self, count: usize) -> bool {
        take(&mut self.placeholder_words, count)
    }

    /// Whether so many other meanings of commands may be searched.
    pub(super) fn take_aliases(&mut self, count: usize) -> bool {
        take(&mut self.aliases, count)
    }
}

/// Takes so much if there is so much; else there is nothing left.
fn take(left: &mut usize, count: usize) -> bool {
    let enough = *left >= count;
    *left = left.saturating_sub(count);
    enough
}

impl Analyzer<'_> {
    /// Notes that more came of the text than is followed. Not searched for lack of time is not the same as not found.
    pub(super) fn mark_truncated(&mut self) {
        if !std::mem::replace(&mut self.script.truncated, true) {
            self.script.unanalyzable.push(super::UnanalyzableCause::TooDeep);
        }
    }
}
