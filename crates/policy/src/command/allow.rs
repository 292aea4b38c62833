//! Allow analysis: every simple command must be certain to be allowed or harmless.

use std::path::PathBuf;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::ShellCommand;
use super::blocking_paths::{BlockingPath, is_in_work_dirs};
use super::git_repository::RepositoryTrust;
use crate::decision::{Decision, Reason};
use crate::decision_input::DecisionInput;
use crate::rules::command_pattern::CommandPattern;
use crate::rules::rule_set::SourcedRule;
use crate::shell::{
    AllowText, CommandClass, Redirect, RedirectDirection, RedirectTargetKind, RequiredRule, SimpleCommand,
    UnanalyzableCause, WordValue,
};

/// Approval of one simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approval<'a> {
    /// A rule allows it.
    Rule(&'a SourcedRule),
    /// The command is read-only.
    ReadOnly,
    /// A file command, in the mode that accepts edits.
    AcceptedEdit,
    /// Nothing allows it.
    NotApproved,
}

/// Simple commands that are listed in a reason, and searched for a blocked path.
const MAX_REPORTED: usize = 100;

impl ShellCommand<'_> {
    /// Returns true if the command is read-only without help from a command rule.
    pub(crate) fn is_read_only(&self, input: &DecisionInput<'_>) -> bool {
        self.analysis.unanalyzable.is_empty()
            && self.find_directory_change_block(input).is_none()
            && self
                .analysis
                .checked_commands()
                .all(|simple_command| self.is_read_only_with_redirects(simple_command, input))
    }

    /// Finds the first of the rules that allow the command, if rules allow every simple command.
    pub(crate) fn find_allow_rule(&self, input: &DecisionInput<'_>) -> Option<SourcedRule> {
        if self.find_whole_command_block(input).is_some() {
            return None;
        }
        let mut first = None;
        for simple_command in self.analysis.checked_commands() {
            match self.determine_approval(simple_command, input) {
                Approval::Rule(rule) => first = first.or(Some(rule)),
                Approval::ReadOnly | Approval::AcceptedEdit | Approval::NotApproved => return None,
            }
        }
        first.cloned()
    }

    /// Returns true if every simple command is read-only, allowed by a rule, or an accepted edit.
    pub(crate) fn is_covered(&self, input: &DecisionInput<'_>) -> bool {
        self.find_whole_command_block(input).is_none()
            && self
                .analysis
                .checked_commands()
                .all(|simple_command| self.determine_approval(simple_command, input) != Approval::NotApproved)
    }

    /// Builds the reason why the command needs approval, and the first blocked path.
    pub(crate) fn build_approval_reason(&self, input: &DecisionInput<'_>) -> (Reason, Option<String>) {
        let blocked = self.find_blocked_path(input);
        let blocked_text = blocked.as_ref().map(|path| path.display().to_string());
        if let Some(cause) = self.find_unanalyzable_cause(input) {
            return (Reason::Unanalyzable(cause), blocked_text);
        }
        let simple_commands: Vec<&SimpleCommand> = self.analysis.checked_commands().collect();
        if let [simple_command] = simple_commands.as_slice()
            && let Some(program) = self.find_git_program(simple_command, input)
        {
            return (Reason::GitProgram(program), blocked_text);
        }
        let reason = match (simple_commands.as_slice(), blocked) {
            ([_, _, ..], _) => Reason::SimpleCommands(
                simple_commands
                    .iter()
                    .take(MAX_REPORTED)
                    .map(|simple_command| self.decide_simple_command(simple_command, input))
                    .collect(),
            ),
            (_, Some(path)) if !is_in_work_dirs(&path, input) => Reason::WorkingDir { path },
            (_, Some(_) | None) => Reason::NeedsApproval,
        };
        (reason, blocked_text)
    }

    fn decide_simple_command(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> (String, Decision) {
        let decision = match self.determine_approval(simple_command, input) {
            Approval::Rule(rule) => Decision::Allow(Reason::Rule(rule.clone())),
            Approval::ReadOnly => Decision::Allow(Reason::ReadOnly),
            Approval::AcceptedEdit => Decision::Allow(Reason::Mode(input.mode)),
            Approval::NotApproved => {
                match (
                    self.find_git_program(simple_command, input),
                    self.find_blocking_path(simple_command, input),
                ) {
                    (Some(program), _) => Decision::ask(Reason::GitProgram(program)),
                    (None, Some(BlockingPath::Known(path))) if !is_in_work_dirs(&path, input) => {
                        Decision::ask(Reason::WorkingDir { path })
                    }
                    (None, Some(BlockingPath::Known(_) | BlockingPath::Unknown) | None) => {
                        Decision::ask(Reason::NeedsApproval)
                    }
                }
            }
        };
        (simple_command.raw.clone(), decision)
    }

    /// Finds the first path that a simple command must not access.
    pub(crate) fn find_blocked_path(&self, input: &DecisionInput<'_>) -> Option<PathBuf> {
        let blocking_operands = self
            .analysis
            .checked_commands()
            .take(MAX_REPORTED)
            .filter_map(|simple_command| self.find_blocking_path(simple_command, input));
        self.find_directory_change_block(input).into_iter().chain(blocking_operands).find_map(|blocking| {
            match blocking {
                BlockingPath::Known(path) => Some(path),
                BlockingPath::Unknown => None,
            }
        })
    }

    /// Finds the first construct that cannot be analyzed, unless an exact rule names the whole command.
    pub(crate) fn find_unanalyzable_cause(&self, input: &DecisionInput<'_>) -> Option<UnanalyzableCause> {
        let first = self.analysis.unanalyzable.first().copied()?;
        match self.find_whole_command_rule(input) {
            Some(_) => self.analysis.find_cause_despite_exact_rule(),
            None => Some(first),
        }
    }

    fn find_whole_command_block(&self, input: &DecisionInput<'_>) -> Option<BlockingPath> {
        let unanalyzable = self.find_unanalyzable_cause(input).map(|_| BlockingPath::Unknown);
        unanalyzable.or_else(|| self.find_directory_change_block(input))
    }

    /// Finds the exact rule that names the whole command.
    fn find_whole_command_rule<'a>(&self, input: &DecisionInput<'a>) -> Option<&'a SourcedRule> {
        let mut rules = input.rules.command_rules(PermissionBehavior::Allow, input.call.tool);
        rules
            .find(|(_, pattern)| pattern.is_exact() && pattern.matches(&self.normalized_text))
            .map(|(reference, _)| reference)
    }

    /// Determines the approval of one simple command.
    pub(crate) fn determine_approval<'a>(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'a>,
    ) -> Approval<'a> {
        if !simple_command
            .redirects
            .iter()
            .all(|redirect| self.find_blocking_redirect(redirect, simple_command, input).is_none())
        {
            return Approval::NotApproved;
        }
        let paths_allowed =
            !simple_command.restricts_paths || self.find_blocking_operand(simple_command, input).is_none();
        if let Some(rule) =
            self.find_allow_rule_for_simple_command(simple_command, input).filter(|_| paths_allowed)
        {
            return Approval::Rule(rule);
        }
        if self.is_read_only_ignoring_redirects(simple_command, input) {
            return Approval::ReadOnly;
        }
        match simple_command.class {
            CommandClass::AcceptEdits if self.is_accepted_edit(simple_command, input) => {
                Approval::AcceptedEdit
            }
            _ => Approval::NotApproved,
        }
    }

    fn find_allow_rule_for_simple_command<'a>(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'a>,
    ) -> Option<&'a SourcedRule> {
        if let Some(rule) = self.find_whole_command_rule(input) {
            return Some(rule);
        }
        if simple_command.allow_texts.is_empty() {
            return None;
        }
        let exact_only = simple_command.has_risky_glob || simple_command.class == CommandClass::ExactRuleOnly;
        let mut rules = input.rules.command_rules(PermissionBehavior::Allow, input.call.tool);
        let matches = |pattern: &CommandPattern| {
            let named =
                simple_command.allow_texts.iter().any(|allow_text| matches_allow_text(pattern, allow_text));
            let matches_raw = pattern.is_exact()
                && (pattern.matches(&simple_command.raw)
                    || pattern.matches(&simple_command.suggestion.exact));
            (named && (pattern.is_exact() || !exact_only)) || matches_raw
        };
        rules.find(|(_, pattern)| matches(pattern)).map(|(reference, _)| reference)
    }

    fn is_read_only_with_redirects(&self, simple_command: &SimpleCommand, input: &DecisionInput<'_>) -> bool {
        let harmless = |redirect: &Redirect| {
            redirect.target_kind == RedirectTargetKind::Null
                || redirect.direction == RedirectDirection::Read
                    && self.find_blocking_redirect(redirect, simple_command, input).is_none()
        };
        simple_command.redirects.iter().all(harmless)
            && self.is_read_only_ignoring_redirects(simple_command, input)
    }

    /// Returns true if a simple command is read-only, apart from its redirects.
    fn is_read_only_ignoring_redirects(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> bool {
        let harmless = match simple_command.class {
            CommandClass::NoCommand => simple_command.assignments.is_empty(),
            CommandClass::ReadOnly => {
                !simple_command.has_risky_glob
                    && !self.glob_may_yield_option(simple_command)
                    && (simple_command.program.as_deref() != Some("git")
                        || self.check_repository_trust(input) == RepositoryTrust::Trusted)
            }
            CommandClass::AcceptEdits | CommandClass::ExactRuleOnly | CommandClass::Other => false,
        };
        harmless
            && simple_command.assignments.iter().all(|assignment| assignment.safe)
            && self.find_blocking_operand(simple_command, input).is_none()
    }

    /// Returns true if a glob may match a file name that the command would take for an option.
    fn glob_may_yield_option(&self, simple_command: &SimpleCommand) -> bool {
        let globs = simple_command.words.iter().filter_map(|word| match &word.value {
            WordValue::Glob(glob) if glob.starts_with(['*', '?', '[', '-']) => Some(glob),
            WordValue::Glob(_) | WordValue::Literal(_) | WordValue::Unknown { .. } => None,
        });
        globs.into_iter().any(|glob| {
            self.directories.shell_dirs.iter().any(|directory| {
                let found = self.expand_glob(glob, directory);
                let option = |path: &PathBuf| {
                    path.strip_prefix(directory)
                        .unwrap_or(path)
                        .as_os_str()
                        .as_encoded_bytes()
                        .starts_with(b"-")
                };
                found.paths.iter().any(option) || self.disk.context.fs.is_budget_exhausted()
            })
        })
    }

    fn is_accepted_edit(&self, simple_command: &SimpleCommand, input: &DecisionInput<'_>) -> bool {
        let inside = |value: &WordValue| match value {
            WordValue::Literal(text) => {
                let resolved = self.resolve_from_shell_dirs(text);
                resolved
                    .iter()
                    .all(|path| input.dirs.contains(path) && !self.may_be_moved(path, simple_command))
            }
            WordValue::Glob(_) | WordValue::Unknown { .. } => false,
        };
        input.mode == PermissionMode::AcceptEdits
            && self.analysis.cd_targets.is_empty()
            && simple_command.assignments.iter().all(|assignment| assignment.safe)
            && simple_command.reads.iter().chain(&simple_command.writes).all(inside)
    }
}

fn matches_allow_text(pattern: &CommandPattern, allow_text: &AllowText) -> bool {
    let strong_enough = match allow_text.required_rule {
        RequiredRule::AnyRule => true,
        RequiredRule::NamingRule => {
            pattern.starts_with_word(allow_text.text.split(' ').next().unwrap_or_default())
        }
        RequiredRule::ExactRule => pattern.is_exact(),
    };
    strong_enough && pattern.matches(&allow_text.text)
}
