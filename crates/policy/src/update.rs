//! Permission updates from the host, applied in memory. Settings files are written elsewhere.

use std::path::Path;

use thiserror::Error;
use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};

use crate::fs::FsView;
use crate::mode::is_loosening;
use crate::rules::rule::{Rule, RuleError};
use crate::rules::rule_set::{RuleSet, RuleSource, RuleWarning};
use crate::work_dirs::WorkDirs;

/// Rules, mode and directories of a session: the state that updates change.
#[derive(Debug, Clone)]
pub struct PermissionSet {
    pub rules: RuleSet,
    pub mode: PermissionMode,
    pub dirs: WorkDirs,
}

/// Context of an update: what it may change.
#[derive(Debug, Clone, Copy)]
pub struct UpdateContext<'a> {
    /// True if the host has made bypass mode available.
    pub bypass_available: bool,
    /// Disk, for resolving directories.
    pub fs: &'a dyn FsView,
}

/// An entry of an update that was skipped, or that does less than it seems to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpdateError {
    /// The rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rule was added, with a warning.
    #[error(transparent)]
    Warning(RuleWarning),
    /// Only managed rules apply.
    #[error("only managed rules apply here, so {0} was not changed; ask the administrator")]
    ManagedOnly(Destination),
    /// The host has not made bypass mode available.
    #[error(
        "the mode bypassPermissions is not available in this session; make it available when the session starts"
    )]
    BypassUnavailable,
    #[error("directory `{0}` is not an absolute path; write the full path")]
    RelativeDirectory(String),
}

/// Applies an update. Invalid entries are skipped and returned as errors; valid ones are applied.
pub fn apply_update(
    permissions: &mut PermissionSet,
    update: &PermissionUpdate,
    context: &UpdateContext<'_>,
) -> Vec<UpdateError> {
    let destination = update.destination();
    if permissions.rules.is_managed_only() && !is_allowed_when_managed_only(permissions, update) {
        return vec![UpdateError::ManagedOnly(destination)];
    }
    let source = RuleSource::from_destination(destination);
    match update {
        PermissionUpdate::AddRules { rules, behavior, .. } => {
            apply_rules(rules, |rule| permissions.rules.add_rule(rule, *behavior, source, context.fs))
        }
        PermissionUpdate::ReplaceRules { rules, behavior, .. } => {
            permissions.rules.remove_rules(source, *behavior, |_| true);
            apply_rules(rules, |rule| permissions.rules.add_rule(rule, *behavior, source, context.fs))
        }
        PermissionUpdate::RemoveRules { rules, behavior, .. } => apply_rules(rules, |removed| {
            permissions.rules.remove_rules(source, *behavior, |rule| rule.is_equivalent(&removed, *behavior));
            Ok(None)
        }),
        PermissionUpdate::SetMode { mode: PermissionMode::BypassPermissions, .. }
            if !context.bypass_available =>
        {
            vec![UpdateError::BypassUnavailable]
        }
        PermissionUpdate::SetMode { mode, .. } => {
            permissions.mode = *mode;
            Vec::new()
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            apply_directories(directories, |path| permissions.dirs.add(path, source, context.fs))
        }
        PermissionUpdate::RemoveDirectories { directories, .. } => {
            apply_directories(directories, |path| permissions.dirs.remove(path, source, context.fs))
        }
    }
}

/// Returns true if an update may be applied although only managed rules apply: in memory, and only if it allows
/// nothing more.
fn is_allowed_when_managed_only(permissions: &PermissionSet, update: &PermissionUpdate) -> bool {
    let in_memory = matches!(update.destination(), Destination::Session | Destination::CliArg);
    in_memory
        && match update {
            PermissionUpdate::AddRules { behavior, .. } => *behavior != PermissionBehavior::Allow,
            PermissionUpdate::RemoveRules { behavior, .. } => *behavior == PermissionBehavior::Allow,
            // The replaced rules may include deny rules.
            PermissionUpdate::ReplaceRules { .. } => false,
            PermissionUpdate::SetMode { mode, .. } => !is_loosening(permissions.mode, *mode),
            PermissionUpdate::AddDirectories { .. } => false,
            PermissionUpdate::RemoveDirectories { .. } => true,
        }
}

fn apply_rules(
    rules: &[RuleValue],
    mut apply: impl FnMut(Rule) -> Result<Option<RuleWarning>, RuleError>,
) -> Vec<UpdateError> {
    let mut errors = Vec::new();
    for value in rules {
        match Rule::from_value(value).and_then(&mut apply) {
            Ok(warning) => errors.extend(warning.map(UpdateError::Warning)),
            Err(error) => errors.push(error.into()),
        }
    }
    errors
}

fn apply_directories(directories: &[String], mut apply: impl FnMut(&Path)) -> Vec<UpdateError> {
    let mut errors = Vec::new();
    for directory in directories {
        let path = Path::new(directory);
        if path.is_absolute() {
            apply(path);
        } else {
            errors.push(UpdateError::RelativeDirectory(directory.clone()));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FakeFs;
    use serde_json::{Value, json};

    fn permissions() -> PermissionSet {
        PermissionSet {
            rules: RuleSet::new(Path::new("/home/me"), Path::new("/w")),
            mode: PermissionMode::Default,
            dirs: WorkDirs::new(Path::new("/w"), &FakeFs::default()),
        }
    }

    fn apply_json(permissions: &mut PermissionSet, update: Value) -> Vec<UpdateError> {
        let context = UpdateContext { bypass_available: false, fs: &FakeFs::default() };
        apply_update(permissions, &serde_json::from_value(update).unwrap(), &context)
    }

    fn rules(permissions: &PermissionSet) -> Vec<String> {
        permissions
            .rules
            .all()
            .map(|rule| format!("{} {} {}", rule.behavior, rule.rule, rule.source))
            .collect()
    }

    #[test]
    fn rules_are_added_once_removed_and_replaced() {
        let mut state = permissions();
        let add = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "m1 *"}, {"toolName": "Bash", "ruleContent": "m1 *"}, {"toolName": "Read"}]});
        assert_eq!(apply_json(&mut state, add.clone()), []);
        assert_eq!(apply_json(&mut state, add), []);
        assert_eq!(rules(&state), ["allow Bash(m1 *) session", "allow Read session"]);
        let remove = json!({"type": "removeRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Read", "ruleContent": "*"}]});
        assert_eq!(apply_json(&mut state, remove), []);
        assert_eq!(rules(&state), ["allow Bash(m1 *) session"]);
        let other_words = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "m1:*"}]});
        assert_eq!(apply_json(&mut state, other_words), []);
        assert_eq!(rules(&state), ["allow Bash(m1 *) session"]);
        let remove = json!({"type": "removeRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "m1:*"}]});
        assert_eq!(apply_json(&mut state, remove), []);
        assert_eq!(rules(&state), Vec::<String>::new());
        let replace = json!({"type": "replaceRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Edit"}]});
        assert_eq!(apply_json(&mut state, replace), []);
        assert_eq!(rules(&state), ["allow Edit session"]);
    }

    #[test]
    fn update_changes_only_its_own_list() {
        let mut state = permissions();
        for (behavior, destination) in [("deny", "session"), ("allow", "localSettings"), ("allow", "session")]
        {
            let add = json!({"type": "addRules", "behavior": behavior, "destination": destination,
                "rules": [{"toolName": "Bash", "ruleContent": "x"}]});
            apply_json(&mut state, add);
        }
        let replace =
            json!({"type": "replaceRules", "behavior": "allow", "destination": "session", "rules": []});
        apply_json(&mut state, replace);
        assert_eq!(rules(&state), ["deny Bash(x) session", "allow Bash(x) localSettings"]);
    }

    #[test]
    fn invalid_entry_is_skipped() {
        let mut state = permissions();
        let add = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Ba*"}, {"toolName": ""}, {"toolName": "Bash", "ruleContent": "x"}]});
        assert_eq!(apply_json(&mut state, add).len(), 2);
        assert_eq!(rules(&state), ["allow Bash(x) session"]);
    }

    #[test]
    fn modes_and_directories() {
        let mut state = permissions();
        let bypass = json!({"type": "setMode", "mode": "bypassPermissions", "destination": "session"});
        assert_eq!(apply_json(&mut state, bypass), [UpdateError::BypassUnavailable]);
        assert_eq!(state.mode, PermissionMode::Default);
        apply_json(&mut state, json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}));
        assert_eq!(state.mode, PermissionMode::AcceptEdits);
        let add = json!({"type": "addDirectories", "directories": ["/x", "y"], "destination": "session"});
        assert_eq!(apply_json(&mut state, add), [UpdateError::RelativeDirectory("y".into())]);
        assert_eq!(state.dirs.extra.len(), 1);
        apply_json(
            &mut state,
            json!({"type": "removeDirectories", "directories": ["/x"], "destination": "session"}),
        );
        assert!(state.dirs.extra.is_empty());
    }

    #[test]
    fn managed_only_rejects_updates_of_files() {
        let mut state = permissions();
        state.rules.limit_to_managed();
        let add = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash"}]});
        assert_eq!(apply_json(&mut state, add), [UpdateError::ManagedOnly(Destination::LocalSettings)]);
        assert_eq!(state.rules.with_behavior(PermissionBehavior::Allow).count(), 0);
    }

    #[test]
    fn managed_only_accepts_only_stricter_updates() {
        let rule = json!([{"toolName": "Bash", "ruleContent": "x"}]);
        let rules = |kind: &str, behavior: &str| json!({"type": kind, "behavior": behavior, "rules": rule});
        let mode = |mode: &str| json!({"type": "setMode", "mode": mode});
        let directories = |kind: &str| json!({"type": kind, "directories": ["/x"]});
        let rows = [
            ("an added allow rule", rules("addRules", "allow"), false),
            ("an added deny rule", rules("addRules", "deny"), true),
            ("an added ask rule", rules("addRules", "ask"), true),
            ("a removed allow rule", rules("removeRules", "allow"), true),
            ("a removed deny rule", rules("removeRules", "deny"), false),
            ("a removed ask rule", rules("removeRules", "ask"), false),
            ("replaced allow rules", rules("replaceRules", "allow"), false),
            ("replaced deny rules", rules("replaceRules", "deny"), false),
            ("a more permissive mode", mode("acceptEdits"), false),
            ("the most permissive mode", mode("bypassPermissions"), false),
            ("a stricter mode", mode("plan"), true),
            ("the default mode", mode("default"), true),
            ("an added directory", directories("addDirectories"), false),
            ("a removed directory", directories("removeDirectories"), true),
        ];
        for (name, update, expected) in rows {
            for destination in ["session", "cliArg"] {
                let mut state = permissions();
                state.rules.limit_to_managed();
                let mut update = update.clone();
                update["destination"] = destination.into();
                let errors = apply_json(&mut state, update);
                assert_eq!(errors.is_empty(), expected, "{name}: {errors:?}");
                let allowed = state.rules.with_behavior(PermissionBehavior::Allow).count();
                assert_eq!((allowed, state.dirs.extra.len()), (0, 0), "{name}");
            }
        }
        let mut state = permissions();
        state.rules.limit_to_managed();
        apply_json(&mut state, rules("addRules", "deny"));
        assert_eq!(
            state.rules.with_behavior(PermissionBehavior::Deny).count(),
            1,
            "the deny rule stays in force"
        );
    }
}
