//! Nested commands: commands that a command runs in turn, through wrappers, `sh -c`, `eval` and their like.

use std::ops::{ControlFlow, Range};

use super::foreign_code::ForeignCode;
use super::{foreign_code, placeholders, shells, unparsed_text, wrappers};
use crate::shell::analyzer::Analyzer;
use crate::shell::analyzer::simple_command;
use crate::shell::nested::options as command_options;
use crate::shell::programs::effects::extract_program_name;
use crate::shell::programs::{builtins, find};
use crate::shell::words::expand::render_value;
use crate::shell::words::match_texts::join_raw_text;
use crate::shell::{UnanalyzableCause, Word, WordValue};

/// Wrappers in front of each other; deeper ones are searched as text.
pub(crate) const MAX_WRAPPERS: usize = 8;

/// Later words tried as the wrapped command if a wrapper has an unknown option.
const MAX_START_WORDS: usize = 8;

/// Texts that are analyzed again at the end.
const MAX_DEFERRED_TEXTS: usize = 64;

/// Words that are reserved only where the shell expects a command.
const RESERVED_WORDS: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac",
    "select", "function", "[[",
];

/// Depth to which a command accesses the files it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessDepth {
    Recursive,
    Direct,
}

impl Analyzer<'_> {
    /// Analyzes the nested commands of the simple command at an index.
    pub(crate) fn analyze_nested(&mut self, offset: usize, words: &[Word], depth: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.as_literal() else {
            self.mark_opaque(offset);
            return;
        };
        if depth >= MAX_WRAPPERS {
            self.search_as_text(&join_words(words));
            return;
        }
        if depth > 0 && RESERVED_WORDS.contains(&name) {
            // No program has this name; the words after it were probably meant as a command.
            self.search_as_text(&join_words(arguments));
        }
        let name = extract_program_name(name);
        if let Some(wrapped) = wrappers::find_wrapped(&name, words) {
            self.record_wrapper_variables(offset, &wrapped.variables);
            for text in &wrapped.command_texts {
                self.analyze_command_text(offset, text);
            }
            // Searching the words as text covers the commands behind later wrappers.
            let already_searched = self.text.already_searched;
            if wrapped.may_start_anywhere && !already_searched {
                self.search_as_text(&join_words(arguments));
                self.text.already_searched = true;
                let literal =
                    |start: &usize| words.get(*start).is_some_and(|word| word.value.as_literal().is_some());
                for start in (1..words.len().min(MAX_START_WORDS)).filter(literal) {
                    self.search_words(words.get(start..).unwrap_or_default(), depth + 1);
                }
            }
            if let Some(words) = &wrapped.resplit_words {
                self.search_words(words, depth + 1);
            }
            if matches!(name.as_str(), "xargs" | "parallel") {
                self.analyze_placeholders(offset, &name, words, wrapped.start);
            }
            if matches!(name.as_str(), "watch" | "parallel") {
                // These programs join the words and pass them to a shell.
                let start = wrapped.start.unwrap_or(words.len());
                self.analyze_text(&join_words(words.get(start..).unwrap_or_default()));
            }
            if let Some(start) = wrapped.start {
                self.search_words(words.get(start..).unwrap_or_default(), depth + 1);
            }
            self.text.already_searched = already_searched;
        }
        if shells::SHELLS.contains(&name.as_str()) {
            self.analyze_shell_call(offset, arguments);
        }
        if shells::SHELLS.contains(&name.as_str()) || matches!(name.as_str(), "source" | ".") {
            self.analyze_script_file(arguments, depth);
        }
        if builtins::takes_command_text(&name) {
            self.analyze_builtin(offset, &name, arguments);
        }
        let prints = name == "printf" && !arguments.iter().any(|word| word.raw.contains("-v"));
        if builtins::expands_subscripts(&name) && !prints {
            self.analyze_subscripts(arguments);
        }
        if name == "find" {
            let executed = find::find_exec_commands(arguments);
            if executed.len() >= find::MAX_EXEC_COMMANDS {
                self.search_as_text(&join_words(arguments));
            }
            for command in executed {
                if placeholders::runs_unknown_command(&placeholders::mark_placeholders(command, "{}")) {
                    self.mark_opaque(offset);
                }
                self.search_words(command, depth + 1);
                self.record_accessed_files(
                    &find::fill_placeholder(command, arguments),
                    AccessDepth::Recursive,
                );
            }
        }
        if name == "hash" {
            self.record_hash_builtin(arguments);
        }
        self.analyze_command_options(offset, &name, arguments);
    }

    /// Analyzes the commands in options of ordinary programs.
    fn analyze_command_options(&mut self, offset: usize, name: &str, arguments: &[Word]) {
        let nested = command_options::collect_nested_commands(name, arguments);
        for text in &nested.commands {
            self.analyze_command_text(offset, text);
        }
        for text in &nested.possible_commands {
            self.analyze_possible_command(text);
        }
        self.analyze_foreign_code(offset, foreign_code::find_code(name, arguments));
    }

    /// Analyzes the commands in code of other languages.
    pub(crate) fn analyze_foreign_code(&mut self, offset: usize, found_code: Vec<ForeignCode>) {
        for code in found_code {
            if let Some(simple_command) = self.analysis.commands.get_mut(offset) {
                simple_command.opaque |= code.opaque;
                simple_command.deny_texts.extend(unparsed_text::list_word_texts(&code.text));
            }
            for piece in &code.fragments {
                self.analyze_possible_command(piece);
            }
        }
    }

    /// Analyzes the command of `xargs` or `parallel`, whose words come from standard input.
    fn analyze_placeholders(&mut self, offset: usize, name: &str, words: &[Word], start: Option<usize>) {
        let unknown = match start {
            Some(start) => {
                placeholders::runs_unknown_command(&placeholders::fill_command(words, start, None))
            }
            // Without a command, `parallel` runs each input line.
            None => name == "parallel",
        };
        if unknown {
            self.mark_opaque(offset);
        }
        if let Some(start) = start {
            self.record_accessed_files(&placeholders::fill_command(words, start, None), AccessDepth::Direct);
        }
    }

    /// Records the files of a command with placeholders. Its command text is matched elsewhere.
    fn record_accessed_files(&mut self, words: &[Word], depth: AccessDepth) {
        let inner = (0..MAX_WRAPPERS).try_fold(words, |words, _| {
            let name = words.first().and_then(|word| word.value.as_literal()).map(extract_program_name);
            let start =
                name.and_then(|name| wrappers::find_wrapped(&name, words)).and_then(|wrapped| wrapped.start);
            match start.and_then(|start| words.get(start..)) {
                Some(inner) => ControlFlow::Continue(inner),
                None => ControlFlow::Break(words),
            }
        });
        let (ControlFlow::Continue(words) | ControlFlow::Break(words)) = inner;
        let mut searched = simple_command::build_searched_command(words);
        searched.deny_texts.clear();
        searched.opaque = false;
        searched.recursive |= depth == AccessDepth::Recursive;
        if !(searched.reads.is_empty() && searched.writes.is_empty() && searched.removals.is_empty()) {
            self.analysis.commands.push(searched);
        }
    }

    /// Collects commands with placeholders among these simple commands, each with the index of its nested command.
    pub(crate) fn collect_placeholder_commands(
        &self,
        command_ranges: &[Range<usize>],
    ) -> Vec<(Vec<Word>, usize)> {
        let simple_commands = command_ranges
            .iter()
            .flat_map(|range| self.analysis.commands.get(range.clone()).unwrap_or_default());
        let filled = simple_commands.filter_map(|simple_command| {
            let name = extract_program_name(simple_command.words.first()?.value.as_literal()?);
            if !matches!(name.as_str(), "xargs" | "parallel") {
                return None;
            }
            Some((simple_command.words.clone(), wrappers::find_wrapped(&name, &simple_command.words)?.start?))
        });
        filled.collect()
    }

    /// Searches the commands with the words of a text in their placeholders.
    pub(crate) fn search_filled_commands(&mut self, commands: &[(Vec<Word>, usize)], text: &str) {
        for (words, start) in commands {
            if !self.budget.spend_placeholder_words(
                words.len() + placeholders::count_added_bytes(words, *start, text) / 8,
            ) {
                self.mark_truncated();
                return;
            }
            self.search_words(&placeholders::fill_command(words, *start, Some(text)), 1);
        }
    }

    /// `hash -p FILE NAME`: the name runs the file from now on.
    fn record_hash_builtin(&mut self, arguments: &[Word]) {
        let texts: Vec<&str> = arguments.iter().filter_map(|word| word.value.as_literal()).collect();
        let Some(option) = texts.iter().position(|text| text.starts_with('-') && text.contains('p')) else {
            return;
        };
        let joined = texts.get(option).and_then(|text| text.split_once('p')).map_or("", |(_, file)| file);
        let (file, names) = match joined {
            "" => (texts.get(option + 1).copied().unwrap_or_default(), option + 2),
            joined => (joined, option + 1),
        };
        for name in texts.get(names..).unwrap_or_default() {
            self.variables.add_alias(name, file);
        }
        self.analyze_text(file);
    }

    pub(crate) fn mark_opaque(&mut self, offset: usize) {
        if let Some(simple_command) = self.analysis.commands.get_mut(offset) {
            simple_command.opaque = true;
        }
    }

    /// Analyzes a word that is the text of a command.
    fn analyze_command_text(&mut self, offset: usize, text: &WordValue) {
        if text.as_literal().is_none() {
            self.mark_opaque(offset);
        }
        self.analyze_text(&render_value(text));
    }

    /// `sh -c TEXT`, also with the letter in a bundle.
    fn analyze_shell_call(&mut self, offset: usize, arguments: &[Word]) {
        let command = arguments.iter().position(|word| {
            let text = word.value.as_literal().unwrap_or_default();
            text == "--command"
                || text
                    .strip_prefix(['-', '+'])
                    .is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
        });
        if arguments.iter().any(|word| word.value.is_unknown()) {
            self.mark_opaque(offset);
        }
        let Some(command) = command else { return };
        // Options may follow `-c`, so each of the next words may be the text.
        for word in arguments.iter().skip(command + 1).take(4) {
            self.analyze_command_text(offset, &word.value);
        }
        let rest: Vec<String> =
            arguments.iter().skip(command + 5).map(|word| render_value(&word.value)).collect();
        if !rest.is_empty() {
            self.search_as_text(&rest.join(" "));
        }
    }

    /// `sh NAME` and `source NAME`: a name that is not a local file is searched in `PATH`.
    fn analyze_script_file(&mut self, arguments: &[Word], depth: usize) {
        let option = |word: &&Word| word.value.as_literal().is_some_and(|text| text.starts_with(['-', '+']));
        let start = arguments.iter().take_while(option).count();
        self.search_words(arguments.get(start..).unwrap_or_default(), depth + 1);
    }

    /// Commands in `a[$(..)]`, which some builtins expand although the word was quoted.
    fn analyze_subscripts(&mut self, arguments: &[Word]) {
        for text in arguments.iter().filter_map(|word| word.value.as_literal()) {
            let subscript = text.contains('[') || text.contains("=(");
            if subscript && text.contains(['$', '`']) {
                // The substitution runs whatever rule allows the builtin.
                self.note_unanalyzable(UnanalyzableCause::Substitution);
                self.analyze_text(text);
            }
        }
    }

    fn analyze_builtin(&mut self, offset: usize, name: &str, arguments: &[Word]) {
        if matches!(name, "eval" | "trap") && self.texts.deferred.len() < MAX_DEFERRED_TEXTS {
            let texts = arguments.iter().filter_map(|word| word.value.as_literal());
            self.texts.deferred.extend(texts.filter(|text| text.contains('$')).map(str::to_owned));
        }
        if arguments.iter().any(|word| word.value.as_literal().is_none()) {
            self.mark_opaque(offset);
        }
        if name == "eval" {
            let end =
                usize::from(arguments.first().is_some_and(|word| word.value.as_literal() == Some("--")));
            let texts: Vec<String> =
                arguments.iter().skip(end).map(|word| render_value(&word.value)).collect();
            self.analyze_text(&texts.join(" "));
            return;
        }
        let texts: Vec<String> = arguments.iter().map(|word| render_value(&word.value)).collect();
        for text in texts.iter().take(32) {
            let text = match text.split_once('=').filter(|_| name == "alias") {
                Some((alias, text)) => {
                    self.variables.add_alias(alias, text);
                    text
                }
                None => text,
            };
            if !text.starts_with('-') {
                self.analyze_text(text);
                continue;
            }
            // The text may be joined to any letter of the option.
            for (offset, _) in text.char_indices().skip(2).take(4) {
                self.analyze_text(text.get(offset..).unwrap_or_default());
            }
        }
        if texts.len() > 32 {
            self.search_as_text(&texts.join(" "));
        }
    }
}

/// Joins the words without quotes, or as written if no value is known.
fn join_words(words: &[Word]) -> String {
    let text = |word: &Word| word.value.as_literal().map_or_else(|| word.raw.clone(), str::to_owned);
    if words.iter().all(|word| word.value.as_literal().is_none()) {
        return join_raw_text(words);
    }
    words.iter().map(text).collect::<Vec<_>>().join(" ")
}
