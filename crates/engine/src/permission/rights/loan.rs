//! Rules for one turn.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Layer, Source};
use whimbrel_wire::permission::PermissionBehavior;

use super::Rights;

impl Rights {
    /// Puts rules that stand in a file in force, until [`Rights::take_back`]. Gives what is wrong with them.
    pub fn lend(&self, file: &Path, allow: Vec<String>, deny: Vec<String>) -> Vec<String> {
        let mut layer = Layer::new(Source::Skill, self.workspace.root());
        layer.file = Some(file.to_owned());
        (layer.allow, layer.deny) = (allow, deny);
        let Ok(loaded) =
            self.revise(|standing| Ok::<_, Infallible>(standing.rules.add_layer(&layer, &RealFs)));
        let warnings = loaded.warnings.iter().map(ToString::to_string);
        warnings.chain(loaded.errors.iter().map(ToString::to_string)).collect()
    }

    /// Takes back all rules that were lent.
    pub fn take_back(&self) {
        self.standing.send_modify(|standing| {
            let rules = &mut Arc::make_mut(standing).rules;
            for behavior in [PermissionBehavior::Allow, PermissionBehavior::Deny] {
                rules.remove_rules(Source::Skill, behavior, |_| true);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_policy::{Decision, ToolFacts};

    use super::super::{Bypass, Grants};
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn lent_rules_count_until_they_are_taken_back_and_never_against_a_deny() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), Default::default()));
        let grants = Grants { deny: vec!["Bash(touch b)".into()], ..Grants::default() };
        let rights = Rights::grant(workspace, crate::settings::Settings::none(), grants, Bypass::Unavailable)
            .unwrap()
            .rights;
        let allowed = |command: &str| {
            let input = json!({"command": command});
            matches!(
                rights.judge("Bash", &ToolFacts::named("Bash", &["command"]), &input, None).decision,
                Decision::Allow(_)
            )
        };
        assert!(!allowed("touch a"));
        assert!(allowed("ls"));
        let allow = vec!["Bash(touch *)".into(), "Ba*".into()];
        let problems = rights.lend(Path::new("/w/x.md"), allow, vec!["Bash(ls *)".into()]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(allowed("touch a") && !allowed("touch b") && !allowed("rm a") && !allowed("ls"));
        rights.take_back();
        assert!(!allowed("touch a") && allowed("ls"));
    }
}
