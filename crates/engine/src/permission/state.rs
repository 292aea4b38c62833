//! What a session may do now: mode, rules and directories. One for the whole tree of agents.

mod update;
mod overlay;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::mode::stricter_mode;
use whimbrel_policy::{
    UpdateContext, Call, CallContext, PreToolDecision, ResolvedDecision, RuleLayer, GitInspector, RuleSet, RuleSource, PermissionSet, ToolFacts,
    WorkDirs, apply_update, decide_and_resolve,
};
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use self::overlay::RuleOverlay;
use crate::permission::git::UntrustedRepos;
use crate::permission::{PlanLock, SearchFilter, from_settings};
use crate::settings::{self, EffectiveSettings, Settings, Tolerance, Trust};
use crate::workspace::Workspace;

/// The rights of a session. Cheap to clone; a change is seen by all at once.
#[derive(Debug, Clone)]
pub struct PermissionState {
    current: watch::Sender<Arc<PermissionSet>>,
    /// The settings that they were made of. Never held while a file is written.
    settings: Arc<Mutex<Settings>>,
    shared: Arc<SharedState>,
    workspace: Arc<Workspace>,
    /// The widest mode that counts here, for an agent that may less than the session.
    mode_cap: Option<PermissionMode>,
    /// Rules that count for this agent only.
    overlay: Arc<RuleOverlay>,
    /// What keeps an agent in plan mode until its plan is approved.
    plan_lock: Option<PlanLock>,
}

/// What is the same for all agents of a session.
#[derive(Debug)]
struct SharedState {
    modes: Mutex<Modes>,
    /// Changes for files that do not count by themselves, in order: they count for the session.
    session_only: Mutex<Vec<PermissionUpdate>>,
    /// Held by whoever writes to a settings file and reads the files again.
    write_lock: Mutex<()>,
    home: Arc<Path>,
    /// What the session itself is configured by.
    protected_paths: Box<[PathBuf]>,
    /// Whether rules that cannot be read stop the start.
    tolerance: Tolerance,
    untrusted_repos: UntrustedRepos,
    bypass: Bypass,
}

/// Modes beside the one that counts.
#[derive(Debug, Default)]
struct Modes {
    /// The one to go back to when plan mode ends.
    before_plan: PermissionMode,
    /// Those of single MCP servers, by how they stand in the names of their tools.
    by_server: BTreeMap<String, PermissionMode>,
}

/// Whether a session may be switched to `bypassPermissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// It was started so that it may.
    Available,
    /// It may not.
    Unavailable,
}

/// What a session begins with, besides its settings.
#[derive(Debug, Clone, Default)]
pub struct InitialPermissions {
    /// The mode.
    pub mode: PermissionMode,
    /// Rules that allow, from the options.
    pub allow: Vec<String>,
    /// Rules that deny, from the options.
    pub deny: Vec<String>,
    /// Further directories, from the options.
    pub directories: Vec<PathBuf>,
}

/// Rights, and what the host should know about the rules they were made of.
#[derive(Debug)]
pub struct NewPermissions {
    /// The rights.
    pub state: PermissionState,
    /// What rules do not do although they seem to.
    pub warnings: Vec<String>,
}

impl PermissionState {
    /// The rights that a session begins with. A rule that should deny or ask and cannot be read is an error.
    pub fn new(
        workspace: Arc<Workspace>,
        settings: Settings,
        grants: InitialPermissions,
        bypass: Bypass,
    ) -> Result<NewPermissions, String> {
        let home = workspace.home_dir().unwrap_or_default();
        let mut rules = RuleSet::new(&home, workspace.root());
        let mut dirs = WorkDirs::new(workspace.root(), &RealFs);
        let mut warnings = add_option_rules(&mut rules, workspace.root(), grants.allow, grants.deny)?;
        for directory in &grants.directories {
            dirs.add(directory, RuleSource::CliArg, &RealFs);
        }
        let standing = PermissionSet { rules, mode: grants.mode, dirs };
        let common = SharedState {
            modes: Mutex::default(),
            session_only: Mutex::default(),
            write_lock: Mutex::default(),
            home: home.into(),
            protected_paths: settings.protected_paths().into(),
            tolerance: settings.tolerance(),
            untrusted_repos: UntrustedRepos::default(),
            bypass,
        };
        let rights = Self {
            current: watch::Sender::new(Arc::new(standing)),
            settings: Arc::new(Mutex::new(settings)),
            shared: Arc::new(common),
            workspace,
            mode_cap: None,
            overlay: Arc::default(),
            plan_lock: None,
        };
        let effective = rights.settings().effective().clone();
        warnings.extend(rights.apply_settings(&effective, settings::LayerSource::ALL)?);
        Ok(NewPermissions { state: rights, warnings })
    }

    /// The rights of a session that nobody said anything about: for tests.
    #[cfg(test)]
    pub(crate) fn for_tests(workspace: &Arc<Workspace>) -> Self {
        let (settings, grants) = (Settings::empty(), InitialPermissions::default());
        Self::new(Arc::clone(workspace), settings, grants, Bypass::Unavailable).unwrap().state
    }

    /// The settings.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes rules and directories of these sources from the settings, in place of those that were taken before. Tells
    /// what rules do not do although they seem to; if one that should deny or ask cannot be read, nothing is changed.
    fn apply_settings(&self, effective: &EffectiveSettings, sources: &[settings::LayerSource]) -> Result<Vec<String>, String> {
        let unkept = self.session_only().clone();
        // A mode is never among them.
        let bounds = UpdateContext { bypass_available: false, fs: &RealFs };
        let tolerance = self.shared.tolerance;
        let taken = self.update(|standing| {
            if effective.managed_rules_only {
                standing.rules.limit_to_managed();
            }
            if effective.bypass_disabled && standing.mode == PermissionMode::BypassPermissions {
                standing.mode = PermissionMode::Default;
            }
            let warnings = from_settings::replace_sources(standing, effective, sources, &self.workspace, tolerance)?;
            let is_taken = |update: &&PermissionUpdate| {
                let source = RuleSource::from_destination(update.destination());
                sources.iter().any(|taken| from_settings::policy_source(*taken) == source)
            };
            for update in unkept.iter().filter(is_taken) {
                // What is wrong with it was told when it was made.
                apply_update(standing, update, &bounds);
            }
            Ok(warnings)
        });
        self.update_workspace();
        taken
    }

    /// Changes how things stand, in one step though others may change them at the same time. The change is tried on a
    /// copy, so that nobody waits while it looks at the disk; if things have changed meanwhile, it is tried again. An
    /// error changes nothing.
    fn update<T, E>(&self, change: impl Fn(&mut PermissionSet) -> Result<T, E>) -> Result<T, E> {
        loop {
            let before = Arc::clone(&self.current.borrow());
            let mut after = PermissionSet::clone(&before);
            let outcome = change(&mut after)?;
            let is_done = self.current.send_if_modified(|now| {
                let is_same = Arc::ptr_eq(now, &before);
                if is_same {
                    *now = Arc::new(after);
                }
                is_same
            });
            if is_done {
                return Ok(outcome);
            }
        }
    }

    /// The mode that is in force.
    pub fn mode(&self) -> PermissionMode {
        let mode = self.current.borrow().mode;
        let mode = self.mode_cap.map_or(mode, |cap| stricter_mode(mode, cap));
        if self.needs_plan() { PermissionMode::Plan } else { supported_mode(mode) }
    }

    /// Whether a plan is owed before anything may be changed.
    pub fn needs_plan(&self) -> bool {
        self.plan_lock.as_ref().is_some_and(PlanLock::is_held)
    }

    /// The mode for the tools of an MCP server: the session's, unless the host has said otherwise. Who only plans, only
    /// plans.
    pub fn mode_for_server(&self, server: Option<&str>) -> PermissionMode {
        let own = server.and_then(|server| self.modes().by_server.get(server).copied());
        match (self.mode(), own) {
            (PermissionMode::Plan, _) | (_, None) => self.mode(),
            (_, Some(own)) => supported_mode(self.mode_cap.map_or(own, |cap| stricter_mode(own, cap))),
        }
    }

    /// Gives an MCP server a mode of its own, or takes it away again.
    pub fn set_server_mode(&self, server: &str, mode: Option<PermissionMode>) {
        let of_servers = &mut self.modes().by_server;
        match mode {
            Some(mode) => drop(of_servers.insert(server.to_owned(), mode)),
            None => drop(of_servers.remove(server)),
        }
    }

    /// The same rights for an agent that this one sends, in this mode wherever that is narrower. What is lent to either
    /// counts for that one alone.
    #[must_use]
    pub fn for_subagent(&self, mode: Option<PermissionMode>) -> Self {
        let cap = match (self.mode_cap, mode) {
            (Some(cap), Some(mode)) => Some(stricter_mode(cap, mode)),
            (cap, mode) => cap.or(mode),
        };
        Self { mode_cap: cap, overlay: self.overlay.for_subagent(), ..self.clone() }
    }

    /// The same rights for an agent that has promised to plan first.
    #[must_use]
    pub fn with_plan_lock(&self, pledge: Option<PlanLock>) -> Self {
        Self { plan_lock: pledge, ..self.clone() }
    }

    /// The same rights for an agent that stands in this place: relative paths mean what they mean there.
    #[must_use]
    pub fn with_workspace(&self, workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace), ..self.clone() }
    }

    /// Switches the mode. False if the session may not be switched to it.
    pub fn set_mode(&self, mode: PermissionMode) -> bool {
        if mode == PermissionMode::BypassPermissions && !self.can_bypass() {
            return false;
        }
        let from = self.mode();
        self.current.send_modify(|standing| Arc::make_mut(standing).mode = mode);
        self.remember_mode_before_plan(from);
        true
    }

    /// Whether the settings forbid that permissions are bypassed.
    pub fn is_bypass_disabled(&self) -> bool {
        self.settings().effective().bypass_disabled
    }

    fn can_bypass(&self) -> bool {
        self.shared.bypass == Bypass::Available && !self.is_bypass_disabled()
    }

    /// Ends plan mode: the mode is what it was before. Another mode stays.
    pub fn leave_plan(&self) {
        if self.mode() == PermissionMode::Plan {
            let before = self.modes().before_plan;
            // It may have been switched off meanwhile.
            if !self.set_mode(before) {
                self.set_mode(PermissionMode::Default);
            }
        }
    }

    /// Remembers the mode that plan mode began in.
    fn remember_mode_before_plan(&self, from: PermissionMode) {
        if from != PermissionMode::Plan && self.mode() == PermissionMode::Plan {
            self.modes().before_plan = from;
        }
    }

    /// A single value is put in at once; a panic elsewhere cannot leave it half changed.
    fn modes(&self) -> MutexGuard<'_, Modes> {
        self.shared.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a rule takes a tool away altogether.
    pub fn denies_tool_named(&self, name: &str) -> bool {
        self.denies_tool(name, &ToolFacts::for_tool(name, &[]))
    }

    /// The same, for a tool of which more is known than its name.
    pub fn denies_tool(&self, name: &str, facts: &ToolFacts) -> bool {
        let call = Call { tool: name, input: &Value::Null };
        // What is lent for a turn is judged call by call: the list of tools stays as it is.
        self.current.borrow().rules.rule_removing_tool(facts.name(&call)).is_some()
    }

    /// Judges one call, as things stand.
    pub fn decide(&self, tool: &str, facts: &ToolFacts, input: &Value, hook: Option<PreToolDecision>) -> ResolvedDecision {
        self.decide_in_mode(self.mode(), tool, facts, input, hook)
    }

    /// Judges one call as things stand, but in this mode: an answer that changes the mode is not to be judged by its own
    /// outcome.
    pub fn decide_in_mode(
        &self,
        mode: PermissionMode,
        tool: &str,
        facts: &ToolFacts,
        input: &Value,
        hook: Option<PreToolDecision>,
    ) -> ResolvedDecision {
        let standing = self.effective();
        let cwd = self.workspace.cwd();
        let vouched_for = self.settings().trust() != Trust::Untrusted;
        let facts = CallContext {
            hook,
            protected_paths: &self.shared.protected_paths,
            git_inspector: (!vouched_for).then_some(&self.shared.untrusted_repos as &dyn GitInspector),
            ..CallContext::new(&cwd, &self.shared.home, &RealFs, facts.clone())
        };
        let call = Call { tool, input };
        let judged = decide_and_resolve(&call, &standing.rules, mode, &standing.dirs, &facts);
        // An agent that only plans asks nobody in a session that never asks.
        let mode = if mode == PermissionMode::Plan { standing.mode } else { mode };
        ResolvedDecision { decision: judged.decision.in_mode(mode), ..judged }
    }

    /// A path as people know it: from where the shell stands, from home, or as it is.
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

    /// Rules, mode and directories, as things stand.
    pub fn snapshot(&self) -> Arc<PermissionSet> {
        self.effective()
    }

    /// What a search may see, as things stand.
    pub fn search_filter(&self) -> SearchFilter {
        SearchFilter::new(self.effective(), Arc::clone(&self.shared.home))
    }

    /// The changes that are made from now on.
    pub fn changes(&self) -> PermissionChanges {
        PermissionChanges(self.current.subscribe())
    }

    /// The rights as they would be if the project were trusted. What is done with them does not touch these.
    pub fn if_trusted(&self) -> Result<Self, String> {
        let settings = self.settings().as_if_trusted().map_err(|error| error.to_string())?;
        let effective = settings.effective().clone();
        let trusted = Self {
            current: watch::Sender::new(Arc::clone(&self.current.borrow())),
            settings: Arc::new(Mutex::new(settings)),
            ..self.clone()
        };
        let (all, tolerance) = (settings::LayerSource::ALL, self.shared.tolerance);
        trusted.update(|standing| {
            from_settings::replace_sources(standing, &effective, all, &self.workspace, tolerance)
        })?;
        Ok(trusted)
    }

    fn update_workspace(&self) {
        self.workspace.set_additional_dirs(self.current.borrow().dirs.real_paths());
    }
}

/// Changes of rights.
#[derive(Debug)]
pub struct PermissionChanges(watch::Receiver<Arc<PermissionSet>>);

impl PermissionChanges {
    /// Waits for the next one; for ever, once nobody can make any.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Takes in the rules that the options name.
fn add_option_rules(
    rules: &mut RuleSet,
    root: &Path,
    allow: Vec<String>,
    deny: Vec<String>,
) -> Result<Vec<String>, String> {
    // `Tool()` in the options has always meant the whole tool.
    let whole = |rule: String| rule.strip_suffix("()").map(str::to_owned).unwrap_or(rule);
    let allow = allow.into_iter().map(whole).collect();
    let layer = RuleLayer { allow, deny, ..RuleLayer::new(RuleSource::CliArg, root) };
    let loaded = rules.add_layer(&layer, &RealFs);
    match loaded.errors.first() {
        Some(error) => Err(format!("The session does not start without a rule that should deny: {error}.")),
        None => Ok(loaded.warnings.iter().map(ToString::to_string).collect()),
    }
}

/// There is no mode `auto`: whoever wants it is asked as usual.
fn supported_mode(mode: PermissionMode) -> PermissionMode {
    if mode == PermissionMode::Auto { PermissionMode::Default } else { mode }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use PermissionMode::{AcceptEdits, BypassPermissions, Default, Plan};

    use super::*;

    fn test_state(mode: PermissionMode, bypass: Bypass) -> PermissionState {
        let workspace = Workspace::new("/place".into(), "/place/.spill".into(), BTreeMap::new());
        let grants = InitialPermissions { mode, ..InitialPermissions::default() };
        PermissionState::new(Arc::new(workspace), Settings::empty(), grants, bypass).unwrap().state
    }

    #[test]
    fn after_plan_mode_the_mode_is_what_it_was_before() {
        let rows = [
            ("from the start", Plan, &[][..], Default),
            ("switched to", AcceptEdits, &[Plan], AcceptEdits),
            ("switched to twice", AcceptEdits, &[Plan, Plan], AcceptEdits),
            ("begun a second time", AcceptEdits, &[Plan, Default, Plan], Default),
            ("left already", AcceptEdits, &[Plan, Default], Default),
            ("never begun", AcceptEdits, &[], AcceptEdits),
            ("from the widest mode", BypassPermissions, &[Plan], BypassPermissions),
        ];
        for (name, start, switches, expected) in rows {
            let rights = test_state(start, Bypass::Available);
            for mode in switches {
                assert!(rights.set_mode(*mode), "{name}");
            }
            rights.leave_plan();
            assert_eq!(rights.mode(), expected, "{name}");
        }
    }

    #[test]
    fn the_mode_auto_is_never_in_force() {
        let by_session = test_state(PermissionMode::Auto, Bypass::Available);
        let by_kind = test_state(BypassPermissions, Bypass::Available).for_subagent(Some(PermissionMode::Auto));
        by_kind.set_server_mode("server", Some(PermissionMode::Auto));
        for mode in [by_session.mode(), by_kind.mode(), by_kind.mode_for_server(Some("server"))] {
            assert_eq!(mode, Default);
        }
    }

    #[test]
    fn who_plans_in_a_session_that_never_asks_asks_nobody() {
        let (facts, input) =
            (ToolFacts::for_tool("Bash", &["command"]), serde_json::json!({"command": "touch a"}));
        for (session, asks) in [(Default, true), (PermissionMode::DontAsk, false)] {
            let agent = test_state(session, Bypass::Unavailable).for_subagent(Some(Plan));
            assert_eq!(agent.mode(), Plan);
            let decision = agent.decide("Bash", &facts, &input, None).decision;
            assert_eq!(matches!(decision, whimbrel_policy::Decision::Ask(_)), asks, "{session:?}");
        }
    }

    #[test]
    fn the_judge_is_told_of_the_repository_and_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/.git")).unwrap();
        let judged = |trust: Trust, tool: &str, input: Value| {
            let (cwd, config) = (root.join("work"), Some(root.join("work/conf")));
            let settings =
                Settings::load(settings::SettingsRequest { config_dir: config, cwd, trust, ..settings::SettingsRequest::default() })
                    .unwrap();
            let workspace = Workspace::new(root.join("work"), root.join("spill"), BTreeMap::new());
            let grants = InitialPermissions { mode: AcceptEdits, ..InitialPermissions::default() };
            let granted = PermissionState::new(Arc::new(workspace), settings, grants, Bypass::Unavailable).unwrap();
            let facts = ToolFacts::for_tool(tool, &["command", "file_path"]);
            let decision = granted.state.decide(tool, &facts, &input, None).decision;
            matches!(decision, whimbrel_policy::Decision::Allow(_))
        };
        let status = || serde_json::json!({"command": "git status"});
        std::fs::write(root.join("work/.git/config"), "[core]\nbare = false\n").unwrap();
        assert!(judged(Trust::Untrusted, "Bash", status()), "an ordinary repository");
        std::fs::write(root.join("work/.git/config"), "[core]\nfsmonitor = touch pwned\n").unwrap();
        assert!(!judged(Trust::Untrusted, "Bash", status()), "one that names a program");
        assert!(judged(Trust::Full, "Bash", status()), "one that is trusted");
        let write =
            |path: &str| serde_json::json!({"file_path": root.join("work").join(path), "content": ""});
        assert!(!judged(Trust::Full, "Write", write("conf/settings.json")));
        assert!(judged(Trust::Full, "Write", write("configuration")));
    }
}
