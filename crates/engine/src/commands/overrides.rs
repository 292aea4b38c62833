//! What a command file lends to the turn of the agent that has it read: rules, a model, effort. Whoever runs the turn takes
//! all of it back when that is over, however it ends.

use super::CommandFile;
use super::parse::CommandFrontMatter;
use crate::agent::Agent;
use crate::runtime_settings::SettingsOverride;
use crate::permission::PermissionState;
use crate::settings::Trust;

/// The rules of a command file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandRules {
    /// What it allows.
    pub allow: Vec<String>,
    /// What it denies.
    pub deny: Vec<String>,
}

impl CommandRules {
    /// Puts the rules in force until they are taken back, and gives what is wrong with them. What came with a project
    /// grants nothing unless the project is trusted; what it denies is denied, and if that cannot be read, the error says
    /// so: the file is not to be followed then.
    pub fn apply(self, rights: &PermissionState, file: &CommandFile, trust: Trust) -> Result<Vec<String>, String> {
        let Self { mut allow, deny } = self;
        let mut problems = Vec::new();
        if !allow.is_empty() && !file.may_grant_permissions(trust) {
            let rules = std::mem::take(&mut allow).join(", ");
            problems.push(format!(
                "its allowed-tools do not count, because the project is not trusted: {rules}."
            ));
        }
        if !(allow.is_empty() && deny.is_empty()) {
            let lent = rights.add_turn_rules(&file.path, allow, deny);
            problems.extend(lent.map_err(|why| {
                format!("{}: {why}. Correct the rule in its disallowed-tools first.", file.path.display())
            })?);
        }
        Ok(problems.iter().map(|problem| format!("{}: {problem}", file.path.display())).collect())
    }
}

/// Lends the model and the effort of a file to an agent. Gives why the model cannot be had.
pub(crate) fn override_model(agent: &Agent, file: &CommandFile, head: &CommandFrontMatter) -> Option<String> {
    let model = head.model().map(|name| agent.engine.catalog().resolve_alias(name));
    let fault = model.as_deref().and_then(|model| agent.engine.providers().resolve(model).err());
    let model = model.filter(|_| fault.is_none());
    agent.runtime_settings.push_override(SettingsOverride { model, effort: head.effort() });
    fault.map(|fault| format!("{}: its model is not used: {}", file.path.display(), fault.message))
}
