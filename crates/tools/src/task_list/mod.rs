//! The task list of a session or a team of agents.
//!
//! Several agents, also in other processes, may use one list. Each change is atomic, so a task is claimed by one agent
//! only. Modules: [`item`] (one task), [`state`] (the list, pure), `disk` (storage), [`todos`] (the private to-do list
//! of one agent).

mod disk;
pub mod item;
pub mod state;
#[cfg(test)]
mod tests;
pub mod todos;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use whimbrel_os::files;

use item::TaskItem;
use state::{NewTaskItem, TaskItemUpdate, TaskListState, TaskRuleError, UpdatedTaskItem};
pub use todos::TodoList;

/// How long to wait for the lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Handle of a task list. Clones share the list.
#[derive(Debug, Clone)]
pub struct TaskList(Arc<Inner>);

/// The current list: the session's own, or that of the team it leads.
#[derive(Debug)]
struct Inner {
    session_store: Store,
    /// Parent directory of team lists; `None` if teams use the session's list.
    teams_dir: Option<PathBuf>,
    /// Directory of the current team's list.
    team_dir: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
enum Store {
    /// Lives as long as the session.
    Memory(Mutex<TaskListState>),
    /// A directory that other processes may use too. Created with the first task.
    Directory(PathBuf),
}

/// The store in use.
enum StoreRef<'a> {
    Memory(&'a Mutex<TaskListState>),
    Directory(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum TaskListError {
    /// The operation violates a rule of the list.
    #[error(transparent)]
    Rejected(#[from] TaskRuleError),
    #[error("the task list cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// Another process holds the lock.
    #[error("another process holds the lock of the task list")]
    LockTimeout,
}

impl Default for TaskList {
    fn default() -> Self {
        Self::new(Store::Memory(Mutex::default()), None)
    }
}

impl TaskList {
    fn new(session_store: Store, teams_dir: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { session_store, teams_dir, team_dir: Mutex::default() }))
    }

    /// The list of a session below the configuration directory. Teams get their own list next to it.
    pub fn for_session(config: &Path, session: &str) -> Self {
        let lists = config.join("tasks");
        Self::new(Store::Directory(lists.join(sanitize_dir_name(session))), Some(lists))
    }

    /// A named list below the configuration directory, shared by several sessions and their teams.
    pub fn shared(config: &Path, name: &str) -> Self {
        Self::new(Store::Directory(config.join("tasks").join(sanitize_dir_name(name))), None)
    }

    /// Switches to a team's list. Returns false if teams use the session's list.
    pub fn switch_to_team(&self, team: &str) -> bool {
        let dir = self.0.teams_dir.as_ref().map(|lists| lists.join(team));
        let switched = dir.is_some();
        *self.lock_team() = dir;
        switched
    }

    /// Switches back to the session's own list.
    pub fn switch_to_session(&self) {
        *self.lock_team() = None;
    }

    pub async fn items(&self) -> Result<Vec<TaskItem>, TaskListError> {
        self.read(|state| state.items().cloned().collect()).await
    }

    pub async fn get(&self, id: &str) -> Result<Option<TaskItem>, TaskListError> {
        let id = id.to_owned();
        self.read(move |state| state.get(&id).cloned()).await
    }

    pub async fn add(&self, item: NewTaskItem) -> Result<TaskItem, TaskListError> {
        self.modify(|state| Ok(state.add(item))).await
    }

    pub async fn update(&self, id: &str, change: TaskItemUpdate) -> Result<UpdatedTaskItem, TaskListError> {
        let id = id.to_owned();
        self.modify(move |state| state.update(&id, change)).await
    }

    pub async fn remove(&self, id: &str) -> Result<(), TaskListError> {
        let id = id.to_owned();
        self.modify(move |state| state.remove(&id)).await
    }

    /// Assigns a task to an agent, unless another agent has it or it is blocked.
    pub async fn claim(&self, id: &str, agent: &str) -> Result<TaskItem, TaskListError> {
        let (id, agent) = (id.to_owned(), agent.to_owned());
        self.modify(move |state| state.claim(&id, &agent)).await
    }

    fn current_store(&self) -> StoreRef<'_> {
        match (self.lock_team().clone(), &self.0.session_store) {
            (Some(dir), _) => StoreRef::Directory(dir),
            (None, Store::Directory(dir)) => StoreRef::Directory(dir.clone()),
            (None, Store::Memory(state)) => StoreRef::Memory(state),
        }
    }

    /// The value is replaced as a whole, so a poisoned lock holds valid data.
    fn lock_team(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.team_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read<T: Send + 'static>(
        &self,
        read_state: impl FnOnce(&TaskListState) -> T + Send + 'static,
    ) -> Result<T, TaskListError> {
        match self.current_store() {
            StoreRef::Memory(state) => Ok(read_state(&lock(state))),
            StoreRef::Directory(dir) => run_with_timeout(move || disk::read_list(&dir, read_state)).await,
        }
    }

    /// Applies one change; on disk the lock is held meanwhile.
    async fn modify<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut TaskListState) -> Result<T, TaskRuleError> + Send + 'static,
    ) -> Result<T, TaskListError> {
        match self.current_store() {
            StoreRef::Memory(state) => Ok(change(&mut lock(state))?),
            StoreRef::Directory(dir) => Ok(run_with_timeout(move || disk::modify_list(&dir, change)).await??),
        }
    }
}

/// Makes a name usable as a directory name.
fn sanitize_dir_name(name: &str) -> String {
    let to_dir_char = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().map(to_dir_char).collect()
}

/// A panicking change leaves a valid list.
fn lock(state: &Mutex<TaskListState>) -> MutexGuard<'_, TaskListState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs disk work that may wait for the lock of another process.
async fn run_with_timeout<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TaskListError> {
    let result = tokio::time::timeout(LOCK_TIMEOUT, files::run_blocking(work))
        .await
        .map_err(|_| TaskListError::LockTimeout)?;
    Ok(result??)
}
