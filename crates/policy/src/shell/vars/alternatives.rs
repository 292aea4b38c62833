//! Alternative expansions of a command: with other values of its variables, with unknown values, and with unknown
//! values empty.

use std::collections::HashMap;

use super::env::ExpansionMode;
use crate::shell::analyzer::Analyzer;
use crate::shell::analyzer::simple_command;
use crate::shell::nested::stdout::{StdoutContent, derive_stdout_content};
use crate::shell::parser::syntax::{RawCommand, RawWord, StdinText};
use crate::shell::parser::words::extract_leading_name;
use crate::shell::programs::builtins;
use crate::shell::words::expand;
use crate::shell::{CheckScope, SimpleCommand, Word, WordValue};

/// Words checked for the name of a builtin.
pub(crate) const MAX_PREFIX_WORDS: usize = 4;

/// Texts of a simple command besides its words.
#[derive(Debug)]
pub(crate) struct CommandTexts {
    /// True if its words or its input may differ from the first expansion.
    varies: bool,
    pub(crate) texts: Vec<String>,
}

impl Analyzer<'_> {
    /// Lists alternative expansions to analyze; `None` if there are too many.
    pub(crate) fn list_other_expansions(&mut self, command: &RawCommand) -> Option<Vec<ExpansionMode>> {
        let words = || command.words.iter().chain(command.redirects.iter().map(|redirect| &redirect.target));
        let choices = words().map(|word| self.variables.count_alternatives(word)).max().unwrap_or(1);
        let may_differ = words().any(|word| self.variables.may_have_other_values(word));
        let empty_count = self.variables.count_empty_alternatives(words());
        let extra = choices - 1 + empty_count.saturating_sub(1);
        if !self.budget.spend_expansions(extra, command.words.len() + command.redirects.len()) {
            return None;
        }
        let known = (1..choices).map(ExpansionMode::NthValue);
        let unknown = may_differ.then_some(ExpansionMode::Unknown);
        let if_empty = (0..empty_count).map(ExpansionMode::UnknownAsEmpty);
        Some(known.chain(unknown).chain(if_empty).collect())
    }

    /// Records texts of here-strings, and texts printed in alternative expansions, for the simple command at an
    /// index.
    pub(crate) fn record_texts(&mut self, index: usize, command: &RawCommand, others: &[ExpansionMode]) {
        let here_strings: Vec<&RawWord> =
            command.stdin_texts.iter().filter_map(StdinText::here_string).collect();
        let mut texts: Vec<String> =
            here_strings.iter().flat_map(|word| self.list_possible_texts(word)).collect();
        let count = others.len() * (1 + command.words.len() / 32);
        let varies = command.words.iter().chain(here_strings).any(|word| !self.variables.is_definite(word));
        if varies && self.budget.spend_values(count) {
            for mode in others {
                if let StdoutContent::Text(printed) =
                    derive_stdout_content(&self.expand_words(&command.words, *mode, &mut Vec::new()))
                {
                    texts.extend(printed);
                }
            }
        } else if varies {
            self.mark_truncated();
        }
        if varies || !texts.is_empty() {
            self.texts.by_command.insert(index, CommandTexts { varies, texts });
        }
    }

    /// Lists texts that a word may expand to where it is not split.
    fn list_possible_texts(&mut self, word: &RawWord) -> Vec<String> {
        let (choices, empty_count) = (
            self.variables.count_alternatives(word),
            self.variables.count_empty_alternatives(std::iter::once(word)),
        );
        if !self.budget.spend_values(choices + empty_count) {
            self.mark_truncated();
            return Vec::new();
        }
        let modes = (0..choices)
            .map(ExpansionMode::NthValue)
            .chain((0..empty_count).map(ExpansionMode::UnknownAsEmpty));
        let text = |mode| {
            expand::render_value(&expand::expand_single_with(word, &self.variables, mode, &mut Vec::new()))
        };
        modes.map(text).collect()
    }

    /// Returns true if the words or the input of a simple command may differ from the first expansion.
    pub(crate) fn may_vary(&self, index: usize) -> bool {
        self.texts.by_command.get(&index).is_some_and(|texts| texts.varies)
    }

    /// Analyzes a command in another expansion.
    pub(crate) fn analyze_expansion(&mut self, command: &RawCommand, mode: ExpansionMode) {
        if matches!(mode, ExpansionMode::UnknownAsEmpty(_)) {
            self.search_with_empty_unknowns(command, mode);
            return;
        }
        let words = self.expand_words(&command.words, mode, &mut Vec::new());
        self.search_expansion(command, &words, mode);
    }

    /// Removes directories added by this expansion that earlier expansions of the same command already added.
    pub(crate) fn keep_new_directories(&mut self, start: usize, known: usize) {
        let added = self.analysis.cd_directories.split_off(known);
        if added.is_empty() {
            return;
        }
        let mut earlier: HashMap<&WordValue, usize> = HashMap::new();
        for directory in self.analysis.cd_directories.iter().skip(start) {
            *earlier.entry(directory).or_default() += 1;
        }
        let is_new = |directory: &WordValue| match earlier.get_mut(directory) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let new: Vec<WordValue> = added.into_iter().filter(is_new).collect();
        self.analysis.cd_directories.extend(new);
    }

    fn search_expansion(&mut self, command: &RawCommand, words: &[Word], mode: ExpansionMode) {
        let index = self.analysis.commands.len();
        self.search_words(words, 0);
        if command.redirects.is_empty() {
            return;
        }
        if self.analysis.commands.len() == index {
            self.analysis.commands.push(simple_command::build_searched_command(&[]));
        }
        let redirects = self.expand_redirects(command, mode, &mut Vec::new());
        if let Some(simple_command) = self.analysis.commands.get_mut(index) {
            simple_command.redirects = redirects;
        }
    }

    /// Analyzes a command as if its unknown parts were empty: `git $none push` pushes. Rules are matched against the
    /// result, but it does not count as evidence for what would be accessed or removed.
    fn search_with_empty_unknowns(&mut self, command: &RawCommand, mode: ExpansionMode) {
        let words = self.expand_words(&command.words, mode, &mut Vec::new());
        self.record_declared_if_empty(&words);
        let start = self.analysis.commands.len();
        let (cd_target_count, cd_path_count) = (self.analysis.cd_targets.len(), self.analysis.cd_path.len());
        let (directory_count, option_dir_count) =
            (self.analysis.cd_directories.len(), self.analysis.option_directories.len());
        let paused = std::mem::replace(&mut self.memo.paused, true);
        self.search_expansion(command, &words, mode);
        self.memo.paused = paused;
        self.analysis.cd_targets.truncate(cd_target_count);
        self.analysis.cd_path.truncate(cd_path_count);
        retain_literal(&mut self.analysis.cd_directories, directory_count);
        retain_literal(&mut self.analysis.option_directories, option_dir_count);
        self.analysis.commands_if_empty.extend(self.analysis.commands.drain(start..).map(keep_named_only));
        self.texts.by_command.split_off(&start);
    }

    fn record_declared_if_empty(&mut self, words: &[Word]) {
        let Some((first, arguments)) = words.split_first() else { return };
        if !first.value.as_literal().is_some_and(builtins::declares_variables) {
            return;
        }
        for text in arguments.iter().filter_map(|word| word.value.as_literal()) {
            if let Some((name, value)) =
                text.split_once('=').filter(|(name, _)| extract_leading_name(name) == *name)
            {
                self.variables.add_text_if_empty(name, value);
            }
        }
    }

    /// Records the variables that a builtin sets in every expansion, the first expansion last. They are definite only
    /// if its name is.
    pub(crate) fn record_builtin_values(
        &mut self,
        command: &RawCommand,
        words: &[Word],
        others: &[ExpansionMode],
    ) {
        let definite_count = self.variables.definite_count();
        let sets = |word: &Word| word.value.as_literal().is_some_and(builtins::sets_variables);
        let mut several = false;
        if words.iter().take(MAX_PREFIX_WORDS).any(sets) {
            for mode in others.iter().filter(|mode| !matches!(mode, ExpansionMode::UnknownAsEmpty(_))).rev() {
                let words = self.expand_words(&command.words, *mode, &mut Vec::new());
                self.record_builtin(&words);
                several = true;
            }
        }
        self.record_builtin(words);
        if several {
            self.variables.weaken_since(definite_count);
        }
        if command.words.first().is_some_and(|word| !self.variables.is_definite(word)) {
            self.variables.rollback_definite(definite_count);
        }
    }
}

/// Removes entries added after `count` that are not literal.
fn retain_literal(directories: &mut Vec<WordValue>, count: usize) {
    let added = directories.split_off(count);
    directories.extend(added.into_iter().filter(is_nonempty_literal));
}

fn is_nonempty_literal(value: &WordValue) -> bool {
    value.as_literal().is_some_and(|text| !text.is_empty())
}

/// Keeps only what rules match: the texts of a simple command and the files that it names.
fn keep_named_only(mut simple_command: SimpleCommand) -> SimpleCommand {
    simple_command.reads.retain(is_nonempty_literal);
    simple_command.writes.retain(is_nonempty_literal);
    simple_command.redirects.retain(|redirect| is_nonempty_literal(&redirect.target));
    SimpleCommand {
        check_scope: CheckScope::Possible,
        dir_targets: Vec::new(),
        bulk_write_dirs: Vec::new(),
        removals: Vec::new(),
        recursive: false,
        writes_recursively: false,
        opaque: false,
        ..simple_command
    }
}
