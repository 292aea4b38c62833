//! The agenda: the list of tasks that a session, or a team of agents, works through.
//!
//! Many agents, also of other processes, may use one list at once: each change is one step that nobody sees half of, so
//! a task is claimed by one of them only. Rooms: [`item`] (one task), [`plan`] (the list, pure), `folder` (the list on
//! disk), [`todos`] (the simpler list that one agent keeps for itself).

mod folder;
pub mod item;
pub mod plan;
#[cfg(test)]
mod tests;
pub mod todos;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files;
use item::Item;
use plan::{Change, Changed, Draft, Plan, Refusal};

pub use todos::Todos;

/// How long others may keep a list to themselves.
const PATIENCE: Duration = Duration::from_secs(20);

/// A handle on a list. Cheap to clone; the clones are one list.
#[derive(Debug, Clone)]
pub struct Agenda(Arc<Lists>);

/// The list that is worked on: that of the session, or of the team that it leads.
#[derive(Debug)]
struct Lists {
    own: Store,
    /// Where teams have lists of their own; none if they work on the session's.
    teams: Option<PathBuf>,
    /// The folder of the team that is led.
    team: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
enum Store {
    /// As long as the session lives.
    Memory(Mutex<Plan>),
    /// In a folder that others may use too. It is made with the first task.
    Folder(PathBuf),
}

/// Where a list is.
enum Place<'a> {
    Memory(&'a Mutex<Plan>),
    Folder(PathBuf),
}

/// Why a list could not be used or changed.
#[derive(Debug, thiserror::Error)]
pub enum AgendaFault {
    /// The list says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk does.
    #[error("the task list cannot be read or written: {0}")]
    Disk(#[from] io::Error),
    /// Somebody holds it and does not let go.
    #[error("another process holds the task list and does not let go of it")]
    Held,
}

impl Default for Agenda {
    fn default() -> Self {
        Self::of(Store::Memory(Mutex::default()), None)
    }
}

impl Agenda {
    fn of(own: Store, teams: Option<PathBuf>) -> Self {
        Self(Arc::new(Lists { own, teams, team: Mutex::default() }))
    }

    /// The list of a session below the configuration folder. A team that it leads has its own beside it.
    pub fn of_session(config: &Path, session: &str) -> Self {
        let lists = config.join("tasks");
        Self::of(Store::Folder(lists.join(flat(session))), Some(lists))
    }

    /// A list of this name below the configuration folder, which several sessions and their teams share.
    pub fn shared(config: &Path, name: &str) -> Self {
        Self::of(Store::Folder(config.join("tasks").join(flat(name))), None)
    }

    /// From now on the list is that of a team; false if teams work on the session's own.
    pub fn go_to_team(&self, team: &str) -> bool {
        let folder = self.0.teams.as_ref().map(|lists| lists.join(team));
        let moved = folder.is_some();
        *self.team() = folder;
        moved
    }

    /// The team is gone: the list is the session's own again.
    pub fn come_home(&self) {
        *self.team() = None;
    }

    /// All tasks, in order.
    pub async fn items(&self) -> Result<Vec<Item>, AgendaFault> {
        self.look(|plan| plan.items().cloned().collect()).await
    }

    /// One task.
    pub async fn get(&self, id: &str) -> Result<Option<Item>, AgendaFault> {
        let id = id.to_owned();
        self.look(move |plan| plan.get(&id).cloned()).await
    }

    /// Puts a task on the list.
    pub async fn add(&self, draft: Draft) -> Result<Item, AgendaFault> {
        self.with(|plan| Ok(plan.add(draft))).await
    }

    /// Changes a task.
    pub async fn change(&self, id: &str, change: Change) -> Result<Changed, AgendaFault> {
        let id = id.to_owned();
        self.with(move |plan| plan.change(&id, change)).await
    }

    /// Takes a task off the list.
    pub async fn remove(&self, id: &str) -> Result<(), AgendaFault> {
        let id = id.to_owned();
        self.with(move |plan| plan.remove(&id)).await
    }

    /// An agent takes a task on, if nobody else has and nothing stands in its way.
    pub async fn claim(&self, id: &str, agent: &str) -> Result<Item, AgendaFault> {
        let (id, agent) = (id.to_owned(), agent.to_owned());
        self.with(move |plan| plan.claim(&id, &agent)).await
    }

    /// Where the list is now.
    fn place(&self) -> Place<'_> {
        match (self.team().clone(), &self.0.own) {
            (Some(folder), _) => Place::Folder(folder),
            (None, Store::Folder(folder)) => Place::Folder(folder.clone()),
            (None, Store::Memory(plan)) => Place::Memory(plan),
        }
    }

    /// A whole value is put in or taken out at once.
    fn team(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.team.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Plan) -> T + Send + 'static,
    ) -> Result<T, AgendaFault> {
        match self.place() {
            Place::Memory(plan) => Ok(look(&open(plan))),
            Place::Folder(folder) => patiently(move || folder::look(&folder, look)).await,
        }
    }

    /// One step on the list; on disk nobody else comes in between.
    async fn with<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Plan) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, AgendaFault> {
        match self.place() {
            Place::Memory(plan) => Ok(step(&mut open(plan))?),
            Place::Folder(folder) => Ok(patiently(move || folder::change(&folder, step)).await??),
        }
    }
}

/// A name as that of a folder.
fn flat(name: &str) -> String {
    let flat = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    name.chars().map(flat).collect()
}

/// A step that panics leaves a list that is still one.
fn open(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does disk work that may have to wait for others.
async fn patiently<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, AgendaFault> {
    let done = tokio::time::timeout(PATIENCE, files::aside(work)).await.map_err(|_| AgendaFault::Held)?;
    Ok(done??)
}
