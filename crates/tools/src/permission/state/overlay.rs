//! Rule overlay of one agent: rules of the command or skill that it runs, for one turn.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{PermissionSet, RuleLayer, RuleSet, RuleSource};
use whimbrel_wire::permission::PermissionBehavior;

use super::PermissionState;

/// Overlay of an agent.
#[derive(Debug, Default)]
pub(super) struct RuleOverlay {
    /// Denials of the parent agents when the agent was started. Never cleared.
    inherited_denials: RuleSet,
    rules: Mutex<OverlayRules>,
}

/// Rules of the agent itself.
#[derive(Debug, Default)]
struct OverlayRules {
    /// For the current turn.
    turn: RuleSet,
    /// For the agent's lifetime: denials only.
    permanent: RuleSet,
    /// Permission set last seen, and its combination with the overlay.
    cache: Option<(Arc<PermissionSet>, Arc<PermissionSet>)>,
}

impl RuleOverlay {
    /// Overlay for a subagent, which inherits all denials.
    pub(super) fn for_subagent(&self) -> Arc<Self> {
        let own = self.rules();
        let inherited = self
            .inherited_denials
            .merged_with(&own.permanent)
            .merged_with(&own.turn)
            .filtered_by(PermissionBehavior::Deny);
        Arc::new(Self { inherited_denials: inherited, rules: Mutex::default() })
    }

    /// Combines the permission set with the overlay. Cached until either changes.
    fn apply_to(&self, permissions: Arc<PermissionSet>) -> Arc<PermissionSet> {
        let mut own = self.rules();
        if self.inherited_denials.is_empty() && own.permanent.is_empty() && own.turn.is_empty() {
            return permissions;
        }
        if let Some((cached, combined)) = &own.cache
            && Arc::ptr_eq(cached, &permissions)
        {
            return Arc::clone(combined);
        }
        let rules = permissions
            .rules
            .merged_with(&self.inherited_denials)
            .merged_with(&own.permanent)
            .merged_with(&own.turn);
        let combined =
            Arc::new(PermissionSet { rules, dirs: permissions.dirs.clone(), mode: permissions.mode });
        own.cache = Some((permissions, Arc::clone(&combined)));
        combined
    }

    /// Changes the rules and drops the cache.
    fn update(&self, change: impl FnOnce(&mut OverlayRules)) {
        let mut own = self.rules();
        own.cache = None;
        change(&mut own);
    }

    /// Values are replaced whole, so a poisoned lock cannot hold a half-written one.
    fn rules(&self) -> MutexGuard<'_, OverlayRules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermissionState {
    /// Permission set in effect for this agent.
    pub(super) fn effective(&self) -> Arc<PermissionSet> {
        let permissions = Arc::clone(&self.current.borrow());
        self.overlay.apply_to(permissions)
    }

    /// Adds rules of a file to this agent's turn, until [`PermissionState::clear_turn_rules`]. Returns warnings. An
    /// unreadable deny rule is an error, and then no rule is added.
    pub fn add_turn_rules(
        &self,
        file: &Path,
        allow: Vec<String>,
        deny: Vec<String>,
    ) -> Result<Vec<String>, String> {
        let root = self.workspace.root();
        let layer =
            RuleLayer { file: Some(file.to_owned()), allow, deny, ..RuleLayer::new(RuleSource::Skill, root) };
        let mut rules = RuleSet::new(&self.shared.home, root);
        let loaded = rules.add_layer(&layer, &RealFs);
        if let Some(error) = loaded.errors.first() {
            return Err(error.to_string());
        }
        self.overlay.update(|own| own.turn = own.turn.merged_with(&rules));
        Ok(loaded.warnings.iter().map(ToString::to_string).collect())
    }

    pub fn clear_turn_rules(&self) {
        self.overlay.update(|own| own.turn = RuleSet::default());
    }

    /// Keeps the deny rules of the turn for the agent's lifetime.
    pub fn retain_denials(&self) {
        self.overlay.update(|own| {
            own.permanent = own.permanent.merged_with(&own.turn.filtered_by(PermissionBehavior::Deny));
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_policy::{Decision, ToolProperties};
    use whimbrel_wire::permission::PermissionMode;

    use super::super::{Bypass, InitialPermissions};
    use super::*;
    use crate::workspace::Workspace;

    fn test_state() -> (tempfile::TempDir, PermissionState) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), Default::default()));
        let initial =
            InitialPermissions { deny: vec!["Bash(touch b)".into()], ..InitialPermissions::default() };
        let built = PermissionState::build(
            workspace,
            whimbrel_config::settings::Settings::empty(),
            initial,
            Bypass::Unavailable,
        );
        (dir, built.unwrap().state)
    }

    fn allows(permissions: &PermissionState, command: &str) -> bool {
        let (properties, input) =
            (ToolProperties::for_tool("Bash", &["command"]), json!({"command": command}));
        matches!(permissions.decide("Bash", &properties, &input, None).decision, Decision::Allow(_))
    }

    fn try_add_rules(
        permissions: &PermissionState,
        allow: &[&str],
        deny: &[&str],
    ) -> Result<Vec<String>, String> {
        let texts = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        permissions.add_turn_rules(Path::new("/w/x.md"), texts(allow), texts(deny))
    }

    #[test]
    fn turn_rules_apply_until_cleared_and_never_override_denies() {
        let (_dir, permissions) = test_state();
        let allowed = |command: &str| allows(&permissions, command);
        assert!(!allowed("touch a"));
        assert!(allowed("ls"));
        let warnings = try_add_rules(&permissions, &["Bash(touch *)", "Ba*"], &["Bash(ls *)"]).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(allowed("touch a") && !allowed("touch b") && !allowed("rm a") && !allowed("ls"));
        permissions.clear_turn_rules();
        assert!(!allowed("touch a") && allowed("ls"));
    }

    #[test]
    fn the_combination_is_cached() {
        let (_dir, permissions) = test_state();
        assert!(
            Arc::ptr_eq(&permissions.effective(), &permissions.current.borrow()),
            "without turn rules there is no copy"
        );
        try_add_rules(&permissions, &["Bash(touch *)"], &[]).unwrap();
        let combined = permissions.effective();
        assert!(Arc::ptr_eq(&combined, &permissions.effective()));
        try_add_rules(&permissions, &[], &["Bash(touch c)"]).unwrap();
        assert!(
            allows(&permissions, "touch a") && !allows(&permissions, "touch c"),
            "new rules reset the cache"
        );
        permissions.set_mode(PermissionMode::Plan);
        assert_eq!(permissions.effective().mode, PermissionMode::Plan, "a new mode resets the cache");
        permissions.set_mode(PermissionMode::Default);
        assert!(allows(&permissions, "touch a") && !allows(&permissions, "touch c"));
    }

    #[test]
    fn turn_rules_of_one_agent_do_not_affect_others() {
        let (_dir, main) = test_state();
        let (child, sibling) = (main.for_subagent(None), main.for_subagent(None));
        try_add_rules(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        for other in [&main, &sibling] {
            assert!(!allows(other, "touch a") && allows(other, "ls"));
        }
        main.clear_turn_rules();
        assert!(
            allows(&child, "touch a") && !allows(&child, "ls"),
            "the turn of another agent does not clear them"
        );
        child.clear_turn_rules();
        assert!(!allows(&child, "touch a") && allows(&child, "ls"));
    }

    #[test]
    fn retained_denials_outlive_the_turn() {
        let (_dir, main) = test_state();
        let child = main.for_subagent(None);
        try_add_rules(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        child.retain_denials();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        child.clear_turn_rules();
        assert!(!allows(&child, "touch a") && !allows(&child, "ls") && allows(&main, "ls"));
        assert!(!allows(&child.for_subagent(None), "ls"), "its subagents inherit the denials");
    }

    #[test]
    fn a_subagent_inherits_denials() {
        let (_dir, main) = test_state();
        try_add_rules(&main, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        let child = main.for_subagent(None).for_subagent(None);
        assert!(!allows(&child, "touch a") && !allows(&child, "ls"));
        child.clear_turn_rules();
        main.clear_turn_rules();
        assert!(!allows(&child, "ls") && allows(&main, "ls"));
    }

    #[test]
    fn an_unreadable_deny_adds_no_rule() {
        let (_dir, permissions) = test_state();
        let error = try_add_rules(&permissions, &["Bash(touch *)"], &["Bash(ls"]).unwrap_err();
        assert!(error.contains("Bash(ls"), "{error}");
        assert!(!allows(&permissions, "touch a"));
    }
}
