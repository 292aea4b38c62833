//! State shared by the tool calls of a session: directories, working directory, environment of commands, and the files
//! that the model has read. No lock is held across an await.

mod seen_files;
mod working_dir;
pub mod worktree;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_config::settings::home_dir;
use whimbrel_session_store::checkpoint::Checkpoints;

pub use self::seen_files::SeenFile;
use self::worktree::Worktree;

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

    /// Environment of commands.
    pub fn environment(&self) -> BTreeMap<String, String> {
        lock(&self.env).clone()
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
