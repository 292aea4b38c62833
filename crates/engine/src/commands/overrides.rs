//! Overrides of a command file for one turn: rules, model, effort. The turn clears all of them when it ends.

use whimbrel_config::settings::Trust;

use super::CommandFile;
use super::parse::CommandFrontMatter;
use crate::agent::Agent;
use crate::permission::PermissionState;
use crate::runtime_settings::SettingsOverride;

/// Rules of a command file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandRules {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

impl CommandRules {
    /// Adds the rules to the turn and returns warnings. Allow rules of a project's file need trust in the project; deny
    /// rules always apply, and an unreadable one is an error: the file must not be used then.
    pub fn apply(
        self,
        permissions: &PermissionState,
        file: &CommandFile,
        trust: Trust,
    ) -> Result<Vec<String>, String> {
        let Self { mut allow, deny } = self;
        let mut problems = Vec::new();
        if !allow.is_empty() && !file.may_grant_permissions(trust) {
            let rules = std::mem::take(&mut allow).join(", ");
            problems.push(format!("allowed-tools is ignored, because the project is not trusted: {rules}."));
        }
        if !(allow.is_empty() && deny.is_empty()) {
            let added = permissions.add_turn_rules(&file.path, allow, deny);
            problems.extend(added.map_err(|why| {
                format!("{}: {why}. Fix the rule in disallowed-tools first.", file.path.display())
            })?);
        }
        Ok(problems.iter().map(|problem| format!("{}: {problem}", file.path.display())).collect())
    }
}

/// Overrides model and effort for the turn. Returns a warning if the model is not available.
pub(crate) fn override_model(agent: &Agent, file: &CommandFile, head: &CommandFrontMatter) -> Option<String> {
    let model = head.model().map(|name| agent.engine.catalog().resolve_alias(name));
    let error = model.as_deref().and_then(|model| agent.engine.providers().resolve(model).err());
    let model = model.filter(|_| error.is_none());
    agent.runtime_settings.push_override(SettingsOverride { model, effort: head.effort() });
    error.map(|error| format!("{}: its model is ignored: {}", file.path.display(), error.message))
}
