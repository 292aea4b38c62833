//! The wide search: does a deny or ask rule mean some part of the command, under any spelling, at any depth?

use std::collections::HashSet;
use std::path::Path;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::expand::{Below, look_below};
use super::links::follows;
use super::reach::{Budget, Look, Missing, Reached};
use super::{Command, reads};
use crate::decide::Case;
use crate::decision::{Decision, Reason};
use crate::files::{lies_below, some_spelling};
use crate::fs::EntryKind;
use crate::path_pattern::PathPattern;
use crate::paths::{Spellings, resolve_absolute};
use crate::ruleset::RuleRef;
use crate::shell::{Kind, Part, Place, Start, Value, Way};

/// How sure it is that a rule is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// It may be, if an unknown word turns out so.
    Possible,
    /// Something that the rule means lies below what is touched, or there is too much below to tell.
    Below,
    /// It may be, but there was more to look at than is looked at. Whoever makes it too much must not gain by it.
    Unsearched,
    /// It is.
    Real,
}

/// What a part does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Read,
    /// Read to be put elsewhere, which an edit rule refuses too.
    Copy,
    Write,
    /// Changed, removed or moved with all that lies below.
    WriteBelow,
}

/// How far a part goes from the path that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Depth {
    Itself,
    /// To everything below it.
    Below,
    /// To everything below it, and to where links lead.
    ThroughLinks,
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
            Certainty::Unsearched if case.mode == PermissionMode::BypassPermissions => {
                Some(answer(behavior, Reason::PossibleRule(rule.clone())))
            }
            Certainty::Below | Certainty::Unsearched => {
                Some(Decision::ask(Reason::PossibleRule(rule.clone())))
            }
            Certainty::Possible => (case.mode != PermissionMode::BypassPermissions)
                .then(|| Decision::ask(Reason::PossibleRule(rule.clone()))),
        }
    }

    /// Whether the command is nested too deep to be searched, while there is something to search for and nobody else
    /// would look.
    fn cannot_be_searched(&self, case: &Case<'_>) -> bool {
        case.mode == PermissionMode::BypassPermissions
            && (self.script.cut_short || self.script.unanalysable.contains(&Kind::TooDeep))
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
        let mut budget = Budget::default();
        let (mut seen, mut last) = (HashSet::new(), None);
        for part in &self.script.parts {
            let through_links = follows(part);
            for (value, usage) in touched(part) {
                let depth = match (part.recursive || usage == Use::WriteBelow, through_links) {
                    (false, _) => Depth::Itself,
                    (true, false) => Depth::Below,
                    (true, true) => Depth::ThroughLinks,
                };
                // The same twice says the same, unless something may have moved in between.
                let touch = (value, usage, depth);
                let is_known = if self.shifts.is_empty() { !seen.insert(touch) } else { last == Some(touch) };
                last = Some(touch);
                if is_known {
                    continue;
                }
                let edits = match usage {
                    Use::Read => false,
                    Use::Copy => behavior == PermissionBehavior::Deny,
                    Use::Write | Use::WriteBelow => true,
                };
                let mut reached = self.reach(value, &mut budget);
                reached.shifted = reached.paths.iter().any(|path| self.is_shifted(path, part));
                let rules = read_rules.iter().chain(edit_rules.iter().filter(|_| edits));
                for (reference, pattern) in rules {
                    let certainty = self.certainty(&reached, pattern, depth, &mut budget);
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

    fn certainty(
        &self,
        reached: &Reached,
        pattern: &PathPattern,
        depth: Depth,
        budget: &mut Budget,
    ) -> Option<Certainty> {
        let hit = |path: &Spellings| some_spelling(pattern, path);
        if reached.paths.iter().any(hit) || reached.inside.iter().any(hit) {
            return Some(Certainty::Real);
        }
        let may_hold = |path: &Spellings| path.all().any(|path| pattern.may_match_below(path));
        let unsearched = match reached.unsearched {
            Missing::Nothing => false,
            Missing::Below => reached.inside.iter().any(may_hold),
            Missing::Anything => true,
        };
        let possible = match reached.possible {
            Missing::Nothing => reached.shifted,
            Missing::Below => reached.inside.iter().any(may_hold),
            Missing::Anything => true,
        };
        let below = (depth != Depth::Itself && !unsearched)
            .then(|| reached.paths.iter().filter_map(|path| self.below(path, pattern, depth, budget)).max());
        let unsearched = unsearched.then_some(Certainty::Unsearched);
        unsearched.max(below.flatten()).max(possible.then_some(Certainty::Possible))
    }

    /// Whether something that the rule means is there below this path.
    fn below(
        &self,
        path: &Spellings,
        pattern: &PathPattern,
        depth: Depth,
        budget: &mut Budget,
    ) -> Option<Certainty> {
        let root = path.physical.as_path();
        if depth != Depth::ThroughLinks && !pattern.may_match_below(root) {
            return None;
        }
        let fs = self.around.fs;
        let leads_there = |path: &Path| {
            fs.lstat(path) == Some(EntryKind::Link)
                && some_spelling(pattern, &resolve_absolute(path, &self.around))
        };
        let through_links =
            || look_below(root, fs, |_| true, |path| pattern.matches(path) || leads_there(path));
        // What there was too much of may hold it: that is no less than having found it.
        let found = !budget.take(Look::Walk, 1)
            || match depth {
                Depth::Itself => false,
                Depth::Below => lies_below(pattern, root, fs),
                Depth::ThroughLinks => through_links() != Below::Nothing,
            };
        found.then_some(Certainty::Below)
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
    let write = if part.changes_below { Use::WriteBelow } else { Use::Write };
    let redirects = part.redirects.iter().filter(|redirect| redirect.place != Place::Null);
    let redirects = redirects.map(|redirect| match redirect.way {
        Way::Read => (&redirect.target, Use::Read),
        Way::Write => (&redirect.target, Use::Write),
    });
    let operands = reads(part).map(move |value| (value, read));
    let writes = part.writes.iter().map(move |value| (value, write));
    let sweeps = part.sweeps.iter().map(|value| (value, Use::WriteBelow));
    operands.chain(writes).chain(sweeps).chain(redirects)
}
