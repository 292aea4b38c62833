//! Conditional commands: branches and subshells. A variable set in one of them is definite afterwards only if every
//! branch of an exhaustive choice sets it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::shell::analyzer::Analyzer;
use crate::shell::parser::syntax::{
    ConditionalCommands, ConditionalKind, ExhaustiveChoice, ParsedScript, RawCommand,
};

/// Words with which a function may return early or keep its variables local.
const INDEFINITE_WORDS: &[&str] = &["return", "exit", "local", "declare", "typeset"];

/// Walk over the commands of a text.
struct BranchWalk<'h> {
    parsed: &'h ParsedScript,
    /// Conditional ranges not yet entered, outer ones last so that they are popped first; each with its index.
    upcoming: Vec<(usize, &'h ConditionalCommands)>,
    open: Vec<OpenBranch<'h>>,
    /// Variables assigned in each finished branch.
    assigned: HashMap<usize, HashSet<String>>,
    /// Choices not yet completed, the first one last.
    choices: Vec<&'h ExhaustiveChoice>,
}

/// A conditional range that the walk is in.
struct OpenBranch<'h> {
    number: usize,
    branch: &'h ConditionalCommands,
    definite_count: usize,
    in_function: bool,
}

impl Analyzer<'_> {
    /// Analyzes the commands in order. Returns the range of simple commands that each produced.
    pub(crate) fn analyze_commands(&mut self, parsed: &ParsedScript) -> Vec<Range<usize>> {
        let mut upcoming: Vec<(usize, &ConditionalCommands)> = parsed
            .conditional_ranges
            .iter()
            .enumerate()
            .filter(|(_, range)| !range.commands.is_empty())
            .collect();
        // Of ranges with the same start, the one recorded later is the outer one.
        upcoming.sort_by_key(|(number, range)| {
            let commands = &range.commands;
            (std::cmp::Reverse(commands.start), commands.end, *number)
        });
        // A branch without commands assigns nothing, so its choice makes nothing definite.
        let has_commands = |branch: &usize| {
            parsed.conditional_ranges.get(*branch).is_some_and(|branch| !branch.commands.is_empty())
        };
        let choices = parsed
            .exhaustive_choices
            .iter()
            .rev()
            .filter(|choice| choice.branches.iter().all(has_commands))
            .collect();
        let mut walk = BranchWalk { parsed, upcoming, open: Vec::new(), assigned: HashMap::new(), choices };
        let start = self.variables.definite_count();
        let mut command_ranges = Vec::with_capacity(parsed.commands.len());
        for (index, command) in parsed.commands.iter().enumerate() {
            self.close_branches(&mut walk, index);
            while let Some((number, range)) = walk.upcoming.pop_if(|(_, range)| range.commands.start <= index)
            {
                let (definite_count, in_function) = (self.variables.definite_count(), self.text.in_function);
                walk.open.push(OpenBranch { number, branch: range, definite_count, in_function });
                self.text.in_function |= matches!(range.kind, ConditionalKind::Function(_));
                if let ConditionalKind::Loop(name) = &range.kind {
                    self.variables.mark_definite(name);
                }
            }
            command_ranges.push(self.analyze_command(command));
            self.apply_function_call(command);
        }
        self.close_branches(&mut walk, parsed.commands.len());
        // Texts analyzed later may run before these commands.
        self.variables.rollback_definite(start);
        command_ranges
    }

    /// Closes the ranges that end before a command.
    fn close_branches(&mut self, walk: &mut BranchWalk<'_>, index: usize) {
        loop {
            self.close_choices(walk, index);
            let Some(open) = walk.open.pop_if(|open| open.branch.commands.end <= index) else { break };
            let assigned = self.variables.definite_since(open.definite_count);
            if let ConditionalKind::Function(name) = &open.branch.kind {
                self.record_function(name, walk, &open, &assigned);
            }
            walk.assigned.insert(open.number, assigned);
            self.variables.rollback_definite(open.definite_count);
            self.text.in_function = open.in_function;
        }
    }

    /// Makes variables definite that every branch of a choice assigns, once all branches are closed and before an
    /// enclosing range is.
    fn close_choices(&mut self, walk: &mut BranchWalk<'_>, index: usize) {
        while let Some(choice) = walk.choices.pop_if(|choice| {
            let all_closed = choice.branches.iter().all(|branch| walk.assigned.contains_key(branch));
            let inside = |open: &OpenBranch<'_>| open.branch.commands.start > choice.commands.start;
            choice.commands.end <= index && all_closed && !walk.open.last().is_some_and(inside)
        }) {
            let mut branches = choice.branches.iter().filter_map(|branch| walk.assigned.get(branch));
            let Some(first) = branches.next().cloned() else { continue };
            let names = branches.fold(first, |names, branch| names.intersection(branch).cloned().collect());
            for name in &names {
                self.variables.mark_definite_any(name);
            }
        }
    }

    /// Records the variables that a function sets on every call.
    fn record_function(
        &mut self,
        name: &str,
        walk: &BranchWalk<'_>,
        body: &OpenBranch<'_>,
        assigned: &HashSet<String>,
    ) {
        let commands = walk.parsed.commands.get(body.branch.commands.clone()).unwrap_or_default();
        let is_indefinite = |command: &RawCommand| {
            command.words.first().is_some_and(|word| INDEFINITE_WORDS.contains(&word.raw.as_str()))
        };
        let known = walk.open.is_empty()
            && self.text.depth == 0
            && !self.function_assignments.contains_key(name)
            && !commands.iter().any(is_indefinite);
        self.function_assignments.insert(name.to_owned(), known.then(|| assigned.clone()));
    }

    /// Makes the variables of a called function definite.
    fn apply_function_call(&mut self, command: &RawCommand) {
        let Some(first) = command.words.first().filter(|_| !command.may_fail && self.text.depth == 0) else {
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
