//! Rules and a mode, and the decision under them.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{
    Call, CallContext, Decision, RuleLayer, RuleSet, RuleSource, ToolProperties, WorkDirs, decide,
};
use whimbrel_wire::permission::PermissionMode;

use crate::harness::BashHarness;

/// Allow rules. `@` stands for the directory of the harness.
const ALLOW: &[&str] = &[
    "Bash(tool *)",
    "Bash(tool run)",
    "Bash(tool run:*)",
    "Bash(too*)",
    "Bash(npm *)",
    "Bash(npm run test:*)",
    "Bash(make all)",
    "Bash(make * all)",
    "Bash(* --version)",
    "Bash(git *)",
    "Bash(git log *)",
    "Bash(cat *)",
    "Bash(grep *)",
    "Bash(find *)",
    "Bash(sed *)",
    "Bash(sort *)",
    "Bash(rm *)",
    "Bash(touch *)",
    "Bash(tee *)",
    "Bash(env *)",
    "Bash(xargs *)",
    "Bash(echo *)",
    "Bash(fail *)",
    "Bash(python3 *)",
    "Bash(bash *)",
    "Bash(timeout *)",
    "Bash(set *)",
    "Bash(export *)",
    "Edit(out/**)",
    "Edit(x.txt)",
    "Edit(*.log)",
    "Read(/@/outside/**)",
];

const DENY: &[&str] = &[
    "Bash(evil *)",
    "Bash(evil:*)",
    "Bash(curl *)",
    "Bash(tool stop *)",
    "Bash(npm publish:*)",
    "Bash(* --force)",
    "Read(secret.txt)",
    "Read(.env)",
    "Edit(out/keep.txt)",
];

/// Deny rules that depend on arguments.
const ARGUMENT_RULES: &[&str] = &["Bash(tool stop *)", "Bash(npm publish:*)", "Bash(* --force)"];

const MODES: [PermissionMode; 4] =
    [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan, PermissionMode::DontAsk];

/// Rules and mode under which a command is decided.
#[derive(Debug, Clone)]
pub(crate) struct RuleSetup {
    pub(crate) allow: Vec<&'static str>,
    pub(crate) deny: Vec<&'static str>,
    pub(crate) mode: PermissionMode,
}

/// A few allow rules, seldom a deny rule.
pub(crate) fn rule_setups() -> impl Strategy<Value = RuleSetup> {
    let deny = prop_oneof![2 => Just(Vec::new()), 1 => subsequence(DENY.to_vec(), 1..3)];
    let mode = prop_oneof![4 => Just(PermissionMode::Default), 2 => Just(PermissionMode::AcceptEdits),
        1 => select(MODES.to_vec())];
    (subsequence(ALLOW.to_vec(), 1..10), deny, mode).prop_map(|(mut allow, deny, mode)| {
        allow.push("Bash(tool *)");
        RuleSetup { allow, deny, mode }
    })
}

/// Everything is allowed, with deny rules for programs and files. Rules about arguments are left out, because
/// arguments that are known only at run time cannot be checked against them.
pub(crate) fn open_rule_setups() -> impl Strategy<Value = RuleSetup> {
    let mode = select(vec![PermissionMode::Default, PermissionMode::AcceptEdits]);
    let deny: Vec<_> = DENY.iter().copied().filter(|rule| !ARGUMENT_RULES.contains(rule)).collect();
    (subsequence(deny, 1..4), mode).prop_map(|(deny, mode)| RuleSetup { allow: vec!["Bash"], deny, mode })
}

impl RuleSetup {
    /// Returns true if everything that is not denied is allowed.
    pub(crate) fn is_open(&self) -> bool {
        self.allow.contains(&"Bash")
    }

    /// Returns true if a command may run in a directory.
    pub(crate) fn allows(&self, command: &str, cwd: &Path, harness: &BashHarness) -> bool {
        matches!(self.decide(command, cwd, harness), Decision::Allow(_))
    }

    fn decide(&self, command: &str, cwd: &Path, harness: &BashHarness) -> Decision {
        let (work, home) = (harness.work_dir(), harness.path("home"));
        let root = harness.path("");
        let root = root.to_str().unwrap().trim_matches('/');
        let texts = |texts: &[&str]| texts.iter().map(|text| text.replace('@', root)).collect();
        let layer = RuleLayer {
            allow: texts(&self.allow),
            deny: texts(&self.deny),
            ..RuleLayer::new(RuleSource::ProjectSettings, work)
        };
        let mut rules = RuleSet::new(&home, work);
        let report = rules.add_layer(&layer, &RealFs);
        assert_eq!(report.errors, []);
        let context = CallContext::new(cwd, &home, &RealFs, ToolProperties::for_tool("Bash", &["command"]));
        let input = json!({"command": command});
        decide(
            &Call { tool: "Bash", input: &input },
            &rules,
            self.mode,
            &WorkDirs::new(work, &RealFs),
            &context,
        )
    }
}
