//! Commands that may not run, or that run in another shell: what they assign is not certain after them, unless one of
//! several ways is always taken and each of them assigns it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::analyzer::Analyzer;
use super::syntax::{ConditionalCommands, ExhaustiveChoice, ParsedScript, ConditionalKind, RawCommand};

/// Words by which a function may end early, or keep what it sets to itself.
const INDEFINITE_WORDS: &[&str] = &["return", "exit", "local", "declare", "typeset"];

/// The walk through the commands of a text.
struct BranchWalk<'h> {
    harvest: &'h ParsedScript,
    /// Those that are apart and not yet reached, the outer ones first; each with its number.
    upcoming: Vec<(usize, &'h ConditionalCommands)>,
    open: Vec<OpenBranch<'h>>,
    /// What each way of a choice has assigned.
    assigned: HashMap<usize, HashSet<String>>,
    /// The choices that are not yet passed, the last ones first.
    choices: Vec<&'h ExhaustiveChoice>,
}

/// Commands that are apart, while they are looked at.
struct OpenBranch<'h> {
    number: usize,
    branch: &'h ConditionalCommands,
    definite_count: usize,
    in_function: bool,
}

impl Analyzer<'_> {
    /// Looks at the commands in order, and answers which parts came of each.
    pub(super) fn analyze_commands(&mut self, harvest: &ParsedScript) -> Vec<Range<usize>> {
        let mut ahead: Vec<(usize, &ConditionalCommands)> =
            harvest.conditional_ranges.iter().enumerate().filter(|(_, apart)| !apart.commands.is_empty()).collect();
        // What was noted later is the outer one.
        ahead.sort_by_key(|(number, apart)| {
            let commands = &apart.commands;
            (std::cmp::Reverse(commands.start), commands.end, *number)
        });
        // A way without commands assigns nothing.
        let is_way = |way: &usize| harvest.conditional_ranges.get(*way).is_some_and(|way| !way.commands.is_empty());
        let choices = harvest.exhaustive_choices.iter().rev().filter(|choice| choice.branches.iter().all(is_way)).collect();
        let mut walk = BranchWalk { harvest, upcoming: ahead, open: Vec::new(), assigned: HashMap::new(), choices };
        let start = self.variables.definite_count();
        let mut parts = Vec::with_capacity(harvest.commands.len());
        for (at, command) in harvest.commands.iter().enumerate() {
            self.close_branches(&mut walk, at);
            while let Some((number, apart)) = walk.upcoming.pop_if(|(_, apart)| apart.commands.start <= at) {
                let (settled, in_function) = (self.variables.definite_count(), self.in_function);
                walk.open.push(OpenBranch { number, branch: apart, definite_count: settled, in_function });
                self.in_function |= matches!(apart.kind, ConditionalKind::Function(_));
                if let ConditionalKind::Loop(name) = &apart.kind {
                    self.variables.mark_definite(name);
                }
            }
            parts.push(self.analyze_command(command));
            self.apply_function_call(command);
        }
        self.close_branches(&mut walk, harvest.commands.len());
        // What is read after them may have run before.
        self.variables.rollback_definite(start);
        parts
    }

    /// Leaves what ends before a command.
    fn close_branches(&mut self, walk: &mut BranchWalk<'_>, at: usize) {
        loop {
            self.settle_choices(walk, at);
            let Some(open) = walk.open.pop_if(|open| open.branch.commands.end <= at) else { break };
            let assigned = self.variables.definite_since(open.definite_count);
            if let ConditionalKind::Function(name) = &open.branch.kind {
                self.record_function(name, walk, &open, &assigned);
            }
            walk.assigned.insert(open.number, assigned);
            self.variables.rollback_definite(open.definite_count);
            self.in_function = open.in_function;
        }
    }

    /// Settles what every way of a choice has assigned, once all are left and before anything around it is.
    fn settle_choices(&mut self, walk: &mut BranchWalk<'_>, at: usize) {
        while let Some(choice) = walk.choices.pop_if(|choice| {
            let left = choice.branches.iter().all(|way| walk.assigned.contains_key(way));
            let inside = |open: &OpenBranch<'_>| open.branch.commands.start > choice.commands.start;
            choice.commands.end <= at && left && !walk.open.last().is_some_and(inside)
        }) {
            let mut ways = choice.branches.iter().filter_map(|way| walk.assigned.get(way));
            let Some(first) = ways.next().cloned() else { continue };
            let names = ways.fold(first, |names, way| names.intersection(way).cloned().collect());
            for name in &names {
                self.variables.mark_definite_any(name);
            }
        }
    }

    /// Notes what a function sets whenever it is called.
    fn record_function(&mut self, name: &str, walk: &BranchWalk<'_>, body: &OpenBranch<'_>, assigned: &HashSet<String>) {
        let commands = walk.harvest.commands.get(body.branch.commands.clone()).unwrap_or_default();
        let unsure = |command: &RawCommand| {
            command.words.first().is_some_and(|word| INDEFINITE_WORDS.contains(&word.raw.as_str()))
        };
        let known = walk.open.is_empty()
            && self.text_depth == 0
            && !self.function_assignments.contains_key(name)
            && !commands.iter().any(unsure);
        self.function_assignments.insert(name.to_owned(), known.then(|| assigned.clone()));
    }

    /// Settles what a function sets that is called.
    fn apply_function_call(&mut self, command: &RawCommand) {
        let Some(first) = command.words.first().filter(|_| !command.may_fail && self.text_depth == 0) else {
            return;
        };
        if first.raw == "unset" {
            self.function_assignments.values_mut().for_each(|names| *names = None);
        }
        if self.variables.has_aliases() {
            return;
        }
        for name in self.function_assignments.get(&first.raw).into_iter().flatten().flatten() {
            self.variables.mark_definite_any(name);
        }
    }
}
