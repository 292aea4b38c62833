//! Commands that may not run, or that run in another shell: what they assign is not certain after them, unless one of
//! several ways is always taken and each of them assigns it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::inspect::Inspector;
use super::syntax::{Apart, Choice, Harvest, Of, Simple};

/// Words by which a function may end early, or keep what it sets to itself.
const NOT_CERTAIN: &[&str] = &["return", "exit", "local", "declare", "typeset"];

/// The walk through the commands of a text.
struct Walk<'h> {
    harvest: &'h Harvest,
    /// Those that are apart and not yet reached, the outer ones first; each with its number.
    ahead: Vec<(usize, &'h Apart)>,
    open: Vec<Open<'h>>,
    /// What each way of a choice has assigned.
    taken: HashMap<usize, HashSet<String>>,
    /// The choices that are not yet passed, the last ones first.
    choices: Vec<&'h Choice>,
}

/// Commands that are apart, while they are looked at.
struct Open<'h> {
    number: usize,
    apart: &'h Apart,
    settled: usize,
    in_function: bool,
}

impl Inspector<'_> {
    /// Looks at the commands in order, and answers which parts came of each.
    pub(super) fn commands(&mut self, harvest: &Harvest) -> Vec<Range<usize>> {
        let mut ahead: Vec<(usize, &Apart)> =
            harvest.apart.iter().enumerate().filter(|(_, apart)| !apart.commands.is_empty()).collect();
        // What was noted later is the outer one.
        ahead.sort_by_key(|(number, apart)| {
            let commands = &apart.commands;
            (std::cmp::Reverse(commands.start), commands.end, *number)
        });
        // A way without commands assigns nothing.
        let is_way = |way: &usize| harvest.apart.get(*way).is_some_and(|way| !way.commands.is_empty());
        let choices = harvest.choices.iter().rev().filter(|choice| choice.ways.iter().all(is_way)).collect();
        let mut walk = Walk { harvest, ahead, open: Vec::new(), taken: HashMap::new(), choices };
        let start = self.scope.settled();
        let mut parts = Vec::with_capacity(harvest.commands.len());
        for (at, command) in harvest.commands.iter().enumerate() {
            self.leave(&mut walk, at);
            while let Some((number, apart)) = walk.ahead.pop_if(|(_, apart)| apart.commands.start <= at) {
                let (settled, in_function) = (self.scope.settled(), self.in_function);
                walk.open.push(Open { number, apart, settled, in_function });
                self.in_function |= matches!(apart.of, Of::Function(_));
                if let Of::Loop(name) = &apart.of {
                    self.scope.settle(name);
                }
            }
            parts.push(self.command_once(command));
            self.called(command);
        }
        self.leave(&mut walk, harvest.commands.len());
        // What is read after them may have run before.
        self.scope.unsettle(start);
        parts
    }

    /// Leaves what ends before a command.
    fn leave(&mut self, walk: &mut Walk<'_>, at: usize) {
        loop {
            self.choose(walk, at);
            let Some(open) = walk.open.pop_if(|open| open.apart.commands.end <= at) else { break };
            let assigned = self.scope.settled_since(open.settled);
            if let Of::Function(name) = &open.apart.of {
                self.defined(name, walk, &open, &assigned);
            }
            walk.taken.insert(open.number, assigned);
            self.scope.unsettle(open.settled);
            self.in_function = open.in_function;
        }
    }

    /// Settles what every way of a choice has assigned, once all are left and before anything around it is.
    fn choose(&mut self, walk: &mut Walk<'_>, at: usize) {
        while let Some(choice) = walk.choices.pop_if(|choice| {
            let left = choice.ways.iter().all(|way| walk.taken.contains_key(way));
            let inside = |open: &Open<'_>| open.apart.commands.start > choice.commands.start;
            choice.commands.end <= at && left && !walk.open.last().is_some_and(inside)
        }) {
            let mut ways = choice.ways.iter().filter_map(|way| walk.taken.get(way));
            let Some(first) = ways.next().cloned() else { continue };
            let names = ways.fold(first, |names, way| names.intersection(way).cloned().collect());
            for name in &names {
                self.scope.settle_some(name);
            }
        }
    }

    /// Notes what a function sets whenever it is called.
    fn defined(&mut self, name: &str, walk: &Walk<'_>, body: &Open<'_>, assigned: &HashSet<String>) {
        let commands = walk.harvest.commands.get(body.apart.commands.clone()).unwrap_or_default();
        let unsure = |command: &Simple| {
            command.words.first().is_some_and(|word| NOT_CERTAIN.contains(&word.raw.as_str()))
        };
        let known = walk.open.is_empty()
            && self.level == 0
            && !self.functions.contains_key(name)
            && !commands.iter().any(unsure);
        self.functions.insert(name.to_owned(), known.then(|| assigned.clone()));
    }

    /// Settles what a function sets that is called.
    fn called(&mut self, command: &Simple) {
        let Some(first) = command.words.first().filter(|_| !command.may_fail && self.level == 0) else {
            return;
        };
        if first.raw == "unset" {
            self.functions.values_mut().for_each(|names| *names = None);
        }
        if self.scope.renames() {
            return;
        }
        for name in self.functions.get(&first.raw).into_iter().flatten().flatten() {
            self.scope.settle_some(name);
        }
    }
}
