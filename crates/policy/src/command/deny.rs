//! Deny analysis of command text: finds a deny or ask rule that matches some simple command, in any form and at
//! any depth.

use std::collections::{HashMap, HashSet};

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::ShellCommand;
use super::deny_paths::MatchCertainty;
use crate::decision::{Decision, Reason};
use crate::decision_input::DecisionInput;
use crate::rules::command_pattern::CommandPattern;
use crate::rules::rule_set::SourcedRule;
use crate::shell::{DenyText, MatchStart, UnanalyzableCause};

impl ShellCommand<'_> {
    /// Applies the rules with this behavior to the command.
    pub(crate) fn decide_by_rules(
        &self,
        input: &DecisionInput<'_>,
        behavior: PermissionBehavior,
    ) -> Option<Decision> {
        if behavior == PermissionBehavior::Deny && self.is_too_complex_to_search(input) {
            return Some(Decision::Deny(Reason::Unanalyzable(UnanalyzableCause::TooDeep)));
        }
        if let Some(rule) = self.match_command_rules(input, behavior) {
            return Some(build_decision(behavior, Reason::Rule(rule.clone())));
        }
        let (rule, certainty) = self.match_path_rules(input, behavior)?;
        match certainty {
            MatchCertainty::Certain => Some(build_decision(behavior, Reason::Rule(rule.clone()))),
            MatchCertainty::BudgetExhausted if input.mode == PermissionMode::BypassPermissions => {
                Some(build_decision(behavior, Reason::PossibleRule(rule.clone())))
            }
            MatchCertainty::Below | MatchCertainty::BudgetExhausted => {
                Some(Decision::ask(Reason::PossibleRule(rule.clone())))
            }
            MatchCertainty::Possible => (input.mode != PermissionMode::BypassPermissions)
                .then(|| Decision::ask(Reason::PossibleRule(rule.clone()))),
        }
    }

    /// Returns true if the command is too complex to search in bypass mode although restricting rules exist. In other
    /// modes the user is asked.
    fn is_too_complex_to_search(&self, input: &DecisionInput<'_>) -> bool {
        input.mode == PermissionMode::BypassPermissions
            && (self.analysis.truncated
                || self.analysis.has_untracked_values
                || self.analysis.unanalyzable.contains(&UnanalyzableCause::TooDeep))
            && input.rules.has_scoped_restrictions()
    }

    fn match_command_rules<'a>(
        &self,
        input: &DecisionInput<'a>,
        behavior: PermissionBehavior,
    ) -> Option<&'a SourcedRule> {
        let (references, patterns): (Vec<_>, Vec<_>) =
            input.rules.command_rules(behavior, input.call.tool).unzip();
        if patterns.is_empty() {
            return None;
        }
        let patterns = PatternIndex::new(&patterns);
        let mut first = None;
        // Many simple commands may have the same text.
        let mut seen = HashSet::new();
        let simple_commands = self.analysis.commands.iter().chain(&self.analysis.commands_if_empty);
        for deny_text in simple_commands.flat_map(|simple_command| &simple_command.deny_texts) {
            let counts = !deny_text.deny_only || behavior == PermissionBehavior::Deny;
            if counts && seen.insert((&deny_text.text, deny_text.match_start, deny_text.deny_only)) {
                first = patterns.find_first_match(deny_text, first);
            }
        }
        first.and_then(|first| references.get(first).copied())
    }
}

/// Command patterns, indexed by the first byte that a text must have to match.
struct PatternIndex<'a> {
    all: &'a [&'a CommandPattern],
    /// Patterns by first byte in lower case; those with any start are included in each list.
    by_first_byte: HashMap<u8, Vec<usize>>,
    /// Patterns that may match texts with any start.
    any_start: Vec<usize>,
}

impl<'a> PatternIndex<'a> {
    fn new(all: &'a [&'a CommandPattern]) -> Self {
        let first_byte = |index: &usize| all.get(*index).and_then(|pattern| pattern.first_byte());
        let any_start: Vec<usize> = (0..all.len()).filter(|index| first_byte(index).is_none()).collect();
        let mut by_first_byte: HashMap<u8, Vec<usize>> = HashMap::new();
        for byte in (0..all.len()).filter_map(|index| first_byte(&index)) {
            let may_match = |index: &usize| first_byte(index).is_none_or(|first_byte| first_byte == byte);
            by_first_byte.entry(byte).or_insert_with(|| (0..all.len()).filter(may_match).collect());
        }
        Self { all, by_first_byte, any_start }
    }

    /// Patterns that may match a text, in order.
    fn candidates(&self, text: &str) -> impl Iterator<Item = (usize, &CommandPattern)> {
        let first = text.bytes().next().unwrap_or_default().to_ascii_lowercase();
        let candidates = self.by_first_byte.get(&first).unwrap_or(&self.any_start);
        candidates.iter().filter_map(|index| Some((*index, *self.all.get(*index)?)))
    }

    /// Finds the first pattern that matches a text, or a known one before it.
    fn find_first_match(&self, deny_text: &DenyText, known: Option<usize>) -> Option<usize> {
        let first = |mut found: &mut dyn Iterator<Item = (usize, &CommandPattern)>,
                     matches: &dyn Fn(&CommandPattern) -> bool| {
            let before = (&mut found).take_while(|(index, _)| known.is_none_or(|known| *index < known));
            before.filter(|(_, pattern)| matches(pattern)).map(|(index, _)| index).next()
        };
        let text = &deny_text.text;
        let found = match deny_text.match_start {
            MatchStart::EveryWord => {
                first(&mut self.all.iter().copied().enumerate(), &|pattern| pattern.matches_at_any_word(text))
            }
            MatchStart::Beginning => first(&mut self.candidates(text), &|pattern| pattern.matches(text)),
        };
        let lowercase = (deny_text.match_start == MatchStart::Beginning && deny_text.deny_only)
            .then(|| text.to_lowercase());
        let lowercase = lowercase
            .and_then(|text| first(&mut self.candidates(&text), &|pattern| pattern.matches_lowercase(&text)));
        [known, found, lowercase].into_iter().flatten().min()
    }
}

fn build_decision(behavior: PermissionBehavior, reason: Reason) -> Decision {
    match behavior {
        PermissionBehavior::Deny => Decision::Deny(reason),
        PermissionBehavior::Ask | PermissionBehavior::Allow => Decision::ask(reason),
    }
}
