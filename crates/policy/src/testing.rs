//! A room to judge calls in, for tests: the fixture's tree as an imagined disk.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_wire::permission::PermissionMode;

use crate::call::{Call, Facts, HookVerdict, Repositories, SandboxFacts, ToolFacts};
use crate::decide::judge;
use crate::decision::Decision;
use crate::dirs::WorkDirs;
use crate::fs::FakeFs;
use crate::place::Judged;
use crate::ruleset::{Layer, RuleSet, Source};

pub(crate) struct Room {
    pub(crate) fs: FakeFs,
    pub(crate) rules: RuleSet,
    pub(crate) dirs: WorkDirs,
    hook: Option<HookVerdict>,
    sandbox: Option<SandboxFacts>,
    plan: Option<PathBuf>,
    protected: Vec<PathBuf>,
    repositories: Option<&'static dyn Repositories>,
}

const FILES: [&str; 23] = [
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

const FIELDS: [&str; 12] = [
    "command",
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

impl Room {
    pub(crate) fn new() -> Self {
        let fs = FakeFs::with_files(FILES)
            .link("/fx/proj/link_out", "/fx/outside")
            .link("/fx/proj/link_secret", "secrets/key.txt")
            .link("/fx/proj/link_etc", "/etc/passwd");
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

    pub(crate) fn rules(mut self, allow: &[&str], ask: &[&str], deny: &[&str]) -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let layer = Layer {
            allow: texts(allow),
            ask: texts(ask),
            deny: texts(deny),
            ..Layer::new(Source::ProjectSettings, Path::new("/fx/proj"))
        };
        self.add_layer(&layer);
        self
    }

    pub(crate) fn add_layer(&mut self, layer: &Layer) {
        let loaded = self.rules.add_layer(layer, &self.fs);
        assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    }

    pub(crate) fn hook(self, hook: HookVerdict) -> Self {
        Self { hook: Some(hook), ..self }
    }

    pub(crate) fn sandbox(self, sandbox: SandboxFacts) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    pub(crate) fn plan(self, path: &str) -> Self {
        Self { plan: Some(path.into()), ..self }
    }

    pub(crate) fn protected(self, paths: &[&str]) -> Self {
        Self { protected: paths.iter().map(PathBuf::from).collect(), ..self }
    }

    pub(crate) fn repositories(self, repositories: &'static dyn Repositories) -> Self {
        Self { repositories: Some(repositories), ..self }
    }

    pub(crate) fn judge(&self, mode: PermissionMode, tool: &str, input: &Value) -> Decision {
        self.judge_as(mode, ToolFacts::named(tool, &FIELDS), tool, input)
    }

    pub(crate) fn judge_as(
        &self,
        mode: PermissionMode,
        tool_facts: ToolFacts,
        tool: &str,
        input: &Value,
    ) -> Decision {
        self.judged_as(mode, tool_facts, tool, input).decision
    }

    /// The decision, and the file that it is about.
    pub(crate) fn judged(&self, mode: PermissionMode, tool: &str, input: &Value) -> Judged {
        self.judged_as(mode, ToolFacts::named(tool, &FIELDS), tool, input)
    }

    fn judged_as(&self, mode: PermissionMode, tool_facts: ToolFacts, tool: &str, input: &Value) -> Judged {
        let (hook, plan_file) = (self.hook.clone(), self.plan.clone());
        let facts = Facts {
            hook,
            sandbox: self.sandbox,
            plan_file,
            protected: &self.protected,
            repositories: self.repositories,
            ..Facts::new(Path::new("/fx/proj"), Path::new("/fx/home"), &self.fs, tool_facts)
        };
        judge(&Call { tool, input }, &self.rules, mode, &self.dirs, &facts)
    }

    pub(crate) fn bash(&self, mode: PermissionMode, command: &str) -> Decision {
        self.judge(mode, "Bash", &serde_json::json!({"command": command}))
    }
}

/// `A`, `D` or `?`.
pub(crate) fn answer(decision: &Decision) -> char {
    match decision {
        Decision::Allow(_) => 'A',
        Decision::Deny(_) => 'D',
        Decision::Ask(_) => '?',
    }
}
