//! State shared by the tool calls of a session: directories, working directory, environment of commands, and the files
//! that the model has read. No lock is held across an await.

mod env_files;
mod seen_files;
mod working_dir;
pub mod worktree;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_config::key_variables::HiddenVariables;
use whimbrel_config::settings::home_dir;
use whimbrel_process::{SHELL_PREFIX_VARIABLE, add_shell_prefix};
use whimbrel_session_store::checkpoint::Checkpoints;

use crate::sandbox::{SandboxProbe, SessionSandbox};

pub use self::env_files::ENV_FILE_VARIABLE;
use self::env_files::{HookEnvFile, source_files};
pub use self::seen_files::SeenFile;
pub(crate) use self::seen_files::{ReadState, compare_with_seen};
use self::worktree::Worktree;

/// Switch: commands and agents run in the foreground only.
pub const DISABLE_BACKGROUND_VARIABLE: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Additional directories that the session may use.
    additional_dirs: Arc<Mutex<Vec<PathBuf>>>,
    /// Directory for long tool output.
    output_dir: PathBuf,
    cwd: Mutex<PathBuf>,
    /// The worktree that the session has entered.
    worktree: Mutex<Option<Worktree>>,
    /// Set for an isolated agent, which must work in its worktree only.
    isolated: bool,
    seen_files: Mutex<HashMap<PathBuf, SeenFile>>,
    env: Arc<Mutex<BTreeMap<String, String>>>,
    /// Key variables that programs do not get.
    hidden_variables: HiddenVariables,
    /// File to which hooks add variables for Bash commands.
    hook_env_file: Arc<HookEnvFile>,
    /// Confines commands, if the settings ask for it.
    sandbox: Arc<SessionSandbox>,
    /// File states before each prompt, if the host enabled checkpoints.
    checkpoints: Mutex<Option<Arc<Checkpoints>>>,
    /// Lines changed by tools.
    changed_lines: Arc<Mutex<LineCounts>>,
}

/// Lines that tools have added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub added: u64,
    pub removed: u64,
}

impl Workspace {
    /// A workspace at `root`; long tool output goes below `output_dir`.
    pub fn new(root: PathBuf, output_dir: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            cwd: Mutex::new(root.clone()),
            worktree: Mutex::default(),
            isolated: false,
            additional_dirs: Arc::default(),
            seen_files: Mutex::default(),
            hidden_variables: HiddenVariables::new(&[], &env),
            hook_env_file: Arc::default(),
            sandbox: Arc::default(),
            env: Arc::new(Mutex::new(env)),
            checkpoints: Mutex::default(),
            changed_lines: Arc::default(),
            root,
            output_dir,
        }
    }

    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Option<Checkpoints>) -> Self {
        self.checkpoints = Mutex::new(checkpoints.map(Arc::new));
        self
    }

    /// Saves file states to other checkpoints from now on.
    pub fn set_checkpoints(&self, checkpoints: Checkpoints) {
        *lock(&self.checkpoints) = Some(Arc::new(checkpoints));
    }

    /// Passes the named key variables on to programs.
    #[must_use]
    pub fn with_passed_variables(mut self, names: &[String]) -> Self {
        self.hidden_variables = HiddenVariables::new(names, &lock(&self.env));
        self
    }

    /// Confines commands by means of this process's answer to what the machine can do.
    #[must_use]
    pub fn with_sandbox_probe(mut self, probe: Arc<SandboxProbe>) -> Self {
        self.sandbox = Arc::new(SessionSandbox::new(probe));
        self
    }

    pub fn sandbox(&self) -> &Arc<SessionSandbox> {
        &self.sandbox
    }

    /// Workspace of an isolated agent in the same session. It shares directories, environment and checkpoints, but has
    /// its own working directory and list of read files.
    #[must_use]
    pub fn for_worktree(&self, tree: Worktree) -> Self {
        Self {
            root: self.root.clone(),
            additional_dirs: Arc::clone(&self.additional_dirs),
            output_dir: self.output_dir.clone(),
            cwd: Mutex::new(tree.path.clone()),
            worktree: Mutex::new(Some(tree)),
            isolated: true,
            seen_files: Mutex::default(),
            env: Arc::clone(&self.env),
            hidden_variables: self.hidden_variables.clone(),
            hook_env_file: Arc::clone(&self.hook_env_file),
            sandbox: Arc::clone(&self.sandbox),
            checkpoints: Mutex::new(self.checkpoints()),
            changed_lines: Arc::clone(&self.changed_lines),
        }
    }

    pub fn add_changed_lines(&self, more: LineCounts) {
        let mut lines = lock(&self.changed_lines);
        lines.added += more.added;
        lines.removed += more.removed;
    }

    pub fn changed_lines(&self) -> LineCounts {
        *lock(&self.changed_lines)
    }

    pub fn checkpoints(&self) -> Option<Arc<Checkpoints>> {
        lock(&self.checkpoints).clone()
    }

    /// The directory in which the session was started.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Directory for long tool output. It may not exist yet.
    pub fn output_dir(&self) -> &Path {
        &self.output_dir
    }

    /// The worktree that the session has entered.
    pub fn worktree(&self) -> Option<Worktree> {
        lock(&self.worktree).clone()
    }

    /// The worktree of an isolated agent, if it no longer exists. Accesses the disk.
    pub fn missing_worktree(&self) -> Option<Worktree> {
        self.worktree().filter(|tree| self.isolated && !tree.exists())
    }

    /// Enters a worktree, or returns to the start directory.
    pub fn set_worktree(&self, tree: Option<Worktree>) {
        *lock(&self.worktree) = tree;
        self.set_cwd(self.base_dir());
    }

    pub fn set_additional_dirs(&self, dirs: Vec<PathBuf>) {
        *lock(&self.additional_dirs) = dirs;
    }

    /// The start directory and the additional ones.
    pub fn directories(&self) -> Vec<PathBuf> {
        std::iter::once(&self.root).chain(&*lock(&self.additional_dirs)).cloned().collect()
    }

    /// Returns whether a path is in one of the session's directories. Compares names only.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || lock(&self.additional_dirs).iter().any(|dir| path.starts_with(dir))
    }

    /// Makes a path absolute: relative to the working directory, `~` is the home directory.
    pub fn resolve(&self, path: &str) -> PathBuf {
        let below_home = if path == "~" { Some("") } else { path.strip_prefix("~/") };
        let path = match below_home {
            Some(rest) => self.home_dir().map_or_else(|| PathBuf::from(path), |home| home.join(rest)),
            None => PathBuf::from(path),
        };
        if path.is_absolute() { path } else { self.cwd().join(path) }
    }

    /// The user's home directory, if the environment names one.
    pub fn home_dir(&self) -> Option<PathBuf> {
        home_dir(self.variable("HOME").as_deref())
    }

    /// Environment of the engine. Programs get [`program_environment`](Self::program_environment).
    pub fn environment(&self) -> BTreeMap<String, String> {
        lock(&self.env).clone()
    }

    /// Environment of programs that the session starts: without key variables.
    pub fn program_environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.environment();
        self.hidden_variables.remove_from(&mut environment);
        environment
    }

    pub fn hidden_variables(&self) -> &HiddenVariables {
        &self.hidden_variables
    }

    /// The file of the user that Bash commands read before they run. It may not exist.
    pub fn user_env_file(&self) -> Option<PathBuf> {
        let path = self.variable(ENV_FILE_VARIABLE).filter(|path| !path.trim().is_empty())?;
        Some(self.root.join(path))
    }

    /// The file to which hooks add variables for Bash commands; `None` if it cannot be created. Accesses the disk.
    pub fn hook_env_file(&self) -> Option<&Path> {
        self.hook_env_file.create()
    }

    /// Prepares a Bash command: the user's and the hooks' files are read first, and the user's command goes in front.
    /// Accesses the disk.
    pub(crate) fn prepare_bash_command(&self, command: String) -> String {
        self.add_shell_prefix(source_files(&self.env_files(), command))
    }

    /// The files that a Bash command reads first. Accesses the disk.
    pub(crate) fn env_files(&self) -> Vec<PathBuf> {
        self.user_env_file().into_iter().chain(self.hook_env_file.if_written()).collect()
    }

    /// Puts the user's command in front of a shell command.
    pub(crate) fn add_shell_prefix(&self, command: String) -> String {
        add_shell_prefix(self.variable(SHELL_PREFIX_VARIABLE).as_deref(), command)
    }

    /// Interprets a variable as a switch.
    pub fn is_switched_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
    }

    /// Returns whether the user has disabled background tasks.
    pub fn is_background_disabled(&self) -> bool {
        self.is_switched_on(DISABLE_BACKGROUND_VARIABLE)
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        lock(&self.env).get(name).cloned()
    }

    /// Sets variables for later commands.
    pub fn set_variables(&self, variables: BTreeMap<String, String>) {
        lock(&self.env).extend(variables);
    }

    /// Removes variables from later commands.
    pub fn unset_variables<'a>(&self, names: impl Iterator<Item = &'a String>) {
        let mut env = lock(&self.env);
        for name in names {
            env.remove(name);
        }
    }
}

/// Each lock guards one plain value, so a poisoned lock holds valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
