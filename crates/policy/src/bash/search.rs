//! The wide search: does a deny or ask rule mean some part of the command, under any spelling, at any depth?

use std::collections::{HashMap, HashSet};

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::Command;
use super::path_search::Certainty;
use crate::command_pattern::CommandPattern;
use crate::decide::Case;
use crate::decision::{Decision, Reason};
use crate::ruleset::RuleRef;
use crate::shell::{DenySpelling, Kind, Start};

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
            && (self.script.cut_short
                || self.script.uncounted
                || self.script.unanalysable.contains(&Kind::TooDeep))
            && case.rules.has_scoped_limits()
    }

    fn named_by_command<'a>(&self, case: &Case<'a>, behavior: PermissionBehavior) -> Option<&'a RuleRef> {
        let (references, patterns): (Vec<_>, Vec<_>) = case.rules.commands(behavior, case.call.tool).unzip();
        if patterns.is_empty() {
            return None;
        }
        let patterns = Patterns::of(&patterns);
        let mut first = None;
        // Many parts may have the same text.
        let mut seen = HashSet::new();
        let parts = self.script.parts.iter().chain(&self.script.supposed);
        for spelling in parts.flat_map(|part| &part.deny_spellings) {
            let counts = !spelling.deny_only || behavior == PermissionBehavior::Deny;
            if counts && seen.insert((&spelling.text, spelling.start, spelling.deny_only)) {
                first = patterns.first_meaning(spelling, first);
            }
        }
        first.and_then(|first| references.get(first).copied())
    }
}

/// Patterns of commands, by the character that a text must begin with to be matched.
struct Patterns<'a> {
    all: &'a [&'a CommandPattern],
    /// Those that begin with this character, in lower case; those that may begin with anything are in each.
    beginning: HashMap<u8, Vec<usize>>,
    /// Those that may begin with anything.
    anyhow: Vec<usize>,
}

impl<'a> Patterns<'a> {
    fn of(all: &'a [&'a CommandPattern]) -> Self {
        let begins = |at: &usize| all.get(*at).and_then(|pattern| pattern.first_byte());
        let anyhow: Vec<usize> = (0..all.len()).filter(|at| begins(at).is_none()).collect();
        let mut beginning: HashMap<u8, Vec<usize>> = HashMap::new();
        for byte in (0..all.len()).filter_map(|at| begins(&at)) {
            let may = |at: &usize| begins(at).is_none_or(|begins| begins == byte);
            beginning.entry(byte).or_insert_with(|| (0..all.len()).filter(may).collect());
        }
        Self { all, beginning, anyhow }
    }

    /// Those that may match a text, in order.
    fn likely(&self, text: &str) -> impl Iterator<Item = (usize, &CommandPattern)> {
        let first = text.bytes().next().unwrap_or_default().to_ascii_lowercase();
        let places = self.beginning.get(&first).unwrap_or(&self.anyhow);
        places.iter().filter_map(|at| Some((*at, *self.all.get(*at)?)))
    }

    /// The first pattern that means a spelling, or the one that is known to be before it.
    fn first_meaning(&self, spelling: &DenySpelling, known: Option<usize>) -> Option<usize> {
        let first = |mut found: &mut dyn Iterator<Item = (usize, &CommandPattern)>,
                     means: &dyn Fn(&CommandPattern) -> bool| {
            let before = (&mut found).take_while(|(at, _)| known.is_none_or(|known| *at < known));
            before.filter(|(_, pattern)| means(pattern)).map(|(at, _)| at).next()
        };
        let text = &spelling.text;
        let found = match spelling.start {
            Start::EveryWord => first(&mut self.all.iter().copied().enumerate(), &|pattern| {
                pattern.matches_from_some_word(text)
            }),
            Start::Front => first(&mut self.likely(text), &|pattern| pattern.matches(text)),
        };
        let lowered = (spelling.start == Start::Front && spelling.deny_only).then(|| text.to_lowercase());
        let lowered = lowered
            .and_then(|text| first(&mut self.likely(&text), &|pattern| pattern.matches_lowered(&text)));
        [known, found, lowered].into_iter().flatten().min()
    }
}

fn answer(behavior: PermissionBehavior, reason: Reason) -> Decision {
    match behavior {
        PermissionBehavior::Deny => Decision::Deny(reason),
        PermissionBehavior::Ask | PermissionBehavior::Allow => Decision::ask(reason),
    }
}
