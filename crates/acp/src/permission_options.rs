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

/// The choices of a request: once, always by each suggestion, no.
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
    let mut choices = vec![once];
    if request.suppress_always_allow_rule != Some(true) {
        let suggestions = request.permission_suggestions.iter().flatten().enumerate();
        choices.extend(suggestions.filter_map(|(index, update)| {
            Some(Choice {
                id: format!("allow_always_{index}"),
                name: suggestion_name(update)?,
                kind: PermissionOptionKind::AllowAlways,
                meaning: Meaning::Allow(vec![update.clone()]),
            })
        }));
    }
    choices.push(reject);
    choices
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

/// Says what a suggestion allows and for how long; `None` if it cannot be said in a line.
fn suggestion_name(update: &PermissionUpdate) -> Option<String> {
    let scope = scope_name(update.destination());
    match update {
        PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, .. } => {
            let names: Vec<String> = rules.iter().map(rule_name).collect();
            (!names.is_empty()).then(|| format!("Always allow {} {scope}", names.join(" and ")))
        }
        PermissionUpdate::SetMode { mode: PermissionMode::AcceptEdits, .. } => {
            Some(format!("Accept all edits in the working directories {scope}"))
        }
        PermissionUpdate::AddDirectories { directories, .. } => (!directories.is_empty())
            .then(|| format!("Allow access to {} {scope}", directories.join(" and "))),
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

    #[test]
    fn suggestions_say_what_they_allow_and_for_how_long() {
        let set_mode = |mode| PermissionUpdate::SetMode { mode, destination: Destination::Session };
        let directories = PermissionUpdate::AddDirectories {
            directories: vec!["/x".into()],
            destination: Destination::Session,
        };
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
            (directories, Some("Allow access to /x for this session")),
            (
                set_mode(PermissionMode::AcceptEdits),
                Some("Accept all edits in the working directories for this session"),
            ),
            (set_mode(PermissionMode::BypassPermissions), None),
            (deny, None),
        ];
        for (update, expected) in rows {
            assert_eq!(suggestion_name(&update).as_deref(), expected, "{update:?}");
        }
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
        let always = find_choice(&choices, "allow_always_0").unwrap();
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
