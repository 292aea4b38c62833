//! The narrow reading: is every part of the command certain to be allowed or harmless?

use std::path::PathBuf;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::Command;
use super::repository::Repository;
use super::scope::{Obstacle, is_inside};
use crate::command_pattern::CommandPattern;
use crate::decide::Case;
use crate::decision::{Decision, Reason};
use crate::ruleset::RuleRef;
use crate::shell::{AllowSpelling, By, Class, Kind, Part, Place, Redirect, Value, Way};

/// What can be said of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// A rule allows it.
    Rule(&'a RuleRef),
    /// It only reads.
    ReadOnly,
    /// It is one of the file commands, and edits are accepted.
    Edit,
    /// Nothing allows it.
    Open,
}

/// How many parts are told one by one, and looked at for what to tell.
const MOST_TOLD: usize = 100;

impl Command<'_> {
    /// Whether the command is read-only without the help of any rule about commands.
    pub(crate) fn only_reads(&self, case: &Case<'_>) -> bool {
        self.script.unanalysable.is_empty()
            && self.directory_obstacle(case).is_none()
            && self.script.judged().all(|part| self.reads_only(part, case))
    }

    /// The rule that allows the command, if rules allow every part of it; the first of them.
    pub(crate) fn granting_rule(&self, case: &Case<'_>) -> Option<RuleRef> {
        if self.obstacle_to_all(case).is_some() {
            return None;
        }
        let mut first = None;
        for part in self.script.judged() {
            match self.verdict(part, case) {
                Verdict::Rule(rule) => first = first.or(Some(rule)),
                Verdict::ReadOnly | Verdict::Edit | Verdict::Open => return None,
            }
        }
        first.cloned()
    }

    /// Whether every part is read-only, allowed by a rule, or an edit where edits are accepted.
    pub(crate) fn is_covered(&self, case: &Case<'_>) -> bool {
        self.obstacle_to_all(case).is_none()
            && self.script.judged().all(|part| self.verdict(part, case) != Verdict::Open)
    }

    /// Why nothing allows the command, and the first path that stands in the way.
    pub(crate) fn what_stands_in_the_way(&self, case: &Case<'_>) -> (Reason, Option<String>) {
        let blocked = self.blocked_path(case);
        let shown = blocked.as_ref().map(|path| path.display().to_string());
        if let Some(kind) = self.not_understood(case) {
            return (Reason::Unanalysable(kind), shown);
        }
        let parts: Vec<&Part> = self.script.judged().collect();
        if let [part] = parts.as_slice()
            && let Some(program) = self.git_program(part, case)
        {
            return (Reason::GitProgram(program), shown);
        }
        let reason = match (parts.as_slice(), blocked) {
            ([_, _, ..], _) => {
                Reason::Subcommands(parts.iter().take(MOST_TOLD).map(|part| self.told(part, case)).collect())
            }
            (_, Some(path)) if !is_inside(&path, case) => Reason::WorkingDir { path },
            (_, Some(_) | None) => Reason::NeedsApproval,
        };
        (reason, shown)
    }

    fn told(&self, part: &Part, case: &Case<'_>) -> (String, Decision) {
        let decision = match self.verdict(part, case) {
            Verdict::Rule(rule) => Decision::Allow(Reason::Rule(rule.clone())),
            Verdict::ReadOnly => Decision::Allow(Reason::ReadOnly),
            Verdict::Edit => Decision::Allow(Reason::Mode(case.mode)),
            Verdict::Open => match (self.git_program(part, case), self.path_obstacle(part, case)) {
                (Some(program), _) => Decision::ask(Reason::GitProgram(program)),
                (None, Some(Obstacle::Path(path))) if !is_inside(&path, case) => {
                    Decision::ask(Reason::WorkingDir { path })
                }
                (None, Some(Obstacle::Path(_) | Obstacle::Unknown) | None) => {
                    Decision::ask(Reason::NeedsApproval)
                }
            },
        };
        (part.raw.clone(), decision)
    }

    /// The first path that a part may not touch.
    pub(crate) fn blocked_path(&self, case: &Case<'_>) -> Option<PathBuf> {
        let of_parts = self.script.judged().take(MOST_TOLD).filter_map(|part| self.path_obstacle(part, case));
        self.directory_obstacle(case).into_iter().chain(of_parts).find_map(|obstacle| match obstacle {
            Obstacle::Path(path) => Some(path),
            Obstacle::Unknown => None,
        })
    }

    /// What is not understood, unless a rule names the whole command.
    pub(crate) fn not_understood(&self, case: &Case<'_>) -> Option<Kind> {
        let first = self.script.unanalysable.first().copied()?;
        match self.named_whole(case) {
            Some(_) => self.script.beyond_exact_rule(),
            None => Some(first),
        }
    }

    fn obstacle_to_all(&self, case: &Case<'_>) -> Option<Obstacle> {
        let not_understood = self.not_understood(case).map(|_| Obstacle::Unknown);
        not_understood.or_else(|| self.directory_obstacle(case))
    }

    /// The rule that names the whole command, letter by letter.
    fn named_whole<'a>(&self, case: &Case<'a>) -> Option<&'a RuleRef> {
        let mut rules = case.rules.commands(PermissionBehavior::Allow, case.call.tool);
        rules
            .find(|(_, pattern)| pattern.is_exact() && pattern.matches(&self.tidy_text))
            .map(|(reference, _)| reference)
    }

    /// What can be said of one part.
    pub(crate) fn verdict<'a>(&self, part: &Part, case: &Case<'a>) -> Verdict<'a> {
        if !part.redirects.iter().all(|redirect| self.redirect_obstacle(redirect, part, case).is_none()) {
            return Verdict::Open;
        }
        let scope_kept = !part.scoped || self.operand_obstacle(part, case).is_none();
        if let Some(rule) = self.allowing_rule(part, case).filter(|_| scope_kept) {
            return Verdict::Rule(rule);
        }
        if self.reads_only_itself(part, case) {
            return Verdict::ReadOnly;
        }
        match part.class {
            Class::AcceptEdits if self.is_accepted_edit(part, case) => Verdict::Edit,
            _ => Verdict::Open,
        }
    }

    fn allowing_rule<'a>(&self, part: &Part, case: &Case<'a>) -> Option<&'a RuleRef> {
        if let Some(rule) = self.named_whole(case) {
            return Some(rule);
        }
        if part.allow_spellings.is_empty() {
            return None;
        }
        let exact_only = part.glob_asks || part.class == Class::NeverByStar;
        let mut rules = case.rules.commands(PermissionBehavior::Allow, case.call.tool);
        let means = |pattern: &CommandPattern| {
            let named = part.allow_spellings.iter().any(|spelling| may_match(pattern, spelling));
            let literally =
                pattern.is_exact() && (pattern.matches(&part.raw) || pattern.matches(&part.suggestion.exact));
            (named && (pattern.is_exact() || !exact_only)) || literally
        };
        rules.find(|(_, pattern)| means(pattern)).map(|(reference, _)| reference)
    }

    fn reads_only(&self, part: &Part, case: &Case<'_>) -> bool {
        let harmless = |redirect: &Redirect| {
            redirect.place == Place::Null
                || redirect.way == Way::Read && self.redirect_obstacle(redirect, part, case).is_none()
        };
        part.redirects.iter().all(harmless) && self.reads_only_itself(part, case)
    }

    /// Whether a part only reads, its redirects aside.
    fn reads_only_itself(&self, part: &Part, case: &Case<'_>) -> bool {
        let harmless = match part.class {
            Class::Nothing => part.assignments.is_empty(),
            Class::ReadOnly => {
                !part.glob_asks
                    && !self.finds_options(part)
                    && (part.program.as_deref() != Some("git")
                        || self.repository(case) == Repository::Harmless)
            }
            Class::AcceptEdits | Class::NeverByStar | Class::Other => false,
        };
        harmless
            && part.assignments.iter().all(|assignment| assignment.safe)
            && self.operand_obstacle(part, case).is_none()
    }

    /// Whether a glob finds a file whose name the command would take for an option.
    fn finds_options(&self, part: &Part) -> bool {
        let globs = part.words.iter().filter_map(|word| match &word.value {
            Value::Glob(glob) if glob.starts_with(['*', '?', '[', '-']) => Some(glob),
            Value::Glob(_) | Value::Literal(_) | Value::Unknown { .. } => None,
        });
        globs.into_iter().any(|glob| {
            self.directories.known.iter().any(|at| {
                let found = self.expand(glob, at);
                let option = |path: &PathBuf| {
                    path.strip_prefix(at).unwrap_or(path).as_os_str().as_encoded_bytes().starts_with(b"-")
                };
                found.paths.iter().any(option) || self.around.fs.gives_up()
            })
        })
    }

    fn is_accepted_edit(&self, part: &Part, case: &Case<'_>) -> bool {
        let inside = |value: &Value| match value {
            Value::Literal(text) => {
                let spelled = self.spell_plainly(text);
                spelled.iter().all(|path| case.dirs.hold(path) && !self.is_shifted(path, part))
            }
            Value::Glob(_) | Value::Unknown { .. } => false,
        };
        case.mode == PermissionMode::AcceptEdits
            && self.script.changes_dir.is_empty()
            && part.assignments.iter().all(|assignment| assignment.safe)
            && part.reads.iter().chain(&part.writes).all(inside)
    }
}

fn may_match(pattern: &CommandPattern, spelling: &AllowSpelling) -> bool {
    let fits = match spelling.by {
        By::AnyRule => true,
        By::NamingRule => pattern.begins_with_word(spelling.text.split(' ').next().unwrap_or_default()),
        By::ExactRule => pattern.is_exact(),
    };
    fits && pattern.matches(&spelling.text)
}
