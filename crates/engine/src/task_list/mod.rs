//! The agenda: the list of tasks that a session, or a team of agents, works through.
//!
//! Many agents, also of other processes, may use one list at once: each change is one step that nobody sees half of, so
//! a task is claimed by one of them only. Rooms: [`item`] (one task), [`plan`] (the list, pure), `folder` (the list on
//! disk), [`todos`] (the simpler list that one agent keeps for itself).

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

use crate::files;
use item::TaskItem;
use state::{TaskItemUpdate, UpdatedTaskItem, NewTaskItem, TaskListState, TaskRuleError};

pub use todos::TodoList;

/// How long others may keep a list to themselves.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// A handle on a list. Cheap to clone; the clones are one list.
#[derive(Debug, Clone)]
pub struct TaskList(Arc<Inner>);

/// The list that is worked on: that of the session, or of the team that it leads.
#[derive(Debug)]
struct Inner {
    session_store: Store,
    /// Where teams have lists of their own; none if they work on the session's.
    teams_dir: Option<PathBuf>,
    /// The folder of the team that is led.
    team_dir: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
enum Store {
    /// As long as the session lives.
    Memory(Mutex<TaskListState>),
    /// In a folder that others may use too. It is made with the first task.
    Directory(PathBuf),
}

/// Where a list is.
enum StoreRef<'a> {
    Memory(&'a Mutex<TaskListState>),
    Directory(PathBuf),
}

/// Why a list could not be used or changed.
#[derive(Debug, thiserror::Error)]
pub enum TaskListError {
    /// The list says no.
    #[error(transparent)]
    Rejected(#[from] TaskRuleError),
    /// The disk does.
    #[error("the task list cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// Somebody holds it and does not let go.
    #[error("another process holds the task list and does not let go of it")]
    LockTimeout,
}

impl Default for TaskList {
    fn default() -> Self {
        Self::new(Store::Memory(Mutex::default()), None)
    }
}

impl TaskList {
    fn new(own: Store, teams: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { session_store: own, teams_dir: teams, team_dir: Mutex::default() }))
    }

    /// The list of a session below the configuration folder. A team that it leads has its own beside it.
    pub fn for_session(config: &Path, session: &str) -> Self {
        let lists = config.join("tasks");
        Self::new(Store::Directory(lists.join(sanitize_dir_name(session))), Some(lists))
    }

    /// A list of this name below the configuration folder, which several sessions and their teams share.
    pub fn shared(config: &Path, name: &str) -> Self {
        Self::new(Store::Directory(config.join("tasks").join(sanitize_dir_name(name))), None)
    }

    /// From now on the list is that of a team; false if teams work on the session's own.
    pub fn switch_to_team(&self, team: &str) -> bool {
        let folder = self.0.teams_dir.as_ref().map(|lists| lists.join(team));
        let moved = folder.is_some();
        *self.lock_team() = folder;
        moved
    }

    /// The team is gone: the list is the session's own again.
    pub fn switch_to_session(&self) {
        *self.lock_team() = None;
    }

    /// All tasks, in order.
    pub async fn items(&self) -> Result<Vec<TaskItem>, TaskListError> {
        self.read(|plan| plan.items().cloned().collect()).await
    }

    /// One task.
    pub async fn get(&self, id: &str) -> Result<Option<TaskItem>, TaskListError> {
        let id = id.to_owned();
        self.read(move |plan| plan.get(&id).cloned()).await
    }

    /// Puts a task on the list.
    pub async fn add(&self, draft: NewTaskItem) -> Result<TaskItem, TaskListError> {
        self.modify(|plan| Ok(plan.add(draft))).await
    }

    /// Changes a task.
    pub async fn update(&self, id: &str, change: TaskItemUpdate) -> Result<UpdatedTaskItem, TaskListError> {
        let id = id.to_owned();
        self.modify(move |plan| plan.update(&id, change)).await
    }

    /// Takes a task off the list.
    pub async fn remove(&self, id: &str) -> Result<(), TaskListError> {
        let id = id.to_owned();
        self.modify(move |plan| plan.remove(&id)).await
    }

    /// An agent takes a task on, if nobody else has and nothing stands in its way.
    pub async fn claim(&self, id: &str, agent: &str) -> Result<TaskItem, TaskListError> {
        let (id, agent) = (id.to_owned(), agent.to_owned());
        self.modify(move |plan| plan.claim(&id, &agent)).await
    }

    /// Where the list is now.
    fn current_store(&self) -> StoreRef<'_> {
        match (self.lock_team().clone(), &self.0.session_store) {
            (Some(folder), _) => StoreRef::Directory(folder),
            (None, Store::Directory(folder)) => StoreRef::Directory(folder.clone()),
            (None, Store::Memory(plan)) => StoreRef::Memory(plan),
        }
    }

    /// A whole value is put in or taken out at once.
    fn lock_team(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.team_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&TaskListState) -> T + Send + 'static,
    ) -> Result<T, TaskListError> {
        match self.current_store() {
            StoreRef::Memory(plan) => Ok(look(&lock(plan))),
            StoreRef::Directory(folder) => run_with_timeout(move || disk::read_list(&folder, look)).await,
        }
    }

    /// One step on the list; on disk nobody else comes in between.
    async fn modify<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut TaskListState) -> Result<T, TaskRuleError> + Send + 'static,
    ) -> Result<T, TaskListError> {
        match self.current_store() {
            StoreRef::Memory(plan) => Ok(step(&mut lock(plan))?),
            StoreRef::Directory(folder) => Ok(run_with_timeout(move || disk::modify_list(&folder, step)).await??),
        }
    }
}

/// A name as that of a folder.
fn sanitize_dir_name(name: &str) -> String {
    let flat = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    name.chars().map(flat).collect()
}

/// A step that panics leaves a list that is still one.
fn lock(plan: &Mutex<TaskListState>) -> MutexGuard<'_, TaskListState> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does disk work that may have to wait for others.
async fn run_with_timeout<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TaskListError> {
    let done = tokio::time::timeout(LOCK_TIMEOUT, files::run_blocking(work)).await.map_err(|_| TaskListError::LockTimeout)?;
    Ok(done??)
}
