//! Session stores other than files: implement [`SessionStore`] and give it to
//! [`Agent::session_store`](crate::Agent::session_store). [`Agent::sessions`](crate::Agent::sessions) gives access to
//! the stored sessions.
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use whimbrel::store::{ForkOptions, MemoryStore};
//! use whimbrel::{Agent, Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(MemoryStore::default());
//! let agent = Agent::new()
//!     .session_store(Arc::clone(&store))
//!     .script(Scripted::replies(json!(["Hello, Ann.", "You are Ann."]))?);
//!
//! // Nothing of this session is on disk, and still it can be resumed.
//! let first = whimbrel::query("I am Ann.", &agent).await?;
//! let again = agent.clone().resume(first.session_id());
//! let second = whimbrel::query("Who am I?", &again).await?;
//! assert_eq!(second.text(), "You are Ann.");
//! assert_eq!(second.session_id(), first.session_id());
//!
//! let sessions = agent.sessions()?;
//! assert_eq!(sessions.list().await?[0].summary, "Who am I?");
//! assert_eq!(sessions.messages(first.session_id()).await?.len(), 4);
//! sessions.rename(first.session_id(), "About Ann").await?;
//! let copy = sessions.fork(first.session_id(), ForkOptions::default()).await?;
//! assert_eq!(sessions.list().await?[0].summary, "About Ann (fork)");
//! sessions.delete(&copy).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A failing store does not stop a turn: the host is warned at once, entries wait in memory (at most 64 MiB) and are
//! offered again with every message. With `WHIMBREL_DURABILITY=strict` a tool call with effects is not made as long as
//! its start cannot be stored.

/// The attribute with which [`SessionStore`] is implemented.
pub use async_trait::async_trait;
pub use whimbrel_session_store::import::ImportedMessage;
pub use whimbrel_session_store::lock::{LockMode, LockOwner, SessionLock};
pub use whimbrel_session_store::search::SearchHit;
pub use whimbrel_session_store::sessions::{ForkOptions, SearchResult, Sessions, SessionsError};
pub use whimbrel_session_store::store::{
    FileStore, ListedSession, MemoryStore, SessionStore, SharedStore, StoreError, StoreKey, StoredSummary,
    SummarizedSession, check_last_entry, uuid_of,
};
pub use whimbrel_session_store::summary::SessionSummary;
pub use whimbrel_session_store::transcript_reader::Message;
#[cfg(feature = "sqlite")]
pub use whimbrel_store_sqlite::SqliteStore;
