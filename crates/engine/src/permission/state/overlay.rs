//! Rules for one turn of one agent: those of the command or the skill that it has called.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{RuleLayer, RuleSet, RuleSource, PermissionSet};
use whimbrel_wire::permission::PermissionBehavior;

use super::PermissionState;

/// What is lent to an agent.
#[derive(Debug, Default)]
pub(super) struct RuleOverlay {
    /// What was denied to whoever sent the agent, when it was sent. It is never taken back.
    inherited_denials: RuleSet,
    rules: Mutex<OverlayRules>,
}

/// What is lent to an agent itself.
#[derive(Debug, Default)]
struct OverlayRules {
    /// For its turn.
    turn: RuleSet,
    /// For as long as it lives: denials only.
    permanent: RuleSet,
    /// How things stood when they were last looked at, and how they stand with all that is lent.
    cache: Option<(Arc<PermissionSet>, Arc<PermissionSet>)>,
}

impl RuleOverlay {
    /// For an agent that this one sends: what it must not do, they must not do for it.
    pub(super) fn for_subagent(&self) -> Arc<Self> {
        let own = self.rules();
        let above = self.inherited_denials.merged_with(&own.permanent).merged_with(&own.turn).filtered_by(PermissionBehavior::Deny);
        Arc::new(Self { inherited_denials: above, rules: Mutex::default() })
    }

    /// How things stand with what is lent. Joined once, for as long as nothing changes.
    fn apply_to(&self, standing: Arc<PermissionSet>) -> Arc<PermissionSet> {
        let mut own = self.rules();
        if self.inherited_denials.is_empty() && own.permanent.is_empty() && own.turn.is_empty() {
            return standing;
        }
        if let Some((before, joined)) = &own.cache
            && Arc::ptr_eq(before, &standing)
        {
            return Arc::clone(joined);
        }
        let rules = standing.rules.merged_with(&self.inherited_denials).merged_with(&own.permanent).merged_with(&own.turn);
        let joined = Arc::new(PermissionSet { rules, dirs: standing.dirs.clone(), mode: standing.mode });
        own.cache = Some((standing, Arc::clone(&joined)));
        joined
    }

    /// Changes what is lent.
    fn update(&self, change: impl FnOnce(&mut OverlayRules)) {
        let mut own = self.rules();
        own.cache = None;
        change(&mut own);
    }

    /// Whole values are put in at once; a panic elsewhere cannot leave them half changed.
    fn rules(&self) -> MutexGuard<'_, OverlayRules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermissionState {
    /// How things stand for this agent.
    pub(super) fn effective(&self) -> Arc<PermissionSet> {
        let standing = Arc::clone(&self.current.borrow());
        self.overlay.apply_to(standing)
    }

    /// Puts rules that stand in a file in force for this agent, until [`Rights::take_back`]. Gives what they do not do
    /// although they seem to. If one that should deny cannot be read, none is in force, and the error says why.
    pub fn add_turn_rules(&self, file: &Path, allow: Vec<String>, deny: Vec<String>) -> Result<Vec<String>, String> {
        let root = self.workspace.root();
        let layer = RuleLayer { file: Some(file.to_owned()), allow, deny, ..RuleLayer::new(RuleSource::Skill, root) };
        let mut rules = RuleSet::new(&self.shared.home, root);
        let loaded = rules.add_layer(&layer, &RealFs);
        if let Some(error) = loaded.errors.first() {
            return Err(error.to_string());
        }
        self.overlay.update(|own| own.turn = own.turn.merged_with(&rules));
        Ok(loaded.warnings.iter().map(ToString::to_string).collect())
    }

    /// Takes back the rules that were lent to this agent.
    pub fn clear_turn_rules(&self) {
        self.overlay.update(|own| own.turn = RuleSet::default());
    }

    /// What is denied to this agent by rules that are lent to it is denied for as long as it lives.
    pub fn retain_denials(&self) {
        self.overlay.update(|own| own.permanent = own.permanent.merged_with(&own.turn.filtered_by(PermissionBehavior::Deny)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_policy::{Decision, ToolFacts};
    use whimbrel_wire::permission::PermissionMode;

    use super::super::{Bypass, InitialPermissions};
    use super::*;
    use crate::workspace::Workspace;

    fn test_state() -> (tempfile::TempDir, PermissionState) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), Default::default()));
        let grants = InitialPermissions { deny: vec!["Bash(touch b)".into()], ..InitialPermissions::default() };
        let granted =
            PermissionState::new(workspace, crate::settings::Settings::empty(), grants, Bypass::Unavailable);
        (folder, granted.unwrap().state)
    }

    fn allows(rights: &PermissionState, command: &str) -> bool {
        let (facts, input) = (ToolFacts::for_tool("Bash", &["command"]), json!({"command": command}));
        matches!(rights.decide("Bash", &facts, &input, None).decision, Decision::Allow(_))
    }

    fn try_add_rules(rights: &PermissionState, allow: &[&str], deny: &[&str]) -> Result<Vec<String>, String> {
        let texts = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        rights.add_turn_rules(Path::new("/w/x.md"), texts(allow), texts(deny))
    }

    #[test]
    fn lent_rules_count_until_they_are_taken_back_and_never_against_a_deny() {
        let (_folder, rights) = test_state();
        let allowed = |command: &str| allows(&rights, command);
        assert!(!allowed("touch a"));
        assert!(allowed("ls"));
        let problems = try_add_rules(&rights, &["Bash(touch *)", "Ba*"], &["Bash(ls *)"]).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(allowed("touch a") && !allowed("touch b") && !allowed("rm a") && !allowed("ls"));
        rights.clear_turn_rules();
        assert!(!allowed("touch a") && allowed("ls"));
    }

    #[test]
    fn rules_are_joined_once_for_as_long_as_nothing_changes() {
        let (_folder, rights) = test_state();
        assert!(Arc::ptr_eq(&rights.effective(), &rights.current.borrow()), "nothing is lent");
        try_add_rules(&rights, &["Bash(touch *)"], &[]).unwrap();
        let joined = rights.effective();
        assert!(Arc::ptr_eq(&joined, &rights.effective()));
        try_add_rules(&rights, &[], &["Bash(touch c)"]).unwrap();
        assert!(allows(&rights, "touch a") && !allows(&rights, "touch c"), "more is lent");
        rights.set_mode(PermissionMode::Plan);
        assert_eq!(rights.effective().mode, PermissionMode::Plan, "things have changed beneath");
        rights.set_mode(PermissionMode::Default);
        assert!(allows(&rights, "touch a") && !allows(&rights, "touch c"));
    }

    #[test]
    fn what_is_lent_to_one_agent_is_no_other_agents() {
        let (_folder, main) = test_state();
        let (child, sibling) = (main.for_subagent(None), main.for_subagent(None));
        try_add_rules(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        for other in [&main, &sibling] {
            assert!(!allows(other, "touch a") && allows(other, "ls"));
        }
        main.clear_turn_rules();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"), "the end of another turn is not its end");
        child.clear_turn_rules();
        assert!(!allows(&child, "touch a") && allows(&child, "ls"));
    }

    #[test]
    fn denials_that_are_kept_outlive_the_turn_and_nothing_else_does() {
        let (_folder, main) = test_state();
        let child = main.for_subagent(None);
        try_add_rules(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        child.retain_denials();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        child.clear_turn_rules();
        assert!(!allows(&child, "touch a") && !allows(&child, "ls") && allows(&main, "ls"));
        assert!(!allows(&child.for_subagent(None), "ls"), "nor for those that it sends");
    }

    #[test]
    fn what_an_agent_must_not_do_nobody_does_for_it() {
        let (_folder, main) = test_state();
        try_add_rules(&main, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        let child = main.for_subagent(None).for_subagent(None);
        assert!(!allows(&child, "touch a") && !allows(&child, "ls"));
        child.clear_turn_rules();
        main.clear_turn_rules();
        assert!(!allows(&child, "ls") && allows(&main, "ls"));
    }

    #[test]
    fn without_a_denial_that_cannot_be_read_nothing_is_lent() {
        let (_folder, rights) = test_state();
        let why = try_add_rules(&rights, &["Bash(touch *)"], &["Bash(ls"]).unwrap_err();
        assert!(why.contains("Bash(ls"), "{why}");
        assert!(!allows(&rights, "touch a"));
    }
}
