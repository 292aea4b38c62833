//! Where a session works: its folder, the shell's current folder, the environment of commands, and which files the
//! model has seen. Shared by the calls of a session; nothing here is held across an await.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::session::checkpoint::Checkpoints;
use crate::settings::home_dir;
use crate::worktree::Worktree;

/// A session's working place.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Other folders that the session may use.
    additional_dirs: Arc<Mutex<Vec<PathBuf>>>,
    /// Where long tool output is put.
    output_dir: PathBuf,
    cwd: Mutex<PathBuf>,
    /// The work tree that the session has entered, if it has.
    worktree: Mutex<Option<Worktree>>,
    /// Whether it is for an agent that works in a work tree of its own and nowhere else.
    isolated: bool,
    seen_files: Mutex<HashMap<PathBuf, SeenFile>>,
    env: Arc<Mutex<BTreeMap<String, String>>>,
    /// Files as they were at each prompt, if the host wants that.
    checkpoints: Option<Arc<Checkpoints>>,
    /// What tools have written, counted in lines.
    changed_lines: Arc<Mutex<LineCounts>>,
}

/// Lines that tools have added to files and taken out of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// How many were added.
    pub added: u64,
    /// How many were taken out.
    pub removed: u64,
}

/// A file as the model last saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenFile {
    /// Where it lies, links followed.
    pub real_path: PathBuf,
    /// When it had been changed last.
    pub modified: SystemTime,
    /// How many bytes it had.
    pub size: u64,
    /// Its text, if it was short enough to keep; needed to tell the model what somebody else changed.
    pub text: Option<Arc<str>>,
}

impl Workspace {
    /// A workspace at `root`; long tool output goes below `spill`.
    pub fn new(root: PathBuf, output_dir: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            cwd: Mutex::new(root.clone()),
            worktree: Mutex::default(),
            isolated: false,
            additional_dirs: Arc::default(),
            seen_files: Mutex::default(),
            env: Arc::new(Mutex::new(env)),
            checkpoints: None,
            changed_lines: Arc::default(),
            root,
            output_dir,
        }
    }

    /// The same, with checkpoints of its files.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Option<Checkpoints>) -> Self {
        self.checkpoints = checkpoints.map(Arc::new);
        self
    }

    /// The same session's place for an agent that works in a work tree of its own: folders, environment and checkpoints
    /// are shared, but it stands in its tree and has seen no file yet.
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
            checkpoints: self.checkpoints.clone(),
            changed_lines: Arc::clone(&self.changed_lines),
        }
    }

    /// Counts lines that a tool has changed.
    pub fn add_changed_lines(&self, more: LineCounts) {
        let mut lines = lock(&self.changed_lines);
        lines.added += more.added;
        lines.removed += more.removed;
    }

    /// The lines that tools have changed.
    pub fn changed_lines(&self) -> LineCounts {
        *lock(&self.changed_lines)
    }

    /// The checkpoints, if there are any.
    pub fn checkpoints(&self) -> Option<Arc<Checkpoints>> {
        self.checkpoints.clone()
    }

    /// The folder that the session was started in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for long tool output. It may not exist yet.
    pub fn output_dir(&self) -> &Path {
        &self.output_dir
    }

    /// The shell's current folder.
    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    /// Moves the shell's current folder.
    pub fn set_cwd(&self, to: PathBuf) {
        *lock(&self.cwd) = to;
    }

    /// The folder that the session works in: the one it was started in, or a work tree that it has entered since. This is
    /// where the shell goes back to.
    pub fn base_dir(&self) -> PathBuf {
        lock(&self.worktree).as_ref().map_or_else(|| self.root.clone(), |tree| tree.path.clone())
    }

    /// The work tree that the session has entered, if it has.
    pub fn worktree(&self) -> Option<Worktree> {
        lock(&self.worktree).clone()
    }

    /// Where commands go on if the folder that they should work in is gone: nowhere, for an agent that works apart.
    pub fn fallback_dir(&self) -> Option<&Path> {
        (!self.isolated).then_some(&*self.root)
    }

    /// The work tree of an agent that works apart, if it is gone. Touches the disk.
    pub fn missing_worktree(&self) -> Option<Worktree> {
        self.worktree().filter(|tree| self.isolated && !tree.exists())
    }

    /// Moves the session into a work tree, or back to where it was started.
    pub fn set_worktree(&self, tree: Option<Worktree>) {
        *lock(&self.worktree) = tree;
        self.set_cwd(self.base_dir());
    }

    /// Says which folders the session may use.
    pub fn set_additional_dirs(&self, folders: Vec<PathBuf>) {
        *lock(&self.additional_dirs) = folders;
    }

    /// The session's folder and the additional ones.
    pub fn directories(&self) -> Vec<PathBuf> {
        std::iter::once(&self.root).chain(&*lock(&self.additional_dirs)).cloned().collect()
    }

    /// Whether a path lies in the session's folder or one of the additional ones. Purely by name.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || lock(&self.additional_dirs).iter().any(|folder| path.starts_with(folder))
    }

    /// A path as the model wrote it, made absolute: relative to the current folder, `~` is the home folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        let below_home = if path == "~" { Some("") } else { path.strip_prefix("~/") };
        let path = match below_home {
            Some(rest) => self.home_dir().map_or_else(|| PathBuf::from(path), |home| home.join(rest)),
            None => PathBuf::from(path),
        };
        if path.is_absolute() { path } else { self.cwd().join(path) }
    }

    /// The person's home folder, if the environment names one.
    pub fn home_dir(&self) -> Option<PathBuf> {
        home_dir(self.variable("HOME").as_deref())
    }

    /// The environment of commands.
    pub fn environment(&self) -> BTreeMap<String, String> {
        lock(&self.env).clone()
    }

    /// One variable of it.
    pub fn variable(&self, name: &str) -> Option<String> {
        lock(&self.env).get(name).cloned()
    }

    /// Sets variables for later commands.
    pub fn set_variables(&self, variables: BTreeMap<String, String>) {
        lock(&self.env).extend(variables);
    }

    /// Takes variables away from later commands.
    pub fn unset_variables<'a>(&self, names: impl Iterator<Item = &'a String>) {
        let mut env = lock(&self.env);
        for name in names {
            env.remove(name);
        }
    }

    /// Notes that the model has seen a file as it is now.
    pub fn record_seen(&self, path: &Path, seen: SeenFile) {
        lock(&self.seen_files).insert(path.to_path_buf(), seen);
    }

    /// What the model last saw of a file.
    pub fn seen_file(&self, path: &Path) -> Option<SeenFile> {
        lock(&self.seen_files).get(path).cloned()
    }

    /// Every file that the model has seen.
    pub fn seen_files(&self) -> Vec<(PathBuf, SeenFile)> {
        lock(&self.seen_files).iter().map(|(path, seen)| (path.clone(), seen.clone())).collect()
    }

    /// Forgets a file.
    pub fn forget_seen(&self, path: &Path) {
        lock(&self.seen_files).remove(path);
    }
}

/// Each of these locks guards one plain value; a panic elsewhere cannot leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
