//! The wide search: does a deny or ask rule mean some part of the command, under any spelling, at any depth?

use std::path::Path;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::expand::{Below, expand, is_wild_in_directory, look_below, static_prefix};
use super::{Command, reads, static_directory};
use crate::decide::Case;
use crate::decision::{Decision, Reason};
use crate::files::some_spelling;
use crate::path_pattern::PathPattern;
use crate::paths::Spellings;
use crate::ruleset::RuleRef;
use crate::shell::{Kind, Part, Place, Start, Value, Way};

/// More globs than this in one command are not looked up on disk.
const MAX_GLOBS: usize = 256;

/// How sure it is that a rule is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// It may be, if an unknown word turns out so.
    Possible,
    /// Something that the rule means lies below what is touched.
    Below,
    /// It is.
    Real,
}

/// What a part does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    /// Read to be put elsewhere, which an edit rule refuses too.
    Copy,
    Write,
    /// Removed or moved, with all that lies below.
    Remove,
}

impl Command<'_> {
    /// What the rules with this behavior say about the command.
    pub(crate) fn rule_hit(&self, case: &Case<'_>, behavior: PermissionBehavior) -> Option<Decision> {
        if behavior == PermissionBehavior::Deny && self.cannot_be_searched(case) {
            return Some(Decision::Deny(Reason::Unanalysable(Kind::TooDeep)));
        }
        if let Some(rule) = self.named_by_command(case, behavior) {
            return Some(answer(behavior, Reason::Rule(rule.clone())));
        }
        let (rule, certainty) = self.named_by_path(case, behavior)?;
        match certainty {
            Certainty::Real => Some(answer(behavior, Reason::Rule(rule.clone()))),
            Certainty::Below => Some(Decision::ask(Reason::PossibleRule(rule.clone()))),
            Certainty::Possible => (case.mode != PermissionMode::BypassPermissions)
                .then(|| Decision::ask(Reason::PossibleRule(rule.clone()))),
        }
    }

    /// Whether the command is nested too deep to be searched, while there is something to search for and nobody else
    /// would look.
    fn cannot_be_searched(&self, case: &Case<'_>) -> bool {
        case.mode == PermissionMode::BypassPermissions
            && self.script.unanalysable.contains(&Kind::TooDeep)
            && case.rules.has_scoped_limits()
    }

    fn named_by_command<'a>(&self, case: &Case<'a>, behavior: PermissionBehavior) -> Option<&'a RuleRef> {
        let spellings = self.script.parts.iter().flat_map(|part| &part.deny_spellings);
        let spellings: Vec<_> = spellings
            .filter(|spelling| !spelling.deny_only || behavior == PermissionBehavior::Deny)
            .map(|spelling| (spelling, spelling.deny_only.then(|| spelling.text.to_lowercase())))
            .collect();
        let means = |(_, pattern): &(&RuleRef, &crate::command_pattern::CommandPattern)| {
            spellings.iter().any(|(spelling, lowered)| match spelling.start {
                Start::Front => {
                    pattern.matches(&spelling.text)
                        || lowered.as_ref().is_some_and(|text| pattern.matches_lowered(text))
                }
                Start::EveryWord => pattern.matches_from_some_word(&spelling.text),
            })
        };
        case.rules.commands(behavior, case.call.tool).find(means).map(|(reference, _)| reference)
    }

    fn named_by_path<'a>(
        &self,
        case: &Case<'a>,
        behavior: PermissionBehavior,
    ) -> Option<(&'a RuleRef, Certainty)> {
        let read_rules: Vec<_> = case.rules.reads(behavior).collect();
        let edit_rules: Vec<_> = case.rules.edits(behavior).collect();
        if read_rules.is_empty() && edit_rules.is_empty() {
            return None;
        }
        let mut best: Option<(&RuleRef, Certainty)> = None;
        let mut globs = 0_usize;
        let mut last = None;
        for part in &self.script.parts {
            for (value, usage) in touched(part) {
                if last.replace((value, usage, part.recursive)) == Some((value, usage, part.recursive)) {
                    continue;
                }
                globs += usize::from(matches!(value, Value::Glob(_)));
                let edits = match usage {
                    Use::Read => false,
                    Use::Copy => behavior == PermissionBehavior::Deny,
                    Use::Write | Use::Remove => true,
                };
                let deep = part.recursive || usage == Use::Remove;
                let rules = read_rules.iter().chain(edit_rules.iter().filter(|_| edits));
                for (reference, pattern) in rules {
                    let certainty = match value {
                        Value::Glob(_) if globs > MAX_GLOBS => Some(Certainty::Possible),
                        _ => self.certainty(value, pattern, deep),
                    };
                    if certainty > best.map(|(_, certainty)| certainty) {
                        best = certainty.map(|certainty| (*reference, certainty));
                    }
                }
                if matches!(best, Some((_, Certainty::Real))) {
                    return best;
                }
            }
        }
        best
    }

    fn certainty(&self, value: &Value, pattern: &PathPattern, deep: bool) -> Option<Certainty> {
        match value {
            Value::Literal(text) => {
                let spellings = self.spell(text);
                if spellings.iter().any(|path| some_spelling(pattern, path)) {
                    return Some(Certainty::Real);
                }
                let below = deep.then(|| spellings.iter().filter_map(|path| self.below(path, pattern)).max());
                let lost = (self.lost && !text.starts_with('/')).then_some(Certainty::Possible);
                below.flatten().max(lost)
            }
            Value::Glob(glob) => self.glob_certainty(glob, pattern, deep),
            Value::Unknown { before, .. } => {
                let directory = static_directory(before);
                let real = !directory.is_empty()
                    && self.spell(directory).iter().any(|path| some_spelling(pattern, path));
                Some(if real { Certainty::Real } else { Certainty::Possible })
            }
        }
    }

    fn glob_certainty(&self, glob: &str, pattern: &PathPattern, deep: bool) -> Option<Certainty> {
        let prefix = static_prefix(glob);
        let prefix = prefix.to_string_lossy();
        let mut found = self.lost.then_some(Certainty::Possible).filter(|_| !glob.starts_with('/'));
        if !prefix.is_empty() && self.spell(&prefix).iter().any(|path| some_spelling(pattern, path)) {
            return Some(Certainty::Real);
        }
        let reaches_below =
            self.spell(&prefix).iter().any(|path| path.all().any(|p| pattern.may_match_below(p)));
        if is_wild_in_directory(glob) && reaches_below {
            found = found.max(Some(Certainty::Possible));
        }
        for directory in &self.directories {
            let expansion = expand(glob, directory, self.around.fs);
            if !expansion.complete && reaches_below {
                found = found.max(Some(Certainty::Possible));
            }
            for path in &expansion.paths {
                for path in self.spell(&path.to_string_lossy()) {
                    if some_spelling(pattern, &path) {
                        return Some(Certainty::Real);
                    }
                    found = found.max(deep.then(|| self.below(&path, pattern)).flatten());
                }
            }
            if glob.starts_with('/') {
                break;
            }
        }
        found
    }

    /// Whether something that the rule means is there below this path.
    fn below(&self, path: &Spellings, pattern: &PathPattern) -> Option<Certainty> {
        let root = path.physical.as_path();
        if !pattern.may_match_below(root) {
            return None;
        }
        let known = pattern.known_paths();
        let starts = match known.as_slice() {
            [] => vec![root],
            known => known.iter().map(|known| if known.starts_with(root) { known } else { root }).collect(),
        };
        let look = |start: &Path| {
            look_below(
                start,
                self.around.fs,
                |path| pattern.may_match_below(path),
                |path| pattern.matches(path),
            )
        };
        let found = starts.into_iter().map(look);
        found
            .filter_map(|below| match below {
                Below::Found => Some(Certainty::Below),
                Below::TooMuch => Some(Certainty::Possible),
                Below::Nothing => None,
            })
            .max()
    }
}

fn answer(behavior: PermissionBehavior, reason: Reason) -> Decision {
    match behavior {
        PermissionBehavior::Deny => Decision::Deny(reason),
        PermissionBehavior::Ask | PermissionBehavior::Allow => Decision::ask(reason),
    }
}

/// Everything that a part touches, and how.
fn touched(part: &Part) -> impl Iterator<Item = (&Value, Use)> {
    let program = part.program.as_deref();
    let read = if matches!(program, Some("cp" | "mv")) { Use::Copy } else { Use::Read };
    let write = if matches!(program, Some("rm" | "mv" | "rmdir")) { Use::Remove } else { Use::Write };
    let redirects = part.redirects.iter().filter(|redirect| redirect.place != Place::Null);
    let redirects = redirects.map(|redirect| match redirect.way {
        Way::Read => (&redirect.target, Use::Read),
        Way::Write => (&redirect.target, Use::Write),
    });
    let operands = reads(part).map(move |value| (value, read));
    operands.chain(part.writes.iter().map(move |value| (value, write))).chain(redirects)
}
