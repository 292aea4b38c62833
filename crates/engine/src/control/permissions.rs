//! Which rules are in force, for a host that shows them to its person.

use serde_json::{Value, json};
use whimbrel_policy::{RuleRef, Source};
use whimbrel_wire::control::{ControlResponse, PermissionRules, PermissionRulesState};
use whimbrel_wire::permission::PermissionBehavior;

use crate::serve::Session;

/// Lists the rules and directories, each with where it comes from.
pub(super) fn list(session: &Session, id: String) -> ControlResponse {
    let now = session.setup.rights.now();
    let behaviors = [PermissionBehavior::Allow, PermissionBehavior::Deny, PermissionBehavior::Ask];
    let rules = behaviors.into_iter().flat_map(|behavior| now.rules.saying(behavior));
    let directories = now.dirs.extra.iter();
    let state = PermissionRulesState {
        rules: rules.map(|rule| entry(&rule.reference)).collect(),
        workspace_directories: directories
            .map(|(directory, source)| json!({"path": directory.lexical, "source": source.as_str()}))
            .collect(),
        original_cwd: session.setup.workspace.root().display().to_string(),
        managed_only: now.rules.is_managed_only(),
        ..PermissionRulesState::default()
    };
    ControlResponse::success(id, &PermissionRules { state })
}

fn entry(rule: &RuleRef) -> Value {
    json!({
        "behavior": rule.behavior.to_string(),
        "source": rule.source.as_str(),
        "rule": rule.rule.to_string(),
        "editability": editability(rule.source),
    })
}

/// Where a rule lives, as far as that says whether it can be changed.
fn editability(source: Source) -> &'static str {
    match source {
        Source::UserSettings | Source::ProjectSettings | Source::LocalSettings => "persistent",
        Source::CliArg | Source::Session => "session",
        Source::Managed | Source::FlagSettings | Source::Skill => "readonly",
    }
}
