//! Analyzer: turns parsed commands into simple commands, then analyzes their nested commands.

pub(crate) mod budget;
pub(crate) mod memo;
pub(crate) mod rule_suggestion;
pub(crate) mod simple_command;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::{
    Assignment, CheckScope, CommandAnalysis, MAX_ANALYZED_LENGTH, Redirect, RedirectDirection,
    RedirectTargetKind, ShellContext, SimpleCommand, UnanalyzableCause, Word, WordValue,
};
use crate::shell::analyzer::budget::AnalysisBudget;
use crate::shell::analyzer::memo::Memo;

use crate::shell::analyzer::simple_command::ExpandedCommand;
use crate::shell::nested::unparsed_text;
use crate::shell::parser::cursor::Parser;
use crate::shell::parser::syntax::{AssignmentForm, ParsedScript, RawCommand, RawWord};
use crate::shell::parser::{hidden_characters, redirects};
use crate::shell::programs::{builtins, directories, effects};
use crate::shell::vars::alternatives::CommandTexts;
use crate::shell::vars::env::{ExpansionMode, LAST_VALUE, VariableEnv};
use crate::shell::vars::{assign, safe_assignment};
use crate::shell::words::expand;

/// Nesting depth of command texts.
pub(crate) const MAX_TEXT_DEPTH: usize = 10;

/// State of the analysis of one command.
pub(crate) struct Analyzer<'a> {
    pub(crate) variables: VariableEnv<'a>,
    pub(crate) analysis: CommandAnalysis,
    pub(crate) budget: AnalysisBudget,
    pub(crate) memo: Memo,
    /// The text that is analyzed at the moment.
    pub(crate) text: TextState,
    pub(crate) texts: RecordedTexts,
    /// Variables that each function sets on every call; `None` if that is not definite.
    pub(crate) function_assignments: HashMap<String, Option<HashSet<String>>>,
}

/// The text that is analyzed at the moment, and the position in it.
#[derive(Debug, Default)]
pub(crate) struct TextState {
    /// Nesting depth; 0 for the command itself.
    pub(crate) depth: usize,
    /// True if the text may not be a command.
    pub(crate) is_possible_command: bool,
    /// True if the current words are already searched as text.
    pub(crate) already_searched: bool,
    /// True if the current command is in the body of a function.
    pub(crate) in_function: bool,
}

/// Texts recorded for a later analysis.
#[derive(Debug, Default)]
pub(crate) struct RecordedTexts {
    /// By simple command: texts of here-strings, and texts printed in alternative expansions.
    pub(crate) by_command: BTreeMap<usize, CommandTexts>,
    /// Texts of `eval` and `trap`, which may run again when variables have other values.
    pub(crate) deferred: Vec<String>,
}

impl<'a> Analyzer<'a> {
    /// Analyzes a text.
    pub(crate) fn run(text: &str, context: &'a ShellContext<'a>) -> CommandAnalysis {
        let mut analyzer = Self {
            variables: VariableEnv::new(context.home, text),
            analysis: CommandAnalysis { text: text.trim().to_owned(), ..CommandAnalysis::default() },
            budget: AnalysisBudget::for_text(text),
            memo: Memo::default(),
            text: TextState::default(),
            texts: RecordedTexts::default(),
            function_assignments: HashMap::new(),
        };
        if text.len() > MAX_ANALYZED_LENGTH && text.chars().count() > MAX_ANALYZED_LENGTH {
            analyzer.note_unanalyzable(UnanalyzableCause::TooLong);
        }
        if hidden_characters::has_hidden_character(text) {
            analyzer.note_unanalyzable(UnanalyzableCause::HiddenCharacter);
        }
        analyzer.parse_and_analyze(text);
        for text in std::mem::take(&mut analyzer.texts.deferred) {
            analyzer.analyze_text(&text);
        }
        if text.contains("\\\n") {
            // Analyzed again with continued lines joined, wherever they are.
            analyzer.analyze_text(&text.replace("\\\n", ""));
        }
        if analyzer.analysis.commands.is_empty() {
            analyzer.note_unanalyzable(UnanalyzableCause::Syntax);
        }
        if analyzer.variables.is_budget_exhausted() {
            analyzer.mark_truncated();
        }
        budget::replace_long_paths(&mut analyzer.analysis);
        analyzer.analysis
    }

    /// Records a cause once. Causes inside nested texts do not affect the command that contains them.
    pub(crate) fn note_unanalyzable(&mut self, cause: UnanalyzableCause) {
        if self.text.depth == 0 && !self.analysis.unanalyzable.contains(&cause) {
            self.analysis.unanalyzable.push(cause);
        }
    }

    /// Analyzes a text that a command would run.
    pub(crate) fn analyze_text(&mut self, text: &str) {
        let key = self.build_text_key(text);
        if self.find_memoized(&key).is_some() {
            return;
        }
        let (before, start) = (self.capture_analysis_state(), self.analysis.commands.len());
        self.analyze_new_text(text);
        self.memoize(key, before, start);
    }

    fn analyze_new_text(&mut self, text: &str) {
        if self.text.depth >= MAX_TEXT_DEPTH || !self.budget.spend_text(text) {
            if !self.text.is_possible_command {
                self.search_as_text(text);
            }
            return;
        }
        self.text.depth += 1;
        let already_searched = std::mem::take(&mut self.text.already_searched);
        let in_function = std::mem::take(&mut self.text.in_function);
        // The text may not run, or may run in another shell: definite assignments do not carry over in either
        // direction.
        let definite_count = self.variables.definite_count();
        let floor = self.variables.set_definite_floor(definite_count);
        self.parse_and_analyze(text);
        self.variables.rollback_definite(definite_count);
        self.variables.set_definite_floor(floor);
        self.text.in_function = in_function;
        self.text.already_searched = already_searched;
        self.text.depth -= 1;
    }

    /// Analyzes a text that may be a command. If it is not, it has no consequences.
    pub(crate) fn analyze_possible_command(&mut self, text: &str) {
        let (start, cd_target_count) = (self.analysis.commands.len(), self.analysis.cd_targets.len());
        let was_guess = std::mem::replace(&mut self.text.is_possible_command, true);
        self.analyze_text(text);
        self.text.is_possible_command = was_guess;
        self.analysis.cd_targets.truncate(cd_target_count);
        for simple_command in self.analysis.commands.iter_mut().skip(start) {
            simple_command.opaque = false;
            simple_command.check_scope = CheckScope::Possible;
        }
    }

    /// Leaves a text to be searched as plain text.
    pub(crate) fn search_as_text(&mut self, text: &str) {
        if !self.budget.spend_searched_text(text) {
            self.mark_truncated();
            return;
        }
        let home = self.variables.home;
        self.analysis.commands.push(if self.text.is_possible_command {
            unparsed_text::build_possible_command(text)
        } else {
            unparsed_text::build_unparsed_command(text, home)
        });
    }

    fn parse_and_analyze(&mut self, text: &str) {
        let mut parsed = ParsedScript::default();
        if let Err(error) = Parser::new(text, 0, self.text.depth > 0, &mut parsed).parse_program() {
            parsed.note_unanalyzable(error.0);
            parsed.unparsed_texts.push(text.to_owned());
        }
        for cause in std::mem::take(&mut parsed.unanalyzable) {
            self.note_unanalyzable(cause);
        }
        self.analysis.background |= parsed.background && self.text.depth == 0;
        self.assign_loop_variables(&parsed);
        if parsed.may_repeat {
            self.analysis.may_repeat = true;
            self.variables.may_repeat = true;
            self.propagate_values(&parsed);
        }
        // A function may replace a builtin.
        self.variables.has_untracked_changes |=
            parsed.functions.iter().any(|(name, _)| builtins::sets_variables(name));
        let command_ranges = self.analyze_commands(&parsed);
        self.analyze_aliases(&parsed);
        self.analyze_shell_input(&parsed, &command_ranges);
        for unparsed in &parsed.unparsed_texts {
            self.search_as_text(unparsed);
        }
    }

    /// Analyzes one command. Returns the range of its simple command and those nested in it.
    pub(crate) fn analyze_command(&mut self, command: &RawCommand) -> Range<usize> {
        let key = self.build_command_key(command);
        if let Some(known) = key.as_ref().and_then(|key| self.find_memoized(key)) {
            return known;
        }
        if self.text.depth > 0 && !self.budget.spend_command() {
            self.mark_truncated();
            return self.analysis.commands.len()..self.analysis.commands.len();
        }
        let before = self.capture_analysis_state();
        let index = self.analyze_new_command(command);
        if let Some(key) = key {
            self.memoize(key, before, index);
        }
        index..self.analysis.commands.len()
    }

    /// Analyzes one command that is not memoized. Returns the index of its simple command; nested ones follow it.
    fn analyze_new_command(&mut self, command: &RawCommand) -> usize {
        let mut causes = Vec::new();
        let definite_count = self.variables.definite_count();
        let assignments: Vec<(String, Assignment)> = command
            .assignments
            .iter()
            .map(|assignment| {
                let value = expand::expand_single(&assignment.value, &self.variables, &mut causes);
                self.record_assignment(command, assignment, &value);
                let safe = assignment.form == AssignmentForm::Plain
                    && safe_assignment::is_safe_assignment(&assignment.name, &assignment.value.raw, &value);
                (assignment.raw.clone(), Assignment { name: assignment.name.clone(), value, safe })
            })
            .collect();
        let redirects = self.expand_redirects(command, LAST_VALUE, &mut causes);
        let words = self.expand_words(&command.words, LAST_VALUE, &mut causes);
        if let Some(WordValue::Literal(name)) = words.first().map(|word| &word.value)
            && !name.is_ascii()
            && !command.is_test
        {
            causes.push(UnanalyzableCause::NonAsciiCommand);
        }
        let others = self.list_other_expansions(command);
        let has_untracked_values = others.is_none();
        self.analysis.has_untracked_values |= has_untracked_values || self.variables.overflowed;
        let others = others.unwrap_or_default();
        for cause in causes {
            self.note_unanalyzable(cause);
        }
        let index = self.analysis.commands.len();
        let mut checked = simple_command::build_checked_command(&ExpandedCommand {
            command,
            words: &words,
            assignments: &assignments,
            redirects,
        });
        checked.opaque |= has_untracked_values
            || assign::assigns_command_table(command)
            || assign::gives_bash_unknown_command(&checked);
        if self.text.depth > 0 {
            checked.check_scope = CheckScope::DenyOnly;
        }
        let directory_count = self.analysis.cd_directories.len();
        self.record_directory_change(&checked);
        self.record_builtin_values(command, &words, &others);
        if command.may_fail {
            // If a redirect cannot be opened, nothing is assigned.
            self.variables.rollback_definite(definite_count);
        }
        self.analysis.commands.push(checked);
        self.record_texts(index, command, &others);
        if !command.is_test {
            self.analyze_nested(index, &words, 0);
        }
        for mode in others {
            let known = self.analysis.cd_directories.len();
            self.analyze_expansion(command, mode);
            self.keep_new_directories(directory_count, known);
        }
        index
    }

    pub(crate) fn expand_words(
        &self,
        words: &[RawWord],
        mode: ExpansionMode,
        causes: &mut Vec<UnanalyzableCause>,
    ) -> Vec<Word> {
        let mut out = Vec::with_capacity(words.len());
        for raw in words {
            out.extend(expand::expand_word(raw, &self.variables, mode, causes));
        }
        out
    }

    pub(crate) fn expand_redirects(
        &self,
        command: &RawCommand,
        mode: ExpansionMode,
        causes: &mut Vec<UnanalyzableCause>,
    ) -> Vec<Redirect> {
        let redirect = |redirect: &crate::shell::parser::syntax::RawRedirect| {
            if !redirects::is_plain_target(&redirect.target) {
                causes.push(UnanalyzableCause::RedirectTarget);
            }
            let target = expand::expand_single_with(&redirect.target, &self.variables, mode, causes);
            let target_kind = classify_redirect_target(&target);
            Redirect {
                direction: if redirect.writes { RedirectDirection::Write } else { RedirectDirection::Read },
                target,
                target_kind,
            }
        };
        command.redirects.iter().map(redirect).collect()
    }

    /// Records the target of `cd`.
    fn record_directory_change(&mut self, simple_command: &SimpleCommand) {
        let plain = simple_command.program.as_deref().map(effects::extract_program_name).unwrap_or_default();
        if matches!(plain.as_str(), "cd" | "pushd" | "popd" | "chdir") {
            let target = match simple_command.class {
                super::CommandClass::ReadOnly => simple_command.words.last().map(|word| word.value.clone()),
                _ => None,
            };
            self.analysis.cd_targets.push(target);
            let named = |word: &Word| word.value.as_literal() == simple_command.program.as_deref();
            let start = simple_command.words.iter().position(named).unwrap_or_default();
            self.record_directories(simple_command.words.get(start..).unwrap_or_default());
        } else {
            self.record_directories(&simple_command.words);
        }
        let set = simple_command.assignments.iter().filter(|set| set.name == "CDPATH");
        self.analysis.cd_path.extend(set.map(|set| set.value.clone()));
    }

    /// Records the directories that a command changes to or works in, in every form.
    fn record_directories(&mut self, words: &[Word]) {
        self.analysis.cd_directories.extend(directories::find_cd_targets(words));
        self.analysis.option_directories.extend(directories::find_option_directories(words));
        self.analysis.cd_path.extend(directories::find_cd_path_values(words));
    }

    /// Adds a nested command, for the deny analysis only.
    pub(crate) fn search_words(&mut self, words: &[Word], depth: usize) {
        if words.is_empty() {
            return;
        }
        if !self.budget.spend_words(words.len()) {
            self.mark_truncated();
            return;
        }
        let index = self.analysis.commands.len();
        self.analysis.commands.push(simple_command::build_searched_command(words));
        self.record_directories(words);
        self.analyze_nested(index, words, depth);
    }
}

/// Classifies a redirect target by its name.
fn classify_redirect_target(target: &WordValue) -> RedirectTargetKind {
    let text = target.known_start();
    match text {
        "/dev/null" if target.as_literal().is_some() => RedirectTargetKind::Null,
        "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" => RedirectTargetKind::Stream,
        _ if text.starts_with("/dev/fd/") => RedirectTargetKind::Stream,
        _ if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") => RedirectTargetKind::Network,
        _ => RedirectTargetKind::File,
    }
}
