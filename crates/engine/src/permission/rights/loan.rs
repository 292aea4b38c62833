//! Rules for one turn of one agent: those of the command or the skill that it has called.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Layer, RuleSet, Source, Standing};
use whimbrel_wire::permission::PermissionBehavior;

use super::Rights;

/// What is lent to an agent.
#[derive(Debug, Default)]
pub(super) struct Lent {
    /// What was denied to whoever sent the agent, when it was sent. It is never taken back.
    above: RuleSet,
    own: Mutex<Own>,
}

/// What is lent to an agent itself.
#[derive(Debug, Default)]
struct Own {
    /// For its turn.
    turn: RuleSet,
    /// For as long as it lives: denials only.
    life: RuleSet,
    /// How things stood when they were last looked at, and how they stand with all that is lent.
    joined: Option<(Arc<Standing>, Arc<Standing>)>,
}

impl Lent {
    /// For an agent that this one sends: what it must not do, they must not do for it.
    pub(super) fn below(&self) -> Arc<Self> {
        let own = self.own();
        let above = self.above.with(&own.life).with(&own.turn).only(PermissionBehavior::Deny);
        Arc::new(Self { above, own: Mutex::default() })
    }

    /// How things stand with what is lent. Joined once, for as long as nothing changes.
    fn over(&self, standing: Arc<Standing>) -> Arc<Standing> {
        let mut own = self.own();
        if self.above.is_empty() && own.life.is_empty() && own.turn.is_empty() {
            return standing;
        }
        if let Some((before, joined)) = &own.joined
            && Arc::ptr_eq(before, &standing)
        {
            return Arc::clone(joined);
        }
        let rules = standing.rules.with(&self.above).with(&own.life).with(&own.turn);
        let joined = Arc::new(Standing { rules, dirs: standing.dirs.clone(), mode: standing.mode });
        own.joined = Some((standing, Arc::clone(&joined)));
        joined
    }

    /// Changes what is lent.
    fn change(&self, change: impl FnOnce(&mut Own)) {
        let mut own = self.own();
        own.joined = None;
        change(&mut own);
    }

    /// Whole values are put in at once; a panic elsewhere cannot leave them half changed.
    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rights {
    /// How things stand for this agent.
    pub(super) fn in_force(&self) -> Arc<Standing> {
        let standing = Arc::clone(&self.standing.borrow());
        self.lent.over(standing)
    }

    /// Puts rules that stand in a file in force for this agent, until [`Rights::take_back`]. Gives what they do not do
    /// although they seem to. If one that should deny cannot be read, none is in force, and the error says why.
    pub fn lend(&self, file: &Path, allow: Vec<String>, deny: Vec<String>) -> Result<Vec<String>, String> {
        let root = self.workspace.root();
        let layer = Layer { file: Some(file.to_owned()), allow, deny, ..Layer::new(Source::Skill, root) };
        let mut rules = RuleSet::new(&self.common.home, root);
        let loaded = rules.add_layer(&layer, &RealFs);
        if let Some(error) = loaded.errors.first() {
            return Err(error.to_string());
        }
        self.lent.change(|own| own.turn = own.turn.with(&rules));
        Ok(loaded.warnings.iter().map(ToString::to_string).collect())
    }

    /// Takes back the rules that were lent to this agent.
    pub fn take_back(&self) {
        self.lent.change(|own| own.turn = RuleSet::default());
    }

    /// What is denied to this agent by rules that are lent to it is denied for as long as it lives.
    pub fn keep_denials(&self) {
        self.lent.change(|own| own.life = own.life.with(&own.turn.only(PermissionBehavior::Deny)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_policy::{Decision, ToolFacts};
    use whimbrel_wire::permission::PermissionMode;

    use super::super::{Bypass, Grants};
    use super::*;
    use crate::workspace::Workspace;

    fn rights() -> (tempfile::TempDir, Rights) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), Default::default()));
        let grants = Grants { deny: vec!["Bash(touch b)".into()], ..Grants::default() };
        let granted =
            Rights::grant(workspace, crate::settings::Settings::none(), grants, Bypass::Unavailable);
        (folder, granted.unwrap().rights)
    }

    fn allows(rights: &Rights, command: &str) -> bool {
        let (facts, input) = (ToolFacts::named("Bash", &["command"]), json!({"command": command}));
        matches!(rights.judge("Bash", &facts, &input, None).decision, Decision::Allow(_))
    }

    fn lend(rights: &Rights, allow: &[&str], deny: &[&str]) -> Result<Vec<String>, String> {
        let texts = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        rights.lend(Path::new("/w/x.md"), texts(allow), texts(deny))
    }

    #[test]
    fn lent_rules_count_until_they_are_taken_back_and_never_against_a_deny() {
        let (_folder, rights) = rights();
        let allowed = |command: &str| allows(&rights, command);
        assert!(!allowed("touch a"));
        assert!(allowed("ls"));
        let problems = lend(&rights, &["Bash(touch *)", "Ba*"], &["Bash(ls *)"]).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(allowed("touch a") && !allowed("touch b") && !allowed("rm a") && !allowed("ls"));
        rights.take_back();
        assert!(!allowed("touch a") && allowed("ls"));
    }

    #[test]
    fn rules_are_joined_once_for_as_long_as_nothing_changes() {
        let (_folder, rights) = rights();
        assert!(Arc::ptr_eq(&rights.in_force(), &rights.standing.borrow()), "nothing is lent");
        lend(&rights, &["Bash(touch *)"], &[]).unwrap();
        let joined = rights.in_force();
        assert!(Arc::ptr_eq(&joined, &rights.in_force()));
        lend(&rights, &[], &["Bash(touch c)"]).unwrap();
        assert!(allows(&rights, "touch a") && !allows(&rights, "touch c"), "more is lent");
        rights.set_mode(PermissionMode::Plan);
        assert_eq!(rights.in_force().mode, PermissionMode::Plan, "things have changed beneath");
        rights.set_mode(PermissionMode::Default);
        assert!(allows(&rights, "touch a") && !allows(&rights, "touch c"));
    }

    #[test]
    fn what_is_lent_to_one_agent_is_no_other_agents() {
        let (_folder, main) = rights();
        let (child, sibling) = (main.within(None), main.within(None));
        lend(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        for other in [&main, &sibling] {
            assert!(!allows(other, "touch a") && allows(other, "ls"));
        }
        main.take_back();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"), "the end of another turn is not its end");
        child.take_back();
        assert!(!allows(&child, "touch a") && allows(&child, "ls"));
    }

    #[test]
    fn denials_that_are_kept_outlive_the_turn_and_nothing_else_does() {
        let (_folder, main) = rights();
        let child = main.within(None);
        lend(&child, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        child.keep_denials();
        assert!(allows(&child, "touch a") && !allows(&child, "ls"));
        child.take_back();
        assert!(!allows(&child, "touch a") && !allows(&child, "ls") && allows(&main, "ls"));
        assert!(!allows(&child.within(None), "ls"), "nor for those that it sends");
    }

    #[test]
    fn what_an_agent_must_not_do_nobody_does_for_it() {
        let (_folder, main) = rights();
        lend(&main, &["Bash(touch *)"], &["Bash(ls *)"]).unwrap();
        let child = main.within(None).within(None);
        assert!(!allows(&child, "touch a") && !allows(&child, "ls"));
        child.take_back();
        main.take_back();
        assert!(!allows(&child, "ls") && allows(&main, "ls"));
    }

    #[test]
    fn without_a_denial_that_cannot_be_read_nothing_is_lent() {
        let (_folder, rights) = rights();
        let why = lend(&rights, &["Bash(touch *)"], &["Bash(ls"]).unwrap_err();
        assert!(why.contains("Bash(ls"), "{why}");
        assert!(!allows(&rights, "touch a"));
    }
}
