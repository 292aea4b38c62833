//! Budget for the analysis of one command.
//!
//! The text itself is always read to its end; the budget applies to everything derived from it. Whatever exceeds the
//! budget is searched as plain text, or the analysis is marked as truncated; it never counts as checked.

use crate::shell::analyzer::Analyzer;
use crate::shell::{CommandAnalysis, WordValue};

/// Longer commands are never allowed by analysis; the deny analysis still searches them.
pub const MAX_ANALYZED_LENGTH: usize = 10_000;

/// Overhead in bytes of analyzing or searching one text.
const TEXT_OVERHEAD: usize = 64;

/// Overhead in characters of a word from a brace expansion.
pub(crate) const WORD_OVERHEAD: usize = 8;

/// Words of a command that cost as much as one more expansion.
const WORDS_PER_EXPANSION: usize = 32;

/// Maximum length of a path. No system opens a longer one, and resolving it would take quadratic time.
const MAX_PATH_LENGTH: usize = 4_096;

/// Maximum depth of a path. Real trees are not hundreds of directories deep.
const MAX_PATH_DEPTH: usize = 256;

/// Remaining budget.
#[derive(Debug)]
pub(crate) struct AnalysisBudget {
    /// Bytes of nested text to analyze.
    texts: usize,
    /// Bytes of text to search as plain text.
    searched_texts: usize,
    /// Commands in nested texts and behind other commands.
    commands: usize,
    /// Words of commands behind other commands.
    words: usize,
    /// Alternative expansions of commands.
    expansions: usize,
    /// Values and texts derived from variables with several values.
    values: usize,
    /// Words inserted into commands with placeholders.
    placeholder_words: usize,
    /// Aliases to analyze.
    aliases: usize,
}

impl AnalysisBudget {
    pub(crate) fn for_text(text: &str) -> Self {
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

    /// Computes the number of characters that variables and braces may add to words.
    pub(crate) fn compute_word_budget(text: &str) -> usize {
        text.len() + 65_536
    }

    /// Spends the budget to analyze a text. Returns false if it does not suffice.
    pub(crate) fn spend_text(&mut self, text: &str) -> bool {
        let length = text.len() + TEXT_OVERHEAD;
        // A text that is too long leaves the budget for shorter ones.
        self.commands > 0 && self.texts >= length && spend(&mut self.texts, length)
    }

    /// Spends the budget to search a text.
    pub(crate) fn spend_searched_text(&mut self, text: &str) -> bool {
        spend(&mut self.searched_texts, text.len() + TEXT_OVERHEAD)
    }

    /// Spends the budget for one more nested command.
    pub(crate) fn spend_command(&mut self) -> bool {
        spend(&mut self.commands, 1)
    }

    /// Spends the budget for a nested command with this many words.
    pub(crate) fn spend_words(&mut self, count: usize) -> bool {
        spend(&mut self.words, count) && self.spend_command()
    }

    /// Spends the budget for alternative expansions of a command with this many words.
    pub(crate) fn spend_expansions(&mut self, count: usize, words: usize) -> bool {
        spend(&mut self.expansions, count * (1 + words / WORDS_PER_EXPANSION))
    }

    /// Spends the budget for values or texts of variables.
    pub(crate) fn spend_values(&mut self, count: usize) -> bool {
        spend(&mut self.values, count)
    }

    /// Spends the budget for words inserted into placeholders.
    pub(crate) fn spend_placeholder_words(&mut self, count: usize) -> bool {
        spend(&mut self.placeholder_words, count)
    }

    /// Spends the budget for aliases.
    pub(crate) fn spend_aliases(&mut self, count: usize) -> bool {
        spend(&mut self.aliases, count)
    }
}

/// Spends an amount of a budget. Returns false, and empties it, if it does not suffice.
fn spend(left: &mut usize, count: usize) -> bool {
    let enough = *left >= count;
    *left = left.saturating_sub(count);
    enough
}

impl Analyzer<'_> {
    /// Marks the analysis as truncated. What was not analyzed must not count as checked.
    pub(crate) fn mark_truncated(&mut self) {
        if !std::mem::replace(&mut self.analysis.truncated, true) {
            self.analysis.unanalyzable.push(crate::shell::UnanalyzableCause::TooDeep);
        }
    }
}

/// Replaces every path that is too long by an unknown path below the root.
pub(crate) fn replace_long_paths(analysis: &mut CommandAnalysis) {
    for simple_command in analysis.commands.iter_mut().chain(&mut analysis.commands_if_empty) {
        let lists = [
            &mut simple_command.reads,
            &mut simple_command.writes,
            &mut simple_command.bulk_write_dirs,
            &mut simple_command.removals,
        ];
        lists.into_iter().flatten().for_each(replace_if_too_long);
        simple_command.redirects.iter_mut().for_each(|redirect| replace_if_too_long(&mut redirect.target));
        for dir_target in &mut simple_command.dir_targets {
            replace_if_too_long(&mut dir_target.directory);
            replace_if_too_long(&mut dir_target.source);
        }
    }
    analysis.cd_targets.iter_mut().flatten().for_each(replace_if_too_long);
    analysis
        .cd_directories
        .iter_mut()
        .chain(&mut analysis.option_directories)
        .chain(&mut analysis.cd_path)
        .for_each(replace_if_too_long);
}

fn replace_if_too_long(value: &mut WordValue) {
    let length = match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text.len(),
        WordValue::Unknown { before, after, .. } => before.len() + after.len(),
    };
    let deep = |text: &str| text.bytes().filter(|byte| *byte == b'/').count() > MAX_PATH_DEPTH;
    let too_long = length > MAX_PATH_LENGTH
        || length > MAX_PATH_DEPTH
            && match value {
                WordValue::Literal(text) | WordValue::Glob(text) => deep(text),
                WordValue::Unknown { before, after, .. } => deep(before) || deep(after),
            };
    if too_long {
        *value = WordValue::Unknown { before: "/".into(), after: String::new(), nonempty: false };
    }
}
