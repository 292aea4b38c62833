//! Deny analysis of paths: finds a deny or ask rule that matches a path the command accesses, or something below it.

use std::collections::HashMap;
use std::path::PathBuf;

use whimbrel_wire::permission::PermissionBehavior;

use super::symlinks::MovedBy;
use super::symlinks::follows_symlinks;
use super::word_paths::{LookupKind, SearchBudget, Unresolved, WordPaths};
use super::{ShellCommand, read_operands};
use crate::decision_input::DecisionInput;
use crate::dir_walk::{LinkPolicy, match_rules_below};
use crate::paths::ResolvedPath;
use crate::paths::folded_path::FoldedPath;
use crate::rules::path_pattern::PathPattern;
use crate::rules::rule_set::SourcedRule;
use crate::shell::{RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue};

/// Certainty that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchCertainty {
    /// Possible, depending on the value of an unknown word.
    Possible,
    /// The rule matches something below an accessed path, or the walk hit a limit.
    Below,
    /// Search budget exhausted; treated as a match so that it cannot be used to evade a rule.
    BudgetExhausted,
    Certain,
}

/// Use of a path by a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PathUse {
    Read,
    /// Read in order to write it elsewhere, which an Edit deny rule also covers.
    Copy,
    Write,
    /// Changed, removed or moved with everything below.
    WriteBelow,
}

/// Depth to which a simple command uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PathDepth {
    Itself,
    /// Everything below it.
    Below,
    /// Everything below it, and the targets of links.
    ThroughLinks,
}

/// Search for the file rules with one behavior, and its best match so far.
struct PathRuleSearch<'c, 'a, 'r> {
    command: &'c ShellCommand<'a>,
    behavior: PermissionBehavior,
    rules: Vec<&'r SourcedRule>,
    /// Patterns of Read rules first, then of Edit rules.
    patterns: Vec<&'r PathPattern>,
    /// Number of Read patterns.
    read_rule_count: usize,
    budget: SearchBudget,
    /// Values already checked, with the commands that may move them.
    checked: HashMap<(&'c WordValue, PathUse, PathDepth), MovedBy>,
    /// Rules that match below a directory, by directory.
    walk_results: HashMap<(PathBuf, LinkPolicy), Vec<bool>>,
    best_match: Option<(&'r SourcedRule, MatchCertainty)>,
}

impl ShellCommand<'_> {
    /// Finds the file rule that matches with the highest certainty; the first of several.
    pub(super) fn match_path_rules<'r>(
        &self,
        input: &DecisionInput<'r>,
        behavior: PermissionBehavior,
    ) -> Option<(&'r SourcedRule, MatchCertainty)> {
        let (mut references, mut patterns): (Vec<_>, Vec<_>) = input.rules.read_rules(behavior).unzip();
        let reads = patterns.len();
        for (reference, pattern) in input.rules.edit_rules(behavior) {
            references.push(reference);
            patterns.push(pattern);
        }
        if patterns.is_empty() {
            return None;
        }
        let mut search = PathRuleSearch {
            command: self,
            behavior,
            rules: references,
            patterns,
            read_rule_count: reads,
            budget: SearchBudget::default(),
            checked: HashMap::new(),
            walk_results: HashMap::new(),
            best_match: None,
        };
        for simple_command in self.analysis.commands.iter().chain(&self.analysis.commands_if_empty) {
            search.check_command(simple_command);
            if search.has_match_at_least(MatchCertainty::Certain) {
                break;
            }
        }
        search.best_match
    }
}

impl<'c> PathRuleSearch<'c, '_, '_> {
    fn check_command(&mut self, simple_command: &'c SimpleCommand) {
        let through_links = follows_symlinks(simple_command);
        for (value, usage) in accessed_values(simple_command) {
            let depth = match (simple_command.recursive || usage == PathUse::WriteBelow, through_links) {
                (false, _) => PathDepth::Itself,
                (true, false) => PathDepth::Below,
                (true, true) => PathDepth::ThroughLinks,
            };
            let key = (value, usage, depth);
            let moved_by = match self.checked.get(&key) {
                Some(moved_by) => *moved_by,
                None => {
                    let moved_by = self.check_value(value, usage, depth);
                    self.checked.insert(key, moved_by);
                    moved_by
                }
            };
            if self.best_match.is_none() && self.command.is_moved_by_other(moved_by, simple_command) {
                self.record_match(
                    self.applicable_patterns(usage).first().map(|_| 0),
                    MatchCertainty::Possible,
                );
            }
            if self.has_match_at_least(MatchCertainty::Certain) {
                return;
            }
        }
    }

    fn has_match_at_least(&self, certainty: MatchCertainty) -> bool {
        self.best_match.is_some_and(|(_, best)| best >= certainty)
    }

    /// Records a match if it is more certain than the best so far.
    fn record_match(&mut self, rule: Option<usize>, certainty: MatchCertainty) {
        if !self.has_match_at_least(certainty)
            && let Some(reference) = rule.and_then(|index| self.rules.get(index))
        {
            self.best_match = Some((reference, certainty));
        }
    }

    /// Patterns that apply to a use of a path.
    fn applicable_patterns(&self, usage: PathUse) -> &[&PathPattern] {
        let edits = match usage {
            PathUse::Read => false,
            PathUse::Copy => self.behavior == PermissionBehavior::Deny,
            PathUse::Write | PathUse::WriteBelow => true,
        };
        let count = if edits { self.patterns.len() } else { self.read_rule_count };
        self.patterns.get(..count).unwrap_or_default()
    }

    /// Matches the rules against one value, the most certain kind first. Kinds no more certain than the best match
    /// are skipped.
    fn check_value(&mut self, value: &WordValue, usage: PathUse, depth: PathDepth) -> MovedBy {
        let word_paths = self.command.find_word_paths(value, &mut self.budget);
        let moved_by = word_paths
            .paths()
            .fold(MovedBy::Nothing, |moved_by, path| moved_by.merge(self.command.find_moving_commands(path)));
        let inside: Vec<FoldedPath> =
            word_paths.containing_dirs.iter().flat_map(FoldedPath::all_forms).collect();
        let folded: Vec<FoldedPath> = word_paths.paths().flat_map(FoldedPath::all_forms).collect();
        let rules = self.applicable_patterns(usage);
        let first_rule = (!rules.is_empty()).then_some(0);
        let first = |matches: &dyn Fn(&PathPattern) -> bool| rules.iter().position(|rule| matches(rule));
        let certain = first(&|rule| folded.iter().chain(&inside).any(|path| rule.matches_folded(path)));
        let match_unresolved = |missing: Unresolved| match missing {
            Unresolved::Nothing => None,
            Unresolved::InKnownDirs => {
                first(&|rule| inside.iter().any(|path| rule.may_match_below_folded(path)))
            }
            Unresolved::Anything => first_rule,
        };
        let unsearched = match_unresolved(word_paths.unsearched).filter(|_| certain.is_none());
        let possible = self.best_match.is_none().then(|| match_unresolved(word_paths.unknown)).flatten();
        let rule_count = rules.len();
        self.record_match(certain, MatchCertainty::Certain);
        self.record_match(unsearched, MatchCertainty::BudgetExhausted);
        if depth != PathDepth::Itself && !self.has_match_at_least(MatchCertainty::Below) {
            let below = self.find_first_match_below(&word_paths, depth, rule_count);
            self.record_match(below, MatchCertainty::Below);
        }
        self.record_match(possible, MatchCertainty::Possible);
        moved_by
    }

    /// Finds the index of the first applicable rule that matches below one of the paths.
    fn find_first_match_below(
        &mut self,
        word_paths: &WordPaths,
        depth: PathDepth,
        rule_count: usize,
    ) -> Option<usize> {
        let links = if depth == PathDepth::ThroughLinks { LinkPolicy::Follow } else { LinkPolicy::Ignore };
        word_paths.paths().filter_map(|path| self.match_below(path, links, rule_count)).min()
    }

    fn match_below(&mut self, path: &ResolvedPath, links: LinkPolicy, rule_count: usize) -> Option<usize> {
        let key = (path.physical.clone(), links);
        if !self.walk_results.contains_key(&key) {
            let matched = if self.budget.spend(LookupKind::Walk, 1) {
                match_rules_below(&self.patterns, &path.physical, links, &self.command.disk.context)
            } else {
                // Budget exhausted: a rule that could match below counts as a match.
                let root = FoldedPath::new(&path.physical);
                let may_match =
                    |rule: &&PathPattern| links == LinkPolicy::Follow || rule.may_match_below_folded(&root);
                self.patterns.iter().map(may_match).collect()
            };
            self.walk_results.insert(key.clone(), matched);
        }
        self.walk_results.get(&key)?.iter().take(rule_count).position(|matched| *matched)
    }
}

/// Values that a simple command accesses, and how.
fn accessed_values(simple_command: &SimpleCommand) -> impl Iterator<Item = (&WordValue, PathUse)> {
    let program = simple_command.program.as_deref();
    let read = if matches!(program, Some("cp" | "mv")) { PathUse::Copy } else { PathUse::Read };
    let write = if simple_command.writes_recursively { PathUse::WriteBelow } else { PathUse::Write };
    let redirects =
        simple_command.redirects.iter().filter(|redirect| redirect.target_kind != RedirectTargetKind::Null);
    let redirects = redirects.map(|redirect| match redirect.direction {
        RedirectDirection::Read => (&redirect.target, PathUse::Read),
        RedirectDirection::Write => (&redirect.target, PathUse::Write),
    });
    let operands = read_operands(simple_command).map(move |value| (value, read));
    let writes = simple_command.writes.iter().map(move |value| (value, write));
    let bulk_writes = simple_command.bulk_write_dirs.iter().map(|value| (value, PathUse::WriteBelow));
    operands.chain(writes).chain(bulk_writes).chain(redirects)
}
