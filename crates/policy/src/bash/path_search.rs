//! The wide search among files: does a rule mean a path that the command touches, or something below it?

use std::collections::HashMap;
use std::path::PathBuf;

use whimbrel_wire::permission::PermissionBehavior;

use super::links::follows;
use super::reach::{Budget, Look, Missing, Reached};
use super::shift::Shift;
use super::{Command, reads};
use crate::below::{Links, meant_below};
use crate::decide::Case;
use crate::folded::Folded;
use crate::path_pattern::PathPattern;
use crate::paths::Spellings;
use crate::ruleset::RuleRef;
use crate::shell::{Part, Place, Value, Way};

/// How sure it is that a rule is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
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

/// The rules about files with one behavior, and what was found of them so far.
struct Search<'c, 'a, 'r> {
    command: &'c Command<'a>,
    behavior: PermissionBehavior,
    references: Vec<&'r RuleRef>,
    /// Those about reading first.
    patterns: Vec<&'r PathPattern>,
    /// How many are about reading.
    reads: usize,
    budget: Budget,
    /// What was judged, and by which parts it may be moved. The same twice says the same.
    judged: HashMap<(&'c Value, Use, Depth), Shift>,
    /// Which rules mean something below which directory.
    walked: HashMap<(PathBuf, Links), Vec<bool>>,
    best: Option<(&'r RuleRef, Certainty)>,
}

impl Command<'_> {
    /// The rule about files that is meant most certainly, the first of them.
    pub(super) fn named_by_path<'r>(
        &self,
        case: &Case<'r>,
        behavior: PermissionBehavior,
    ) -> Option<(&'r RuleRef, Certainty)> {
        let (mut references, mut patterns): (Vec<_>, Vec<_>) = case.rules.reads(behavior).unzip();
        let reads = patterns.len();
        for (reference, pattern) in case.rules.edits(behavior) {
            references.push(reference);
            patterns.push(pattern);
        }
        if patterns.is_empty() {
            return None;
        }
        let mut search = Search {
            command: self,
            behavior,
            references,
            patterns,
            reads,
            budget: Budget::default(),
            judged: HashMap::new(),
            walked: HashMap::new(),
            best: None,
        };
        for part in self.script.parts.iter().chain(&self.script.supposed) {
            search.part(part);
            if search.is_at_least(Certainty::Real) {
                break;
            }
        }
        search.best
    }
}

impl<'c> Search<'c, '_, '_> {
    fn part(&mut self, part: &'c Part) {
        let through_links = follows(part);
        for (value, usage) in touched(part) {
            let depth = match (part.recursive || usage == Use::WriteBelow, through_links) {
                (false, _) => Depth::Itself,
                (true, false) => Depth::Below,
                (true, true) => Depth::ThroughLinks,
            };
            let touch = (value, usage, depth);
            let shift = match self.judged.get(&touch) {
                Some(shift) => *shift,
                None => {
                    let shift = self.touch(value, usage, depth);
                    self.judged.insert(touch, shift);
                    shift
                }
            };
            if self.best.is_none() && self.command.moves_before(shift, part) {
                self.note(self.concerned(usage).first().map(|_| 0), Certainty::Possible);
            }
            if self.is_at_least(Certainty::Real) {
                return;
            }
        }
    }

    fn is_at_least(&self, certainty: Certainty) -> bool {
        self.best.is_some_and(|(_, best)| best >= certainty)
    }

    /// Notes that the rule at some place is meant, if that is more than is known.
    fn note(&mut self, rule: Option<usize>, certainty: Certainty) {
        if !self.is_at_least(certainty)
            && let Some(reference) = rule.and_then(|at| self.references.get(at))
        {
            self.best = Some((reference, certainty));
        }
    }

    /// The rules that a use of a path concerns.
    fn concerned(&self, usage: Use) -> &[&PathPattern] {
        let edits = match usage {
            Use::Read => false,
            Use::Copy => self.behavior == PermissionBehavior::Deny,
            Use::Write | Use::WriteBelow => true,
        };
        let count = if edits { self.patterns.len() } else { self.reads };
        self.patterns.get(..count).unwrap_or_default()
    }

    /// Looks what the rules say of one word, the surest first: what says less than is known already is left out.
    fn touch(&mut self, value: &Value, usage: Use, depth: Depth) -> Shift {
        let reached = self.command.reach(value, &mut self.budget);
        let shift = reached.paths().fold(Shift::Never, |shift, path| shift.and(self.command.shift_of(path)));
        let inside: Vec<Folded> = reached.inside.iter().flat_map(Folded::all).collect();
        let folded: Vec<Folded> = reached.paths().flat_map(Folded::all).collect();
        let rules = self.concerned(usage);
        let any = (!rules.is_empty()).then_some(0);
        let first = |means: &dyn Fn(&PathPattern) -> bool| rules.iter().position(|rule| means(rule));
        let real = first(&|rule| folded.iter().chain(&inside).any(|path| rule.matches_folded(path)));
        let of_missing = |missing: Missing| match missing {
            Missing::Nothing => None,
            Missing::Below => first(&|rule| inside.iter().any(|path| rule.may_match_below_folded(path))),
            Missing::Anything => any,
        };
        let unsearched = of_missing(reached.unsearched).filter(|_| real.is_none());
        let possible = self.best.is_none().then(|| of_missing(reached.possible)).flatten();
        let concerned = rules.len();
        self.note(real, Certainty::Real);
        self.note(unsearched, Certainty::Unsearched);
        if depth != Depth::Itself && !self.is_at_least(Certainty::Below) {
            let below = self.first_below(&reached, depth, concerned);
            self.note(below, Certainty::Below);
        }
        self.note(possible, Certainty::Possible);
        shift
    }

    /// The first of so many rules that means something below what was reached.
    fn first_below(&mut self, reached: &Reached, depth: Depth, concerned: usize) -> Option<usize> {
        let links = if depth == Depth::ThroughLinks { Links::Followed } else { Links::Passed };
        reached.paths().filter_map(|path| self.below(path, links, concerned)).min()
    }

    fn below(&mut self, path: &Spellings, links: Links, concerned: usize) -> Option<usize> {
        let key = (path.physical.clone(), links);
        if !self.walked.contains_key(&key) {
            let meant = if self.budget.take(Look::Walk, 1) {
                meant_below(&self.patterns, &path.physical, links, &self.command.around)
            } else {
                // What there was too much of may hold it: that is no less than having found it.
                let root = Folded::of(&path.physical);
                let may_hold =
                    |rule: &&PathPattern| links == Links::Followed || rule.may_match_below_folded(&root);
                self.patterns.iter().map(may_hold).collect()
            };
            self.walked.insert(key.clone(), meant);
        }
        self.walked.get(&key)?.iter().take(concerned).position(|meant| *meant)
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
