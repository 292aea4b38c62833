//! Lists the permission rules in force.

use serde_json::{Value, json};
use whimbrel_policy::{RuleSource, SourcedRule};
use whimbrel_wire::control::{ControlResponse, PermissionRules, PermissionRulesState};
use whimbrel_wire::permission::PermissionBehavior;

use crate::event_loop::Session;

/// Lists rules and directories with their sources.
pub(super) fn list_rules(session: &Session, id: String) -> ControlResponse {
    let now = session.setup.permission_state.snapshot();
    let behaviors = [PermissionBehavior::Allow, PermissionBehavior::Deny, PermissionBehavior::Ask];
    let rules = behaviors.into_iter().flat_map(|behavior| now.rules.with_behavior(behavior));
    let directories = now.dirs.extra.iter();
    let state = PermissionRulesState {
        rules: rules.map(|rule| rule_json(&rule.sourced)).collect(),
        workspace_directories: directories
            .map(|(directory, source)| json!({"path": directory.lexical, "source": source.as_str()}))
            .collect(),
        original_cwd: session.setup.workspace.root().display().to_string(),
        managed_only: now.rules.is_managed_only(),
        ..PermissionRulesState::default()
    };
    ControlResponse::success(id, &PermissionRules { state })
}

fn rule_json(rule: &SourcedRule) -> Value {
    json!({
        "behavior": rule.behavior.to_string(),
        "source": rule.source.as_str(),
        "rule": rule.rule.to_string(),
        "editability": editability(rule.source),
    })
}

/// Returns whether a rule can be edited, by its source.
fn editability(source: RuleSource) -> &'static str {
    match source {
        RuleSource::UserSettings | RuleSource::ProjectSettings | RuleSource::LocalSettings => "persistent",
        RuleSource::CliArg | RuleSource::Session => "session",
        RuleSource::Managed | RuleSource::FlagSettings | RuleSource::Skill => "readonly",
    }
}
