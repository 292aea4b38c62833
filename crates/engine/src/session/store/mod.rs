//! Transcripts of many sessions behind one door: whoever wants them elsewhere than in files implements [`SessionStore`].
//! [`FileStore`] (the official layout) and [`MemoryStore`] are here, one in SQLite is a crate of its own. What a store must
//! do is written down as checks in the test kit, for everybody's stores.

mod file;
mod memory;
mod summary;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Deref;
use std::sync::Arc;

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
    /// Something that this store does not do.
    #[error("This session store cannot {0}.")]
    Unsupported(&'static str),
}

impl StoreError {
    /// The same as an error of the system, for whoever tells disks and stores alike.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::BadKey(_) | Self::Unsupported(_) => io::Error::other(self.to_string()),
        }
    }
}

/// Keeps transcripts: lines in the order in which they came.
///
/// Two methods are enough to keep sessions and go on with them by their id; the others are for whoever wants lists, and to
/// go on with the last session.
///
/// A line is a JSON object. Most have an `uuid`: a line whose `uuid` the transcript has already is the same line once more,
/// because a delivery was repeated, and is passed over. Lines without one are always added. Nothing else of a line matters
/// to a store; it may come back with its fields in another order.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Adds lines to a transcript, which is made by its first. All of them or none: an error means that they are offered
    /// again. When this returns, they are safe.
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError>;

    /// All lines of a transcript in order; none if there is no such transcript.
    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError>;

    /// The sessions of a project, the last one first.
    async fn list(&self, _project: &str) -> Result<Vec<Stored>, StoreError> {
        Err(StoreError::Unsupported("list sessions"))
    }

    /// The same, and what each is about. Without a method of its own a store has every transcript read for that.
    async fn summaries(&self, project: &str) -> Result<Vec<Described>, StoreError> {
        let mut described = Vec::new();
        for stored in self.list(project).await? {
            let lines = self.load(&StoreKey::session(project, stored.session.as_str())).await?;
            let mut summary = Summary::default();
            summary.take(lines.iter().flatten());
            described.push(Described { stored, summary });
        }
        Ok(described)
    }

    /// Removes a transcript; with a session's own go all below it. One that is not there is removed already.
    async fn delete(&self, _key: &StoreKey) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("delete sessions"))
    }

    /// The subpaths of the transcripts below a session, in order.
    async fn subkeys(&self, _project: &str, _session: &str) -> Result<Vec<String>, StoreError> {
        Err(StoreError::Unsupported("list what lies below a session"))
    }
}

/// A store that several sessions share. Cheap to clone.
#[derive(Clone)]
pub struct SharedStore(Arc<dyn SessionStore>);

impl SharedStore {
    /// Shares a store.
    pub fn new(store: impl SessionStore + 'static) -> Self {
        Self(Arc::new(store))
    }
}

impl<S: SessionStore + 'static> From<S> for SharedStore {
    fn from(store: S) -> Self {
        Self::new(store)
    }
}

impl<S: SessionStore + 'static> From<Arc<S>> for SharedStore {
    fn from(store: Arc<S>) -> Self {
        Self(store)
    }
}

impl Deref for SharedStore {
    type Target = dyn SessionStore;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl std::fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedStore")
    }
}

/// The `uuid` of a line, if it has one.
pub fn uuid_of(line: &RawJson) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        uuid: Option<serde_json::Value>,
    }
    match line.decode::<Named>().ok()?.uuid {
        Some(serde_json::Value::String(uuid)) if !uuid.is_empty() => Some(uuid),
        _ => None,
    }
}

/// An entry as one line, whatever its spacing was.
pub(super) fn to_single_line(entry: &RawJson) -> String {
    let text = entry.as_str();
    if !text.contains(['\n', '\r']) {
        return text.to_owned();
    }
    entry
        .decode::<serde_json::Value>()
        .map_or_else(|_| text.replace(['\n', '\r'], " "), |value| value.to_string())
}
