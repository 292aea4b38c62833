//! Test fixture: a rule set, working directories and an in-memory disk on which calls are decided.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_wire::permission::PermissionMode;

use crate::call::{Call, CallContext, GitInspector, PreToolDecision, ToolProperties};
use crate::decide::decide_and_resolve;
use crate::decision::{Decision, ResolvedDecision};
use crate::fs::FakeFs;
use crate::rules::rule_set::{RuleLayer, RuleSet, RuleSource};
use crate::sandbox::SandboxState;
use crate::work_dirs::WorkDirs;

pub(crate) struct Fixture {
    pub(crate) fs: FakeFs,
    pub(crate) rules: RuleSet,
    pub(crate) dirs: WorkDirs,
    hook: Option<PreToolDecision>,
    sandbox: Option<SandboxState>,
    plan: Option<PathBuf>,
    protected: Vec<PathBuf>,
    repositories: Option<&'static dyn GitInspector>,
}

const FIXTURE_FILES: [&str; 23] = [
    "/fx/proj/src/app.ts",
    "/fx/proj/docs/x.md",
    "/fx/proj/notes.txt",
    "/fx/proj/vendor/pkg/src/lib.js",
    "/fx/proj/[x].txt",
    "/fx/proj/secrets/key.txt",
    "/fx/proj/sub/secrets/k2.txt",
    "/fx/proj/.env",
    "/fx/proj/sub/.env",
    "/fx/proj/package.json",
    "/fx/proj/.claude/settings.json",
    "/fx/proj/.git/HEAD",
    "/fx/proj/.git/config",
    "/fx/proj/.git/objects/",
    "/fx/proj/.git/refs/",
    "/fx/outside/data.txt",
    "/fx/outside/.env",
    "/fx/extra/e.txt",
    "/fx/proj-evil/loot.txt",
    "/fx/extra-evil/e.txt",
    "/fx/home/.ssh/id_rsa",
    "/fx/home/.bashrc",
    "/etc/passwd",
];

const TOOL_FIELDS: [&str; 13] = [
    "command",
    "dangerouslyDisableSandbox",
    "run_in_background",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "model",
    "isolation",
    "subagent_type",
    "skill",
    "args",
];

impl Fixture {
    pub(crate) fn new() -> Self {
        let fs = FakeFs::with_files(FIXTURE_FILES)
            .with_link("/fx/proj/link_out", "/fx/outside")
            .with_link("/fx/proj/link_secret", "secrets/key.txt")
            .with_link("/fx/proj/link_etc", "/etc/passwd");
        let cwd = Path::new("/fx/proj");
        let dirs = WorkDirs::new(cwd, &fs);
        let rules = RuleSet::new(Path::new("/fx/home"), cwd);
        Self {
            fs,
            rules,
            dirs,
            hook: None,
            sandbox: None,
            plan: None,
            protected: Vec::new(),
            repositories: None,
        }
    }

    /// Adds rules of the project.
    pub(crate) fn with_rules(self, allow: &[&str], ask: &[&str], deny: &[&str]) -> Self {
        self.with_rules_of(RuleSource::ProjectSettings, [allow, ask, deny])
    }

    pub(crate) fn with_rules_of_user(self, allow: &[&str], ask: &[&str], deny: &[&str]) -> Self {
        self.with_rules_of(RuleSource::UserSettings, [allow, ask, deny])
    }

    fn with_rules_of(mut self, source: RuleSource, rules: [&[&str]; 3]) -> Self {
        let [allow, ask, deny] = rules.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
        let layer = RuleLayer { allow, ask, deny, ..RuleLayer::new(source, Path::new("/fx/proj")) };
        self.add_layer(&layer);
        self
    }

    pub(crate) fn add_layer(&mut self, layer: &RuleLayer) {
        let report = self.rules.add_layer(layer, &self.fs);
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }

    pub(crate) fn with_hook(self, hook: PreToolDecision) -> Self {
        Self { hook: Some(hook), ..self }
    }

    pub(crate) fn with_sandbox(self, sandbox: SandboxState) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    pub(crate) fn with_plan_file(self, path: &str) -> Self {
        Self { plan: Some(path.into()), ..self }
    }

    pub(crate) fn with_protected(self, paths: &[&str]) -> Self {
        Self { protected: paths.iter().map(PathBuf::from).collect(), ..self }
    }

    pub(crate) fn with_git_inspector(self, repositories: &'static dyn GitInspector) -> Self {
        Self { repositories: Some(repositories), ..self }
    }

    pub(crate) fn decide(&self, mode: PermissionMode, tool: &str, input: &Value) -> Decision {
        self.decide_as(mode, ToolProperties::for_tool(tool, &TOOL_FIELDS), tool, input)
    }

    pub(crate) fn decide_as(
        &self,
        mode: PermissionMode,
        tool_properties: ToolProperties,
        tool: &str,
        input: &Value,
    ) -> Decision {
        self.decide_and_resolve_as(mode, tool_properties, tool, input).decision
    }

    pub(crate) fn decide_and_resolve(
        &self,
        mode: PermissionMode,
        tool: &str,
        input: &Value,
    ) -> ResolvedDecision {
        self.decide_and_resolve_as(mode, ToolProperties::for_tool(tool, &TOOL_FIELDS), tool, input)
    }

    fn decide_and_resolve_as(
        &self,
        mode: PermissionMode,
        tool_properties: ToolProperties,
        tool: &str,
        input: &Value,
    ) -> ResolvedDecision {
        let (hook, plan_file) = (self.hook.clone(), self.plan.clone());
        let context = CallContext {
            hook,
            sandbox: self.sandbox,
            plan_file,
            protected_paths: &self.protected,
            git_inspector: self.repositories,
            ..CallContext::new(Path::new("/fx/proj"), Path::new("/fx/home"), &self.fs, tool_properties)
        };
        decide_and_resolve(&Call { tool, input }, &self.rules, mode, &self.dirs, &context)
    }

    pub(crate) fn decide_bash(&self, mode: PermissionMode, command: &str) -> Decision {
        self.decide(mode, "Bash", &serde_json::json!({"command": command}))
    }
}

/// First letter of the decision: `A`, `D` or `?` for ask.
pub(crate) fn decision_letter(decision: &Decision) -> char {
    match decision {
        Decision::Allow(_) => 'A',
        Decision::Deny(_) => 'D',
        Decision::Ask(_) => '?',
    }
}
