//! Loads rules and directories of settings into the permission set.

use whimbrel_config::settings::{self, AdditionalDirectory, EffectiveSettings, RuleSetting, Tolerance};
use whimbrel_os::links as paths;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{PermissionSet, RuleLayer, RuleSource};
use whimbrel_wire::permission::PermissionBehavior;

use crate::workspace::Workspace;

/// Replaces the rules and directories of some setting sources. Returns warnings about rules that do not do what they
/// seem to; the error is about an unreadable deny or ask rule.
pub fn replace_sources(
    permissions: &mut PermissionSet,
    effective: &EffectiveSettings,
    sources: &[settings::LayerSource],
    workspace: &Workspace,
    tolerance: Tolerance,
) -> Result<Vec<String>, String> {
    for source in sources.iter().copied().map(policy_source) {
        for behavior in PermissionBehavior::ALL {
            permissions.rules.remove_rules(source, *behavior, |_| true);
        }
        permissions.dirs.extra.retain(|(_, by)| *by != source);
    }
    let mut warnings = Vec::new();
    for rule in effective.rules.iter().filter(|rule| sources.contains(&rule.source)) {
        match add_rule(permissions, rule) {
            Ok(rule_warnings) => warnings.extend(rule_warnings),
            // Rules of the host and of administrators are never dropped.
            Err(error) if tolerance == Tolerance::Tolerant && rule.source < settings::LayerSource::Flag => {
                warnings.push(error);
            }
            Err(error) => return Err(error),
        }
    }
    for AdditionalDirectory { path, source: by } in &effective.directories {
        if sources.contains(by) {
            permissions.dirs.add(
                &paths::resolve_links(&workspace.resolve(path)),
                policy_source(*by),
                &RealFs,
            );
        }
    }
    Ok(warnings)
}

/// Each rule is its own layer, so that messages can name its line.
fn add_rule(permissions: &mut PermissionSet, rule: &RuleSetting) -> Result<Vec<String>, String> {
    let texts = |behavior| if rule.behavior == behavior { vec![rule.text.clone()] } else { Vec::new() };
    let loaded = permissions.rules.add_layer(
        &RuleLayer {
            file: rule.file.clone(),
            allow: texts(PermissionBehavior::Allow),
            ask: texts(PermissionBehavior::Ask),
            deny: texts(PermissionBehavior::Deny),
            ..RuleLayer::new(policy_source(rule.source), &rule.base)
        },
        &RealFs,
    );
    let location = rule_location(rule);
    match loaded.errors.first() {
        Some(error) => Err(format!(
            "{location}: {error}. Correct the rule: without it, something that should be denied could be allowed."
        )),
        None => Ok(loaded.warnings.iter().map(|warning| format!("{location}: {warning}.")).collect()),
    }
}

/// File and line of a rule.
pub fn rule_location(rule: &RuleSetting) -> String {
    match (&rule.file, rule.line) {
        (Some(file), Some(line)) => format!("{}, line {line}", file.display()),
        (Some(file), None) => file.display().to_string(),
        (None, _) => rule.source.name().into(),
    }
}

pub fn policy_source(source: settings::LayerSource) -> RuleSource {
    match source {
        settings::LayerSource::User => RuleSource::UserSettings,
        settings::LayerSource::Project => RuleSource::ProjectSettings,
        settings::LayerSource::Local => RuleSource::LocalSettings,
        settings::LayerSource::Flag => RuleSource::FlagSettings,
        settings::LayerSource::Managed => RuleSource::Managed,
    }
}
