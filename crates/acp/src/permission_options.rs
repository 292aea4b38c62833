//! The choices of a permission request, and what a choice means. Pure.

use agent_client_protocol::v1::schema::{PermissionOption, PermissionOptionKind};
use whimbrel::PermissionMode;
use whimbrel::PermissionResult;
use whimbrel::wire::control::CanUseTool;
use whimbrel::wire::permission::{Destination, PermissionBehavior, PermissionUpdate, RuleValue};
use whimbrel::wire::tool_names::EXIT_PLAN_MODE;

use crate::translate::call::provisional_title;

/// What the model is told when the user rejects a call.
const REJECTED: &str = "The user rejected this call. Do something else, or ask the user what to do.";
const KEEP_PLANNING: &str = "The user wants to keep planning. Stay in plan mode and refine the plan.";

/// A choice with its meaning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    id: String,
    name: String,
    kind: PermissionOptionKind,
    meaning: Meaning,
}

#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    Allow(Vec<PermissionUpdate>),
    Reject(&'static str),
}

impl Choice {
    /// The choice as the editor gets it.
    pub(crate) fn to_option(&self) -> PermissionOption {
        PermissionOption::new(self.id.clone(), self.name.clone(), self.kind)
    }

    /// The decision that the choice stands for.
    pub(crate) fn to_result(&self) -> PermissionResult {
        match &self.meaning {
            Meaning::Allow(updates) => allow(updates.clone()),
            Meaning::Reject(message) => PermissionResult::deny(*message),
        }
    }

    /// The changes of the rules that settle other requests, too.
    pub(crate) fn updates(&self) -> &[PermissionUpdate] {
        match &self.meaning {
            Meaning::Allow(updates) => updates,
            Meaning::Reject(_) => &[],
        }
    }
}

/// Allows a call, with changes of the rules.
pub(crate) fn allow(updates: Vec<PermissionUpdate>) -> PermissionResult {
    match updates.is_empty() {
        true => PermissionResult::allow(),
        false => PermissionResult::allow().with_updates(updates),
    }
}

/// Finds the choice with an id.
pub(crate) fn find_choice<'a>(choices: &'a [Choice], id: &str) -> Option<&'a Choice> {
    choices.iter().find(|choice| choice.id == id)
}

/// The choices of a request: once, always by the engine's suggestions, no. A request that is dangerous begins with no.
pub(crate) fn choices(request: &CanUseTool) -> Vec<Choice> {
    if request.tool_name == EXIT_PLAN_MODE {
        return plan_choices();
    }
    let once = Choice {
        id: "allow".into(),
        name: "Allow".into(),
        kind: PermissionOptionKind::AllowOnce,
        meaning: Meaning::Allow(Vec::new()),
    };
    let reject = Choice {
        id: "reject".into(),
        name: "Reject".into(),
        kind: PermissionOptionKind::RejectOnce,
        meaning: Meaning::Reject(REJECTED),
    };
    let mut choices: Vec<Choice> = std::iter::once(once).chain(always_choice(request)).collect();
    match request.default_to_no {
        Some(true) => choices.insert(0, reject),
        Some(false) | None => choices.push(reject),
    }
    choices
}

/// The choice that prevents further questions. It takes all suggestions, because only together they allow the call.
fn always_choice(request: &CanUseTool) -> Option<Choice> {
    let suggestions = always_updates(request);
    Some(Choice {
        id: "allow_always".into(),
        name: suggestions_name(suggestions)?,
        kind: PermissionOptionKind::AllowAlways,
        meaning: Meaning::Allow(suggestions.to_vec()),
    })
}

/// The updates that together allow the call without asking; none if the engine suggests none, or "always" may not be
/// offered.
pub(crate) fn always_updates(request: &CanUseTool) -> &[PermissionUpdate] {
    match request.suppress_always_allow_rule {
        Some(true) => &[],
        Some(false) | None => request.permission_suggestions.as_deref().unwrap_or_default(),
    }
}

/// Whether an answer allows a call that needs these updates, too. A call that nothing would allow is never covered.
pub(crate) fn is_covered(needed: &[PermissionUpdate], answered: &[PermissionUpdate]) -> bool {
    !needed.is_empty() && needed.iter().all(|update| answered.contains(update))
}

fn plan_choices() -> Vec<Choice> {
    let mode =
        |mode| Meaning::Allow(vec![PermissionUpdate::SetMode { mode, destination: Destination::Session }]);
    let choice =
        |id: &str, name: &str, kind, meaning| Choice { id: id.into(), name: name.into(), kind, meaning };
    vec![
        choice(
            "accept_edits",
            "Yes, and accept edits without asking",
            PermissionOptionKind::AllowAlways,
            mode(PermissionMode::AcceptEdits),
        ),
        choice(
            "default",
            "Yes, and ask before each edit",
            PermissionOptionKind::AllowOnce,
            mode(PermissionMode::Default),
        ),
        choice("plan", "No, keep planning", PermissionOptionKind::RejectOnce, Meaning::Reject(KEEP_PLANNING)),
    ]
}

/// Says what suggestions allow together and for how long; `None` if one of them cannot be said in a line.
fn suggestions_name(updates: &[PermissionUpdate]) -> Option<String> {
    let mut parts: Vec<(String, &'static str)> = Vec::new();
    for update in updates {
        let (effect, scope) = (effect_name(update)?, scope_name(update.destination()));
        match parts.last_mut() {
            Some((effects, last)) if *last == scope => *effects = format!("{effects} and {effect}"),
            _ => parts.push((effect, scope)),
        }
    }
    let parts: Vec<String> = parts.iter().map(|(effects, scope)| format!("{effects} {scope}")).collect();
    let text = parts.join(", and ");
    let first = text.chars().next()?;
    Some(first.to_uppercase().chain(text.chars().skip(1)).collect())
}

/// Says what one suggestion allows.
fn effect_name(update: &PermissionUpdate) -> Option<String> {
    match update {
        PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, .. } => {
            let names: Vec<String> = rules.iter().map(rule_name).collect();
            (!names.is_empty()).then(|| format!("always allow {}", names.join(" and ")))
        }
        PermissionUpdate::SetMode { mode: PermissionMode::AcceptEdits, .. } => {
            Some("accept all edits in the working directories".into())
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            (!directories.is_empty()).then(|| format!("allow access to {}", directories.join(" and ")))
        }
        _ => None,
    }
}

fn rule_name(rule: &RuleValue) -> String {
    let Some(content) = rule.rule_content.as_deref().filter(|content| !content.is_empty()) else {
        return match rule.tool_name.as_str() {
            "Bash" => "all commands".into(),
            name => format!("all calls of {}", provisional_title(name)),
        };
    };
    match rule.tool_name.as_str() {
        "Bash" => match content.strip_suffix(":*").or(content.strip_suffix(" *")) {
            Some(prefix) => format!("commands that begin with `{prefix}`"),
            None => format!("`{content}`"),
        },
        "Read" => format!("reading {content}"),
        "Edit" | "Write" | "NotebookEdit" => format!("edits in {content}"),
        "WebFetch" => format!("fetching from {}", content.strip_prefix("domain:").unwrap_or(content)),
        name => format!("{name}({content})"),
    }
}

fn scope_name(destination: Destination) -> &'static str {
    match destination {
        Destination::Session | Destination::CliArg => "for this session",
        Destination::LocalSettings => "in this project, for me",
        Destination::ProjectSettings => "in this project, for all",
        Destination::UserSettings => "in all my projects",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_rules(tool: &str, content: Option<&str>, destination: Destination) -> PermissionUpdate {
        let rule = RuleValue { tool_name: tool.into(), rule_content: content.map(Into::into) };
        PermissionUpdate::AddRules { rules: vec![rule], behavior: PermissionBehavior::Allow, destination }
    }

    fn add_directory(directory: &str) -> PermissionUpdate {
        PermissionUpdate::AddDirectories {
            directories: vec![directory.into()],
            destination: Destination::Session,
        }
    }

    fn set_mode(mode: PermissionMode) -> PermissionUpdate {
        PermissionUpdate::SetMode { mode, destination: Destination::Session }
    }

    #[test]
    fn suggestions_say_what_they_allow_and_for_how_long() {
        let deny = PermissionUpdate::AddRules {
            rules: vec![],
            behavior: PermissionBehavior::Deny,
            destination: Destination::Session,
        };
        let rows = [
            (
                add_rules("Bash", Some("git init:*"), Destination::LocalSettings),
                Some("Always allow commands that begin with `git init` in this project, for me"),
            ),
            (
                add_rules("Bash", Some("npm run *"), Destination::Session),
                Some("Always allow commands that begin with `npm run` for this session"),
            ),
            (
                add_rules("Bash", Some("make"), Destination::Session),
                Some("Always allow `make` for this session"),
            ),
            (
                add_rules("Bash", None, Destination::UserSettings),
                Some("Always allow all commands in all my projects"),
            ),
            (
                add_rules("Edit", Some("src/**"), Destination::Session),
                Some("Always allow edits in src/** for this session"),
            ),
            (
                add_rules("mcp__a__b", None, Destination::Session),
                Some("Always allow all calls of a: b for this session"),
            ),
            (add_directory("/x"), Some("Allow access to /x for this session")),
            (
                set_mode(PermissionMode::AcceptEdits),
                Some("Accept all edits in the working directories for this session"),
            ),
            (set_mode(PermissionMode::BypassPermissions), None),
            (deny, None),
        ];
        for (update, expected) in rows {
            assert_eq!(suggestions_name(std::slice::from_ref(&update)).as_deref(), expected, "{update:?}");
        }
    }

    #[test]
    fn suggestions_that_belong_together_are_one_choice() {
        let edit_outside = vec![set_mode(PermissionMode::AcceptEdits), add_directory("/x")];
        let command = add_rules("Bash", Some("make:*"), Destination::LocalSettings);
        let rows = [
            (
                edit_outside.clone(),
                Some("Accept all edits in the working directories and allow access to /x for this session"),
            ),
            (
                vec![command, add_directory("/x")],
                Some(
                    "Always allow commands that begin with `make` in this project, for me, \
                     and allow access to /x for this session",
                ),
            ),
            (vec![add_directory("/x"), set_mode(PermissionMode::BypassPermissions)], None),
            (vec![], None),
        ];
        for (updates, expected) in rows {
            assert_eq!(suggestions_name(&updates).as_deref(), expected, "{updates:?}");
        }
        let request = CanUseTool {
            tool_name: "Write".into(),
            permission_suggestions: Some(edit_outside.clone()),
            ..CanUseTool::default()
        };
        let choices = choices(&request);
        assert_eq!(choices.len(), 3);
        assert_eq!(find_choice(&choices, "allow_always").unwrap().to_result(), allow(edit_outside));
    }

    #[test]
    fn answer_covers_only_a_call_that_needs_no_more() {
        let (edits, directory) = (set_mode(PermissionMode::AcceptEdits), add_directory("/x"));
        let both = [edits.clone(), directory.clone()];
        let rows: [(&str, &[PermissionUpdate], &[PermissionUpdate], bool); 5] = [
            ("the same", &both, &both, true),
            ("more than needed", &both[..1], &both, true),
            ("a part of it", &both, &both[..1], false),
            ("another", &both[1..], &both[..1], false),
            ("a call that nothing allows", &[], &both, false),
        ];
        for (name, needed, answered, expected) in rows {
            assert_eq!(is_covered(needed, answered), expected, "{name}");
        }
        let suppressed = CanUseTool {
            permission_suggestions: Some(both.to_vec()),
            suppress_always_allow_rule: Some(true),
            ..CanUseTool::default()
        };
        assert_eq!(always_updates(&suppressed), [], "a call that may not be allowed for good");
    }

    #[test]
    fn dangerous_call_begins_with_no() {
        let request = CanUseTool { default_to_no: Some(true), ..CanUseTool::default() };
        let kinds: Vec<_> = choices(&request).iter().map(|choice| choice.kind).collect();
        assert_eq!(kinds, [PermissionOptionKind::RejectOnce, PermissionOptionKind::AllowOnce]);
    }

    #[test]
    fn choices_begin_with_once_and_end_with_no() {
        let update = add_rules("Bash", Some("make"), Destination::Session);
        let request = CanUseTool {
            tool_name: "Bash".into(),
            permission_suggestions: Some(vec![update.clone()]),
            ..CanUseTool::default()
        };
        let choices = choices(&request);
        let kinds: Vec<_> = choices.iter().map(|choice| choice.kind).collect();
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
        assert_eq!(kinds, [AllowOnce, AllowAlways, RejectOnce]);
        let always = find_choice(&choices, "allow_always").unwrap();
        assert_eq!(always.to_result(), allow(vec![update]));
        assert_eq!(find_choice(&choices, "reject").unwrap().to_result(), PermissionResult::deny(REJECTED));
        assert_eq!(find_choice(&choices, "other"), None);
        let suppressed = CanUseTool { suppress_always_allow_rule: Some(true), ..request };
        assert_eq!(super::choices(&suppressed).len(), 2);
    }

    #[test]
    fn plan_can_be_accepted_in_two_ways_or_refined() {
        let request = CanUseTool { tool_name: EXIT_PLAN_MODE.into(), ..CanUseTool::default() };
        let choices = choices(&request);
        let modes: Vec<_> = choices.iter().map(Choice::updates).map(<[_]>::len).collect();
        assert_eq!(modes, [1, 1, 0]);
        assert_eq!(find_choice(&choices, "plan").unwrap().to_result(), PermissionResult::deny(KEEP_PLANNING));
    }
}
