//! Memoization of analyzed commands and texts. The same command or text gives the same result as long as variables
//! are unchanged and it moves no files.

use std::collections::HashMap;
use std::ops::Range;

use crate::shell::SimpleCommand;
use crate::shell::analyzer::Analyzer;
use crate::shell::parser::syntax::RawCommand;

/// Simple commands below which nothing is reused, so that short scripts are listed completely.
const MEMO_THRESHOLD: usize = 200;

/// Programs that may change what paths resolve to, so that each run counts.
const MOVING_PROGRAMS: &[&str] = &["ln", "mv", "cp", "rsync"];

/// Memoized results.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    entries: HashMap<String, MemoEntry>,
    /// True while results must not be stored, because they are reduced afterwards.
    pub(crate) paused: bool,
}

/// One memoized result.
#[derive(Debug)]
struct MemoEntry {
    commands: Range<usize>,
    state_before: AnalysisState,
}

/// State that an analysis depends on and may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AnalysisState {
    /// Version of the variable environment.
    variables: (usize, bool, usize),
    /// Number of recorded directory changes.
    directory_changes: usize,
    level: usize,
}

impl Analyzer<'_> {
    pub(crate) fn capture_analysis_state(&self) -> AnalysisState {
        let directory_changes = self.analysis.cd_targets.len() + self.analysis.cd_directories.len();
        AnalysisState { variables: self.variables.version(), directory_changes, level: self.text.depth }
    }

    /// Finds simple commands that the same input produced before.
    pub(crate) fn find_memoized(&self, key: &str) -> Option<Range<usize>> {
        let now = self.capture_analysis_state();
        let same = |seen: &&MemoEntry| {
            seen.state_before.variables == now.variables && seen.state_before.level <= now.level
        };
        let seen = self.memo.entries.get(key).filter(same)?;
        (self.analysis.commands.len() > MEMO_THRESHOLD).then(|| seen.commands.clone())
    }

    /// Stores a result if repeating the analysis would not change it.
    pub(crate) fn memoize(&mut self, key: String, before: AnalysisState, start: usize) {
        let range = start..self.analysis.commands.len();
        let moves = |simple_command: &SimpleCommand| {
            !simple_command.dir_targets.is_empty()
                || simple_command.program.as_deref().is_some_and(|program| MOVING_PROGRAMS.contains(&program))
        };
        let commands = self.analysis.commands.get(range.clone()).unwrap_or_default();
        let is_repeatable = self.capture_analysis_state() == before
            && !self.analysis.truncated
            && !commands.iter().any(moves);
        if is_repeatable && !self.memo.paused {
            self.memo.entries.insert(key, MemoEntry { commands: range, state_before: before });
        }
    }

    /// Builds the key of a text.
    pub(crate) fn build_text_key(&self, text: &str) -> String {
        format!("{}\0{text}", if self.text.is_possible_command { 'g' } else { 't' })
    }

    /// Builds the key of a command; `None` if it has more than words.
    pub(crate) fn build_command_key(&self, command: &RawCommand) -> Option<String> {
        let bare =
            command.assignments.is_empty() && command.redirects.is_empty() && command.stdin_texts.is_empty();
        if !bare || command.words.is_empty() {
            return None;
        }
        let flags = [
            command.is_test,
            command.in_substitution,
            command.after_pipe,
            command.before_pipe,
            self.text.depth == 0,
            self.text.is_possible_command,
        ];
        let mut key = String::from("c");
        key.extend(flags.map(|flag| if flag { '1' } else { '0' }));
        for word in &command.words {
            key.push('\0');
            key.push_str(&word.raw);
        }
        Some(key)
    }
}
