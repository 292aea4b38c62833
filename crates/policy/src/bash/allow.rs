//! The narrow reading: is every part of the command certain to be allowed or harmless?

use std::path::{Path, PathBuf};

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::expand::{expand, static_prefix};
use super::{Command, repository};
use crate::command_pattern::CommandPattern;
use crate::decide::Case;
use crate::decision::{Decision, Reason};
use crate::files::{edit_grant, read_grant};
use crate::paths::Spellings;
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

/// Why a part or its paths are not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// This path.
    Path(PathBuf),
    /// A name that is not known.
    Unknown,
}

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
        let reason = match (parts.as_slice(), blocked) {
            ([_, _, ..], _) => Reason::Subcommands(parts.iter().map(|part| self.told(part, case)).collect()),
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
            Verdict::Open => match self.path_obstacle(part, case) {
                Some(Obstacle::Path(path)) if !is_inside(&path, case) => {
                    Decision::ask(Reason::WorkingDir { path })
                }
                Some(Obstacle::Path(_) | Obstacle::Unknown) | None => Decision::ask(Reason::NeedsApproval),
            },
        };
        (part.raw.clone(), decision)
    }

    /// The first path that a part may not touch.
    pub(crate) fn blocked_path(&self, case: &Case<'_>) -> Option<PathBuf> {
        let of_parts = self.script.judged().filter_map(|part| self.path_obstacle(part, case));
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
        if !part.redirects.iter().all(|redirect| self.redirect_obstacle(redirect, case).is_none()) {
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
                || redirect.way == Way::Read && self.redirect_obstacle(redirect, case).is_none()
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
                    && (part.program.as_deref() != Some("git") || repository::is_trusted(case, &self.around))
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
            self.directories.iter().any(|at| {
                let found = expand(glob, at, self.around.fs);
                found.paths.iter().any(|path| {
                    path.strip_prefix(at).unwrap_or(path).as_os_str().as_encoded_bytes().starts_with(b"-")
                })
            })
        })
    }

    fn is_accepted_edit(&self, part: &Part, case: &Case<'_>) -> bool {
        let inside = |value: &Value| match value {
            Value::Literal(text) => self.spell(text).iter().all(|path| case.dirs.hold(path)),
            Value::Glob(_) | Value::Unknown { .. } => false,
        };
        case.mode == PermissionMode::AcceptEdits
            && self.script.changes_dir.is_empty()
            && part.assignments.iter().all(|assignment| assignment.safe)
            && part.reads.iter().chain(&part.writes).all(inside)
    }

    /// The first path of a part, redirects included, that stands in the way.
    pub(crate) fn path_obstacle(&self, part: &Part, case: &Case<'_>) -> Option<Obstacle> {
        self.path_obstacles(part, case).into_iter().next()
    }

    /// The paths of a part, redirects included, that stand in the way.
    pub(crate) fn path_obstacles(&self, part: &Part, case: &Case<'_>) -> Vec<Obstacle> {
        let scoped = part.scoped || matches!(part.class, Class::ReadOnly | Class::AcceptEdits);
        let operands = scoped.then(|| self.operand_obstacles(part, case)).into_iter().flatten();
        let redirects = part.redirects.iter().filter_map(|redirect| self.redirect_obstacle(redirect, case));
        operands.chain(redirects).collect()
    }

    /// The first operand that may not be touched.
    fn operand_obstacle(&self, part: &Part, case: &Case<'_>) -> Option<Obstacle> {
        self.operand_obstacles(part, case).next()
    }

    fn operand_obstacles<'p>(&'p self, part: &'p Part, case: &'p Case<'_>) -> impl Iterator<Item = Obstacle> {
        let reads = super::reads(part).filter_map(|value| self.read_obstacle(value, case));
        reads.chain(part.writes.iter().filter_map(|value| self.write_obstacle(value, case)))
    }

    fn read_obstacle(&self, value: &Value, case: &Case<'_>) -> Option<Obstacle> {
        let readable = |path: &Spellings| case.dirs.hold(path) || read_grant(case, path).is_some();
        let blocked = |text: &str| {
            let outside = self.spell(text).into_iter().find(|path| !readable(path));
            outside.map(|path| Obstacle::Path(path.physical))
        };
        match value {
            Value::Literal(text) => blocked(text),
            Value::Glob(glob) => {
                if let Some(obstacle) = blocked(&static_prefix(glob).to_string_lossy()) {
                    return Some(obstacle);
                }
                for directory in &self.directories {
                    let expansion = expand(glob, directory, self.around.fs);
                    let mut paths = expansion.paths.iter().map(|path| path.to_string_lossy());
                    if let Some(obstacle) = paths.find_map(|path| blocked(&path)) {
                        return Some(obstacle);
                    }
                    if !expansion.complete {
                        return Some(Obstacle::Unknown);
                    }
                }
                None
            }
            Value::Unknown { .. } => Some(Obstacle::Unknown),
        }
    }

    fn write_obstacle(&self, value: &Value, case: &Case<'_>) -> Option<Obstacle> {
        let Value::Literal(text) = value else { return Some(Obstacle::Unknown) };
        let writable = |path: &Spellings| case.dirs.hold(path) || edit_grant(case, path).is_some();
        let outside = self.spell(text).into_iter().find(|path| !writable(path));
        outside.map(|path| Obstacle::Path(path.physical))
    }

    fn redirect_obstacle(&self, redirect: &Redirect, case: &Case<'_>) -> Option<Obstacle> {
        match redirect.place {
            Place::Null => return None,
            Place::Stream | Place::Network => return Some(Obstacle::Unknown),
            Place::File => {}
        }
        let Value::Literal(text) = &redirect.target else { return Some(Obstacle::Unknown) };
        if redirect.way == Way::Read {
            return self.read_obstacle(&redirect.target, case);
        }
        let accepted = |path: &Spellings| {
            edit_grant(case, path).is_some()
                || case.mode == PermissionMode::AcceptEdits && case.dirs.hold(path)
        };
        let refused = self.spell(text).into_iter().find(|path| !accepted(path));
        refused.map(|path| Obstacle::Path(path.physical))
    }

    /// What is wrong with going elsewhere: where to, twice, or together with writing or git.
    pub(crate) fn directory_obstacle(&self, case: &Case<'_>) -> Option<Obstacle> {
        let target = match self.script.changes_dir.as_slice() {
            [] => return None,
            [Some(Value::Literal(target))] => target,
            _ => return Some(Obstacle::Unknown),
        };
        let around = self.around;
        let path = crate::paths::resolve_absolute(&around.cwd.join(target), &around);
        if !case.dirs.hold(&path) {
            return Some(Obstacle::Path(path.physical));
        }
        let stays = path.physical == crate::paths::physical(around.cwd, around.fs);
        let writes = |part: &Part| {
            let redirects = part.redirects.iter();
            !part.writes.is_empty()
                || redirects.into_iter().any(|to| to.way == Way::Write && to.place != Place::Null)
        };
        let uses_git = |part: &Part| part.program.as_deref() == Some("git");
        let parts = &self.script.parts;
        (parts.iter().any(writes) || !stays && parts.iter().any(uses_git)).then_some(Obstacle::Unknown)
    }
}

/// Whether a physical path lies in a working directory; what stands in the way is then not where it is.
fn is_inside(path: &Path, case: &Case<'_>) -> bool {
    case.dirs.all().any(|dir| dir.holds(path))
}

fn may_match(pattern: &CommandPattern, spelling: &AllowSpelling) -> bool {
    let fits = match spelling.by {
        By::AnyRule => true,
        By::NamingRule => pattern.begins_with_word(spelling.text.split(' ').next().unwrap_or_default()),
        By::ExactRule => pattern.is_exact(),
    };
    fits && pattern.matches(&spelling.text)
}
