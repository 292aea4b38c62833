//! Transcripts of many sessions behind one door: whoever wants them elsewhere than in files implements [`SessionStore`].
//! What a store must do is said by the tests here, which every store passes: [`FileStore`] (the official layout) and
//! [`MemoryStore`].

mod file;
mod memory;
mod summary;
#[cfg(test)]
mod tests;

use std::io;

use async_trait::async_trait;
use whimbrel_wire::RawJson;

pub use file::FileStore;
pub use memory::MemoryStore;
pub use summary::Summary;

/// One transcript: a session's own, or one below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey {
    /// The project: the flat name of its folder, see [`project_key`](super::place::project_key).
    pub project: String,
    /// The session.
    pub session: String,
    /// The transcript below it, e.g. `subagents/agent-1`; none is the session's own.
    pub subpath: Option<String>,
}

impl StoreKey {
    /// A session's own transcript.
    pub fn session(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into(), subpath: None }
    }

    /// A transcript below it.
    pub fn below(&self, subpath: impl Into<String>) -> Self {
        Self { subpath: Some(subpath.into()), ..self.clone() }
    }
}

/// A session on a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The session.
    pub session: String,
    /// When it was written last, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// A session on a list, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The session.
    pub stored: Stored,
    /// What it is about.
    pub summary: Summary,
}

/// Why a store cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What it stores in fails.
    #[error("The session store failed: {0}.")]
    Io(#[from] io::Error),
    /// A key that names nothing that a store could have.
    #[error("{0:?} cannot name a transcript: use names without path parts such as \"..\".")]
    BadKey(String),
}

/// Keeps transcripts: lines in the order in which they came.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Adds lines to a transcript, which is made by its first.
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError>;

    /// All lines of a transcript in order; none if there is no such transcript.
    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError>;

    /// The sessions of a project, the last one first.
    async fn list(&self, project: &str) -> Result<Vec<Stored>, StoreError>;

    /// The same, and what each is about.
    async fn summaries(&self, project: &str) -> Result<Vec<Described>, StoreError>;

    /// Removes a transcript; with a session's own go all below it. One that is not there is removed already.
    async fn delete(&self, key: &StoreKey) -> Result<(), StoreError>;

    /// The subpaths of the transcripts below a session, in order.
    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError>;
}
