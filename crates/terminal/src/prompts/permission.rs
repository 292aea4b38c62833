//! The permission prompt: allow, allow always with the rules that the engine suggests, refuse, refuse with words.

use whimbrel::wire::permission::{Destination, PermissionBehavior, PermissionUpdate, RuleValue};
use whimbrel::{CanUseTool, PermissionResult};

use super::{PromptAnswer, refusal};
use crate::menu::{Choice, Menu, MenuOutcome};

#[derive(Debug, Clone)]
pub(super) struct PermissionPrompt {
    pub(super) menu: Menu,
    /// What each choice does.
    effects: Vec<ChoiceEffect>,
}

#[derive(Debug, Clone, PartialEq)]
enum ChoiceEffect {
    AllowOnce,
    AllowWith(Vec<PermissionUpdate>),
    Refuse,
    RefuseWithWords,
}

impl PermissionPrompt {
    pub(super) fn new(request: &CanUseTool) -> Self {
        let mut rows = vec![(ChoiceEffect::AllowOnce, Choice::new("Allow once").letter('y'))];
        let suggestions = match request.suppress_always_allow_rule {
            Some(true) => &[],
            _ => request.permission_suggestions.as_deref().unwrap_or_default(),
        };
        rows.extend(always_choices(suggestions).into_iter().map(|updates| {
            let choice = Choice::new(describe_updates(&updates)).detail(describe_destination(&updates));
            (ChoiceEffect::AllowWith(updates), choice)
        }));
        rows.push((ChoiceEffect::Refuse, Choice::new("Refuse").letter('n')));
        rows.push((
            ChoiceEffect::RefuseWithWords,
            Choice::new("Refuse and say why").with_text("what should happen instead"),
        ));
        let default = if request.default_to_no == Some(true) { rows.len() - 2 } else { 0 };
        let (effects, choices): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let menu =
            Menu::new("Allow this?", choices).select(default).footer("Esc refuses and interrupts the turn");
        Self { menu, effects }
    }

    pub(super) fn answer(&self, outcome: MenuOutcome) -> Option<PromptAnswer> {
        let (index, words) = match outcome {
            MenuOutcome::Taken(index) => (index, None),
            MenuOutcome::TakenWithText(index, words) => (index, Some(words)),
            MenuOutcome::Cancelled => {
                return Some(PromptAnswer::RefuseAndInterrupt(refusal().and_interrupt()));
            }
            MenuOutcome::Open | MenuOutcome::Marked(_) | MenuOutcome::Next | MenuOutcome::Previous => {
                return None;
            }
        };
        let answer = match self.effects.get(index)? {
            ChoiceEffect::AllowOnce => allow(None),
            ChoiceEffect::AllowWith(updates) => allow(Some(updates.clone())),
            ChoiceEffect::Refuse => refusal(),
            ChoiceEffect::RefuseWithWords => match words.filter(|words| !words.trim().is_empty()) {
                Some(words) => PermissionResult::deny(format!("The user refused the call and said: {words}")),
                None => refusal(),
            },
        };
        Some(PromptAnswer::Answer(answer))
    }

    /// Returns whether one of the choices that allow always needs no more than these updates.
    pub(super) fn is_covered_by(&self, updates: &[PermissionUpdate]) -> bool {
        self.effects.iter().any(|effect| match effect {
            ChoiceEffect::AllowWith(needed) => needed.iter().all(|need| {
                updates.iter().any(|update| without_destination(update) == without_destination(need))
            }),
            _ => false,
        })
    }
}

fn allow(updates: Option<Vec<PermissionUpdate>>) -> PermissionResult {
    match updates {
        Some(updates) => PermissionResult::allow().with_updates(updates),
        None => PermissionResult::allow(),
    }
}

/// The sets of updates to choose from: what the engine suggests, and the same for this session only.
fn always_choices(suggestions: &[PermissionUpdate]) -> Vec<Vec<PermissionUpdate>> {
    if suggestions.is_empty() {
        return Vec::new();
    }
    let for_session: Vec<_> =
        suggestions.iter().map(|update| with_destination(update, Destination::Session)).collect();
    let suggested = suggestions.to_vec();
    if for_session == suggested { vec![suggested] } else { vec![for_session, suggested] }
}

fn with_destination(update: &PermissionUpdate, destination: Destination) -> PermissionUpdate {
    let mut update = update.clone();
    match &mut update {
        PermissionUpdate::AddRules { destination: kept, .. }
        | PermissionUpdate::ReplaceRules { destination: kept, .. }
        | PermissionUpdate::RemoveRules { destination: kept, .. }
        | PermissionUpdate::SetMode { destination: kept, .. }
        | PermissionUpdate::AddDirectories { destination: kept, .. }
        | PermissionUpdate::RemoveDirectories { destination: kept, .. } => *kept = destination,
    }
    update
}

fn without_destination(update: &PermissionUpdate) -> PermissionUpdate {
    with_destination(update, Destination::Session)
}

/// The exact rules in words.
fn describe_updates(updates: &[PermissionUpdate]) -> String {
    let parts: Vec<String> = updates.iter().map(describe_update).collect();
    let text = parts.join(", and ");
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn describe_update(update: &PermissionUpdate) -> String {
    let rules = |rules: &[RuleValue]| rules.iter().map(render_rule).collect::<Vec<_>>().join(", ");
    match update {
        PermissionUpdate::AddRules { rules: added, behavior, .. } => {
            let verb = match behavior {
                PermissionBehavior::Allow => "always allow",
                PermissionBehavior::Deny => "always deny",
                PermissionBehavior::Ask => "always ask for",
            };
            format!("{verb} {}", rules(added))
        }
        PermissionUpdate::ReplaceRules { rules: new, .. } => format!("replace the rules by {}", rules(new)),
        PermissionUpdate::RemoveRules { rules: removed, .. } => {
            format!("remove the rules {}", rules(removed))
        }
        PermissionUpdate::SetMode { mode, .. } => format!("switch to the mode {mode}"),
        PermissionUpdate::AddDirectories { directories, .. } => {
            format!("allow work in {}", directories.join(", "))
        }
        PermissionUpdate::RemoveDirectories { directories, .. } => {
            format!("no longer work in {}", directories.join(", "))
        }
    }
}

/// A rule as it is written in the settings.
fn render_rule(rule: &RuleValue) -> String {
    match &rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name.clone(),
    }
}

/// Where the updates are kept.
fn describe_destination(updates: &[PermissionUpdate]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for update in updates {
        let name = match update.destination() {
            Destination::UserSettings => "kept in your settings",
            Destination::ProjectSettings => "kept in the project's settings, .claude/settings.json",
            Destination::LocalSettings => "kept for this project, .claude/settings.local.json",
            Destination::Session | Destination::CliArg => "until this session ends",
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}
