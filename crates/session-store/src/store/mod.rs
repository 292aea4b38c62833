//! The [`SessionStore`] trait for storing transcripts elsewhere than in the default files, with the implementations
//! [`FileStore`] (official layout) and [`MemoryStore`]; SQLite has its own crate. The test kit contains contract tests
//! for implementations.

mod conflict;
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

pub use conflict::check_last_entry;
pub use file::FileStore;
pub use memory::MemoryStore;
pub use summary::StoredSummary;

/// Identifies a transcript: a session's own, or one of its subpaths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey {
    /// Key of the project directory, see [`project_key`](super::paths::project_key).
    pub project: String,
    /// Id of the session.
    pub session: String,
    /// Subpath such as `subagents/agent-1`; `None` for the session's own transcript.
    pub subpath: Option<String>,
}

impl StoreKey {
    /// Key of a session's own transcript.
    pub fn session(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into(), subpath: None }
    }

    /// Key of a transcript with this subpath.
    pub fn with_subpath(&self, subpath: impl Into<String>) -> Self {
        Self { subpath: Some(subpath.into()), ..self.clone() }
    }
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// Id of the session.
    pub session: String,
    /// Time of the last write, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// A session in a list, with its summary.
#[derive(Debug, Clone, PartialEq)]
pub struct SummarizedSession {
    /// Id and time of the last write.
    pub listed: ListedSession,
    /// Title, first prompt and the like.
    pub summary: StoredSummary,
}

/// Error of a session store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The storage failed.
    #[error("The session store failed: {0}.")]
    Io(#[from] io::Error),
    /// The key is not valid, for example because it contains path components.
    #[error("{0:?} cannot name a transcript: use names without path parts such as \"..\".")]
    BadKey(String),
    /// The store does not support this operation.
    #[error("This session store cannot {0}.")]
    Unsupported(&'static str),
    /// Another writer has continued the transcript.
    #[error(
        "The session was continued or deleted elsewhere: its last entry is {}, not {}. Resume it again to go on from \
         there, or fork it.",
        found.as_deref().unwrap_or("none"), expected.as_deref().unwrap_or("none")
    )]
    Conflict {
        /// Uuid of the line that should be the last one; `None` for an empty transcript.
        expected: Option<String>,
        /// Uuid of the last line that has one.
        found: Option<String>,
    },
}

impl StoreError {
    /// Converts to `io::Error`, for code that handles files and stores alike.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::BadKey(_) | Self::Unsupported(_) | Self::Conflict { .. } => {
                io::Error::other(self.to_string())
            }
        }
    }
}

/// Stores transcripts: lines in the order in which they were appended.
///
/// Two methods suffice to store sessions and resume them by id. The others are needed for lists and for resuming the
/// newest session; [`append_after`](SessionStore::append_after) should be implemented for speed, and so that two engines
/// that write at the very same moment find their conflict.
///
/// A line is a JSON object, usually with a `uuid`. A line whose `uuid` the transcript already contains is a repeated
/// delivery and must be ignored. Lines without one are always added. A store need not interpret anything else, and may
/// return a line with its fields in another order.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Appends lines to a transcript, which is created by its first. All or nothing: after an error the same lines are
    /// sent again. On return they must be durable.
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError>;

    /// Appends lines if `last` is the uuid of the last line that has one (`None`: there is no such line); otherwise another
    /// engine has continued the session, and the error is [`StoreError::Conflict`]. Engines append in this way.
    ///
    /// Comparison and append must be one step: in a transaction, or under a lock. [`check_last_entry`] compares, and
    /// allows for repeated deliveries. The default implementation loads the transcript first, in a step of its own.
    async fn append_after(
        &self,
        key: &StoreKey,
        last: Option<&str>,
        entries: &[RawJson],
    ) -> Result<(), StoreError> {
        let lines = self.load(key).await?.unwrap_or_default();
        let uuids: Vec<String> = lines.iter().filter_map(uuid_of).collect();
        let is_stored = |uuid: &str| Ok::<_, StoreError>(uuids.iter().any(|stored| stored == uuid));
        check_last_entry(entries, last, uuids.last().map(String::as_str), is_stored)?;
        self.append(key, entries).await
    }

    /// All lines of a transcript in order; `None` if it does not exist.
    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError>;

    /// The sessions of a project, newest first.
    async fn list(&self, _project: &str) -> Result<Vec<ListedSession>, StoreError> {
        Err(StoreError::Unsupported("list sessions"))
    }

    /// The sessions of a project with their summaries. The default implementation loads every transcript.
    async fn summaries(&self, project: &str) -> Result<Vec<SummarizedSession>, StoreError> {
        let mut summaries = Vec::new();
        for listed in self.list(project).await? {
            let lines = self.load(&StoreKey::session(project, listed.session.as_str())).await?;
            let mut summary = StoredSummary::default();
            summary.add_lines(lines.iter().flatten());
            summaries.push(SummarizedSession { listed, summary });
        }
        Ok(summaries)
    }

    /// The summary of a session; `None` if it does not exist. The default implementation loads its transcript.
    async fn summary(&self, project: &str, session: &str) -> Result<Option<StoredSummary>, StoreError> {
        let lines = self.load(&StoreKey::session(project, session)).await?;
        Ok(lines.map(|lines| {
            let mut summary = StoredSummary::default();
            summary.add_lines(&lines);
            summary
        }))
    }

    /// Deletes a transcript; a session's own together with all its subpaths. A missing one is not an error.
    async fn delete(&self, _key: &StoreKey) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("delete sessions"))
    }

    /// The subpaths of a session, in order.
    async fn subkeys(&self, _project: &str, _session: &str) -> Result<Vec<String>, StoreError> {
        Err(StoreError::Unsupported("list the transcripts below a session"))
    }
}

/// A store shared by several sessions. Cheap to clone.
#[derive(Clone)]
pub struct SharedStore(Arc<dyn SessionStore>);

impl SharedStore {
    /// Wraps a store.
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

/// Renders an entry on one line.
pub(super) fn to_single_line(entry: &RawJson) -> String {
    let text = entry.as_str();
    if !text.contains(['\n', '\r']) {
        return text.to_owned();
    }
    entry
        .decode::<serde_json::Value>()
        .map_or_else(|_| text.replace(['\n', '\r'], " "), |value| value.to_string())
}
