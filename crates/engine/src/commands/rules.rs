//! Permission rules of a command file, which apply to one turn.

use whimbrel_config::settings::Trust;
use whimbrel_tools::permission::PermissionState;

use super::CommandFile;

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
        let mut warnings = Vec::new();
        if !allow.is_empty() && !file.may_grant_permissions(trust) {
            let rules = std::mem::take(&mut allow).join(", ");
            warnings.push(format!("allowed-tools is ignored, because the project is not trusted: {rules}."));
        }
        if !(allow.is_empty() && deny.is_empty()) {
            let added = permissions.add_turn_rules(&file.path, allow, deny);
            warnings.extend(added.map_err(|reason| {
                format!("{}: {reason}. Fix the rule in disallowed-tools first.", file.path.display())
            })?);
        }
        Ok(warnings.iter().map(|warning| format!("{}: {warning}", file.path.display())).collect())
    }
}
