//! Permission state of a session: mode, rules and directories, shared by all its agents.

mod mode_switch;
mod overlay;
mod update;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use whimbrel_config::settings::{self, EffectiveSettings, SandboxSettings, Settings, Tolerance, Trust};
use whimbrel_os::links::resolve_links;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::mode::{choose_stricter_mode, deny_if_never_asking};
use whimbrel_policy::sandbox::OVERRIDE_FIELD;
use whimbrel_policy::{
    Call, CallContext, FileProtection, GitInspector, PermissionSet, PreToolDecision, ResolvedDecision,
    RuleLayer, RuleSet, RuleSource, SandboxRules, SandboxState, ToolKind, ToolProperties, UpdateContext,
    WorkDirs, apply_update, decide_and_resolve,
};
use whimbrel_sandbox::policy::PROTECTED_NAMES;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use self::mode_switch::Modes;
pub use self::mode_switch::{Bypass, ModeSwitch, PlanLock};
use self::overlay::RuleOverlay;
use crate::permission::untrusted_repos::UntrustedRepos;
use crate::permission::{SearchFilter, from_settings};
use crate::sandbox::PolicyFacts;
use crate::workspace::Workspace;

/// Permission state of a session. Cheap to clone; all clones see a change at once.
#[derive(Debug, Clone)]
pub struct PermissionState {
    current: watch::Sender<Arc<PermissionSet>>,
    /// Settings that the rules come from. Never locked while a file is written.
    settings: Arc<Mutex<Settings>>,
    shared: Arc<SharedState>,
    workspace: Arc<Workspace>,
    /// Widest mode of this agent, if it is restricted.
    mode_cap: Option<PermissionMode>,
    /// Rules of this agent only.
    overlay: Arc<RuleOverlay>,
    /// Keeps the agent in plan mode until its plan is approved.
    plan_lock: Option<PlanLock>,
}

/// State shared by all agents of a session.
#[derive(Debug)]
struct SharedState {
    modes: Mutex<Modes>,
    /// Updates that are applied in memory only, because their settings file is unreadable, untrusted or not loaded, in
    /// order.
    session_only: Mutex<Vec<PermissionUpdate>>,
    /// Serializes writing a settings file and reading the files again.
    write_lock: Mutex<()>,
    home: Arc<Path>,
    /// Files that configure this session.
    protected_paths: Box<[PathBuf]>,
    /// Whether unreadable rules prevent the start.
    tolerance: Tolerance,
    untrusted_repos: UntrustedRepos,
    bypass: Bypass,
}

/// Initial permissions besides those of the settings.
#[derive(Debug, Clone, Default)]
pub struct InitialPermissions {
    pub mode: PermissionMode,
    /// Allow rules of the options.
    pub allow: Vec<String>,
    /// Deny rules of the options.
    pub deny: Vec<String>,
    /// Additional directories of the options.
    pub directories: Vec<PathBuf>,
}

/// New permission state with its warnings.
#[derive(Debug)]
pub struct NewPermissions {
    pub state: PermissionState,
    /// Rules that do not do what they seem to.
    pub warnings: Vec<String>,
}

impl PermissionState {
    /// Builds the initial state. An unreadable deny or ask rule is an error.
    pub fn build(
        workspace: Arc<Workspace>,
        settings: Settings,
        initial: InitialPermissions,
        bypass: Bypass,
    ) -> Result<NewPermissions, String> {
        let home = workspace.home_dir().unwrap_or_default();
        let mut rules = RuleSet::new(&home, workspace.root());
        let mut dirs = WorkDirs::new(workspace.root(), &RealFs);
        let mut warnings = add_option_rules(&mut rules, workspace.root(), initial.allow, initial.deny)?;
        for directory in &initial.directories {
            dirs.add(directory, RuleSource::CliArg, &RealFs);
        }
        let set = PermissionSet { rules, mode: initial.mode, dirs };
        let shared = SharedState {
            modes: Mutex::default(),
            session_only: Mutex::default(),
            write_lock: Mutex::default(),
            home: home.into(),
            protected_paths: protected_paths(&settings, &workspace),
            tolerance: settings.tolerance(),
            untrusted_repos: UntrustedRepos::default(),
            bypass,
        };
        let permissions = Self {
            current: watch::Sender::new(Arc::new(set)),
            settings: Arc::new(Mutex::new(settings)),
            shared: Arc::new(shared),
            workspace,
            mode_cap: None,
            overlay: Arc::default(),
            plan_lock: None,
        };
        let effective = permissions.settings().effective().clone();
        warnings.extend(permissions.apply_settings(&effective, settings::LayerSource::ALL)?);
        Ok(NewPermissions { state: permissions, warnings })
    }

    /// State without settings and rules, for tests.
    #[cfg(any(test, feature = "test-support"))]
    pub fn for_tests(workspace: &Arc<Workspace>) -> Self {
        let (settings, initial) = (Settings::empty(), InitialPermissions::default());
        #[expect(clippy::unwrap_used, reason = "there is no rule that could be invalid")]
        Self::build(Arc::clone(workspace), settings, initial, Bypass::Unavailable).unwrap().state
    }

    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the rules and directories of these sources by those of the settings. Returns warnings; if a deny or ask
    /// rule is unreadable, nothing changes.
    fn apply_settings(
        &self,
        effective: &EffectiveSettings,
        sources: &[settings::LayerSource],
    ) -> Result<Vec<String>, String> {
        let session_only = self.session_only().clone();
        // Updates of the mode are never recorded here.
        let context = UpdateContext { bypass_available: false, fs: &RealFs };
        let tolerance = self.shared.tolerance;
        let result = self.update(|permissions| {
            if effective.managed_rules_only {
                permissions.rules.limit_to_managed();
            }
            if effective.bypass_disabled && permissions.mode == PermissionMode::BypassPermissions {
                permissions.mode = PermissionMode::Default;
            }
            let warnings =
                from_settings::replace_sources(permissions, effective, sources, &self.workspace, tolerance)?;
            let is_affected = |update: &&PermissionUpdate| {
                let source = RuleSource::from_destination(update.destination());
                sources.iter().any(|layer| from_settings::policy_source(*layer) == source)
            };
            for update in session_only.iter().filter(is_affected) {
                // Its errors were reported when it was made.
                apply_update(permissions, update, &context);
            }
            Ok(warnings)
        });
        self.update_workspace();
        result
    }

    /// Changes the permission set atomically: applies the change to a copy, because it may read the disk, and retries
    /// if another change came first. An error changes nothing.
    fn update<T, E>(&self, change: impl Fn(&mut PermissionSet) -> Result<T, E>) -> Result<T, E> {
        loop {
            let before = Arc::clone(&self.current.borrow());
            let mut after = PermissionSet::clone(&before);
            let value = change(&mut after)?;
            let is_applied = self.current.send_if_modified(|current| {
                let is_same = Arc::ptr_eq(current, &before);
                if is_same {
                    *current = Arc::new(after);
                }
                is_same
            });
            if is_applied {
                return Ok(value);
            }
        }
    }

    /// State for a subagent, limited to `mode` where that is stricter. Turn rules of either agent do not apply to the
    /// other.
    #[must_use]
    pub fn for_subagent(&self, mode: Option<PermissionMode>) -> Self {
        let cap = match (self.mode_cap, mode) {
            (Some(cap), Some(mode)) => Some(choose_stricter_mode(cap, mode)),
            (cap, mode) => cap.or(mode),
        };
        Self { mode_cap: cap, overlay: self.overlay.for_subagent(), ..self.clone() }
    }

    #[must_use]
    pub fn with_plan_lock(&self, plan_lock: Option<PlanLock>) -> Self {
        Self { plan_lock, ..self.clone() }
    }

    /// State for an agent with another working directory.
    #[must_use]
    pub fn with_workspace(&self, workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace), ..self.clone() }
    }

    /// Returns true if a rule denies the whole tool.
    pub fn denies_tool_named(&self, name: &str) -> bool {
        self.denies_tool(name, &ToolProperties::for_tool(name, &[]))
    }

    /// Like [`denies_tool_named`](Self::denies_tool_named), with known properties of the tool.
    pub fn denies_tool(&self, name: &str, properties: &ToolProperties) -> bool {
        let call = Call { tool: name, input: &Value::Null };
        // Turn rules are checked per call, so that they do not change the tool list.
        self.current.borrow().rules.find_rule_removing_tool(properties.name(&call)).is_some()
    }

    /// Decides one call in the current mode.
    pub fn decide(
        &self,
        tool: &str,
        properties: &ToolProperties,
        input: &Value,
        hook: Option<PreToolDecision>,
    ) -> ResolvedDecision {
        self.decide_in_mode(self.mode(), tool, properties, input, hook)
    }

    /// Decides one call in a given mode: an answer that changes the mode must not be decided by its own effect.
    pub fn decide_in_mode(
        &self,
        mode: PermissionMode,
        tool: &str,
        properties: &ToolProperties,
        input: &Value,
        hook: Option<PreToolDecision>,
    ) -> ResolvedDecision {
        let permissions = self.effective();
        let cwd = self.workspace.cwd();
        let is_trusted = self.settings().trust() != Trust::Untrusted;
        let context = CallContext {
            hook,
            sandbox: self.sandbox_state(properties.kind, input),
            protected_paths: &self.shared.protected_paths,
            git_inspector: (!is_trusted).then_some(&self.shared.untrusted_repos as &dyn GitInspector),
            ..CallContext::new(&cwd, &self.shared.home, &RealFs, properties.clone())
        };
        let call = Call { tool, input };
        let resolved = decide_and_resolve(&call, &permissions.rules, mode, &permissions.dirs, &context);
        // A planning agent must not ask in a session that never asks.
        let mode = if mode == PermissionMode::Plan { permissions.mode } else { mode };
        ResolvedDecision { decision: deny_if_never_asking(resolved.decision, mode), ..resolved }
    }

    /// How a shell command runs; `None` for other tools and without a sandbox. The first call for a session with a sandbox
    /// may start processes to find out what the machine can do.
    pub fn sandbox_state(&self, kind: ToolKind, input: &Value) -> Option<SandboxState> {
        let settings = Arc::clone(self.settings().sandbox());
        if kind != ToolKind::Shell || !self.is_sandboxed(&settings) {
            return None;
        }
        let rules = SandboxRules {
            auto_allow: settings.auto_allow_bash,
            allow_unconfined: settings.allow_unsandboxed_commands,
            excluded: settings.excluded_commands.clone(),
            files: (!settings.files.disabled).then(|| FileProtection {
                names: &PROTECTED_NAMES,
                only_work_dirs: settings.files.allow_write.is_empty(),
            }),
        };
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        Some(rules.state(command, is_flag_set(input.get(OVERRIDE_FIELD))))
    }

    /// Returns whether commands are confined, or do not run at all because they cannot be confined.
    pub fn is_sandboxed(&self, settings: &SandboxSettings) -> bool {
        settings.enabled
            && (settings.fail_if_unavailable || self.workspace.sandbox().find_tier(settings).is_ok())
    }

    /// Facts for the policy of the next confined command. Accesses the disk.
    pub fn policy_facts(&self) -> PolicyFacts {
        let settings = self.settings();
        PolicyFacts {
            settings: Arc::clone(settings.sandbox()),
            permissions: self.effective(),
            root: self.workspace.root().to_path_buf(),
            worktree: self.workspace.worktree().map(|tree| tree.path),
            protected_paths: self.shared.protected_paths.to_vec(),
            env_files: self.workspace.env_files(),
            config_dir: settings
                .file_for(SettingSource::User)
                .and_then(|file| Some(file.parent()?.to_owned())),
            environment: Arc::new(self.workspace.environment()),
        }
    }

    /// Path for display: relative to the working directory, to home, or absolute.
    pub fn display_path(&self, path: &str) -> String {
        let path = self.workspace.resolve(path);
        if let Ok(below) = path.strip_prefix(self.workspace.cwd()) {
            return below.display().to_string();
        }
        match path.strip_prefix(&self.shared.home) {
            Ok(below) if !self.shared.home.as_os_str().is_empty() => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        }
    }

    /// Current rules, mode and directories of this agent.
    pub fn snapshot(&self) -> Arc<PermissionSet> {
        self.effective()
    }

    pub fn search_filter(&self) -> SearchFilter {
        SearchFilter::new(self.effective(), Arc::clone(&self.shared.home))
    }

    /// Changes from now on.
    pub fn changes(&self) -> PermissionChanges {
        PermissionChanges(self.current.subscribe())
    }

    /// State as if the project were trusted. It is independent of this one.
    pub fn if_trusted(&self) -> Result<Self, String> {
        let settings = self.settings().as_if_trusted().map_err(|error| error.to_string())?;
        let effective = settings.effective().clone();
        let trusted = Self {
            current: watch::Sender::new(Arc::clone(&self.current.borrow())),
            settings: Arc::new(Mutex::new(settings)),
            ..self.clone()
        };
        let (sources, tolerance) = (settings::LayerSource::ALL, self.shared.tolerance);
        trusted.update(|permissions| {
            from_settings::replace_sources(permissions, &effective, sources, &self.workspace, tolerance)
        })?;
        Ok(trusted)
    }

    fn update_workspace(&self) {
        self.workspace.set_additional_dirs(self.current.borrow().dirs.real_paths());
    }
}

/// Subscription to changes of the permission state.
#[derive(Debug)]
pub struct PermissionChanges(watch::Receiver<Arc<PermissionSet>>);

impl PermissionChanges {
    /// Waits for the next change; forever once no sender is left.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Reads a flag as the tools do: models also write it as a text.
fn is_flag_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| {
        *value == Value::Bool(true) || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"))
    })
}

/// Files that configure the session, and the file that every command reads. Accesses the disk.
fn protected_paths(settings: &Settings, workspace: &Workspace) -> Box<[PathBuf]> {
    let mut paths = settings.protected_paths();
    if let Some(file) = workspace.user_env_file() {
        paths.extend([resolve_links(&file), file]);
    }
    paths.into()
}

/// Adds the rules of the start options.
fn add_option_rules(
    rules: &mut RuleSet,
    root: &Path,
    allow: Vec<String>,
    deny: Vec<String>,
) -> Result<Vec<String>, String> {
    // `Tool()` in the options has always meant the whole tool.
    let strip_parentheses = |rule: String| rule.strip_suffix("()").map(str::to_owned).unwrap_or(rule);
    let allow = allow.into_iter().map(strip_parentheses).collect();
    let layer = RuleLayer { allow, deny, ..RuleLayer::new(RuleSource::CliArg, root) };
    let loaded = rules.add_layer(&layer, &RealFs);
    match loaded.errors.first() {
        Some(error) => Err(format!("The session cannot start, because a deny rule is not valid: {error}.")),
        None => Ok(loaded.warnings.iter().map(ToString::to_string).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use PermissionMode::{AcceptEdits, Default, Plan};

    use super::*;

    pub(super) fn test_state(mode: PermissionMode, bypass: Bypass) -> PermissionState {
        let workspace = Workspace::new("/nowhere".into(), "/nowhere/.output".into(), BTreeMap::new());
        let initial = InitialPermissions { mode, ..InitialPermissions::default() };
        PermissionState::build(Arc::new(workspace), Settings::empty(), initial, bypass).unwrap().state
    }

    #[test]
    fn a_planning_agent_never_asks_in_dont_ask_sessions() {
        let (properties, input) =
            (ToolProperties::for_tool("Bash", &["command"]), serde_json::json!({"command": "touch a"}));
        for (session, asks) in [(Default, true), (PermissionMode::DontAsk, false)] {
            let agent = test_state(session, Bypass::Unavailable).for_subagent(Some(Plan));
            assert_eq!(agent.mode(), Plan);
            let decision = agent.decide("Bash", &properties, &input, None).decision;
            assert_eq!(matches!(decision, whimbrel_policy::Decision::Ask(_)), asks, "{session:?}");
        }
    }

    #[test]
    fn repository_and_config_paths_are_considered() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/.git")).unwrap();
        let is_allowed = |trust: Trust, tool: &str, input: Value| {
            let (cwd, config) = (root.join("work"), Some(root.join("work/conf")));
            let settings = Settings::load(settings::SettingsRequest {
                config_dir: config,
                cwd,
                trust,
                ..settings::SettingsRequest::default()
            })
            .unwrap();
            let env = [("CLAUDE_ENV_FILE".to_owned(), "env.sh".to_owned())].into();
            let workspace = Workspace::new(root.join("work"), root.join("spill"), env);
            let initial = InitialPermissions { mode: AcceptEdits, ..InitialPermissions::default() };
            let built =
                PermissionState::build(Arc::new(workspace), settings, initial, Bypass::Unavailable).unwrap();
            let properties = ToolProperties::for_tool(tool, &["command", "file_path"]);
            let decision = built.state.decide(tool, &properties, &input, None).decision;
            matches!(decision, whimbrel_policy::Decision::Allow(_))
        };
        let status = || serde_json::json!({"command": "git status"});
        std::fs::write(root.join("work/.git/config"), "[core]\nbare = false\n").unwrap();
        assert!(is_allowed(Trust::Untrusted, "Bash", status()), "an ordinary repository");
        std::fs::write(root.join("work/.git/config"), "[core]\nfsmonitor = touch pwned\n").unwrap();
        assert!(!is_allowed(Trust::Untrusted, "Bash", status()), "one that names a program");
        assert!(is_allowed(Trust::Full, "Bash", status()), "one that is trusted");
        let write =
            |path: &str| serde_json::json!({"file_path": root.join("work").join(path), "content": ""});
        assert!(!is_allowed(Trust::Full, "Write", write("conf/settings.json")));
        assert!(!is_allowed(Trust::Full, "Write", write("env.sh")), "every command reads it");
        assert!(is_allowed(Trust::Full, "Write", write("configuration")));
    }
}
