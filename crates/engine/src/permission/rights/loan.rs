//! Allow rules for one turn.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Layer, Source};
use whimbrel_wire::permission::PermissionBehavior;

use super::Rights;

impl Rights {
    /// Lends allow rules that stand in a file, until [`Rights::take_back`]. Gives what is wrong with them.
    pub fn lend(&self, file: &Path, rules: Vec<String>) -> Vec<String> {
        let mut layer = Layer::new(Source::Skill, self.workspace.root());
        layer.file = Some(file.to_owned());
        layer.allow = rules;
        let Ok(loaded) =
            self.revise(|standing| Ok::<_, Infallible>(standing.rules.add_layer(&layer, &RealFs)));
        loaded.warnings.iter().map(ToString::to_string).collect()
    }

    /// Takes back all rules that were lent.
    pub fn take_back(&self) {
        self.standing.send_modify(|standing| {
            Arc::make_mut(standing).rules.remove_rules(Source::Skill, PermissionBehavior::Allow, |_| true);
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
        let problems = rights.lend(Path::new("/w/x.md"), vec!["Bash(touch *)".into(), "Ba*".into()]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(allowed("touch a") && !allowed("touch b") && !allowed("rm a"));
        rights.take_back();
        assert!(!allowed("touch a"));
    }
}
