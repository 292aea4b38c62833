//! Session store in a SQLite database: one file for any number of sessions and processes.
//!
//! ```
//! use serde_json::json;
//! use whimbrel_session_store::store::{SessionStore, StoreKey};
//! use whimbrel_store_sqlite::SqliteStore;
//! use whimbrel_wire::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = SqliteStore::open(dir.path().join("sessions.db"))?;
//! let key = StoreKey::session("my-project", "3f0c9f6e-52a9-4c0e-9a55-0d2ad3c0a001");
//! let line = RawJson::from_value(&json!({"type": "user", "uuid": "1", "message": {"role": "user", "content": "hi"}}))?;
//! store.append(&key, &[line.clone()]).await?;
//! store.append(&key, &[line.clone()]).await?; // Appending the same line again has no effect.
//! assert_eq!(store.load(&key).await?, Some(vec![line]));
//! # Ok(())
//! # }
//! ```
//!
//! Modules: this file (the store), `open_database` (opens the database file), `schema` (tables, migrations and
//! identity), `error` (error messages).
//!
//! Lines acknowledged by [`append`](whimbrel_session_store::store::SessionStore::append) are durable: each batch is
//! one transaction, committed with fsync. Readers are not blocked by writers (write-ahead log); a writer waits for
//! another writer up to [`BUSY_TIMEOUT`] and then fails.

mod error;
mod open_database;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use whimbrel_os::{clock, files};
use whimbrel_session_store::store::{
    ListedSession, SessionStore, StoreError, StoreKey, StoredSummary, SummarizedSession, check_last_entry,
    uuid_of,
};
use whimbrel_wire::RawJson;

/// Time that a writer waits for another writer.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Session store in a SQLite database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: Arc<Path>,
    connection: Arc<Mutex<Connection>>,
}

impl SqliteStore {
    /// Opens a database, or creates it, readable by its owner only. An older schema is migrated; a newer one and files
    /// of another kind are rejected.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with_timeout(path, BUSY_TIMEOUT)
    }

    /// Opens a database with another busy timeout.
    pub fn open_with_timeout(path: impl Into<PathBuf>, busy_timeout: Duration) -> Result<Self, StoreError> {
        let path: Arc<Path> = path.into().into();
        let connection =
            open_database::open(&path, busy_timeout).map_err(|error| error.into_store_error(&path))?;
        Ok(Self { path, connection: Arc::new(Mutex::new(connection)) })
    }

    /// Path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs database work on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, error::DatabaseError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let connection = Arc::clone(&self.connection);
        let result = files::run_blocking(move || {
            // After a panic the lock is still usable, because the transaction was rolled back.
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        result.await?.map_err(|error| error.into_store_error(&self.path))
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        check_key(key)?;
        if entries.is_empty() {
            return Ok(());
        }
        let (key, entries) = (key.clone(), entries.to_vec());
        self.run_blocking(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            append_entries(&transaction, &key, &entries)?;
            Ok(transaction.commit()?)
        })
        .await
    }

    async fn append_after(
        &self,
        key: &StoreKey,
        last: Option<&str>,
        entries: &[RawJson],
    ) -> Result<(), StoreError> {
        check_key(key)?;
        if entries.is_empty() {
            return Ok(());
        }
        let (key, last, entries) = (key.clone(), last.map(str::to_owned), entries.to_vec());
        self.run_blocking(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            check_conflict(&transaction, &key, last.as_deref(), &entries)?;
            append_entries(&transaction, &key, &entries)?;
            Ok(transaction.commit()?)
        })
        .await
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        let key = key.clone();
        self.run_blocking(move |connection| {
            let transaction = connection.transaction()?;
            let Some(transcript) = find_transcript(&transaction, &key)? else { return Ok(None) };
            let mut query =
                transaction.prepare_cached("SELECT line FROM entries WHERE transcript = ? ORDER BY id")?;
            let lines = query.query_map([transcript], |row| row.get::<_, String>(0))?;
            let lines = lines.map(|line| Ok(RawJson::parse(line?)?));
            lines.collect::<Result<Vec<_>, error::DatabaseError>>().map(Some)
        })
        .await
    }

    async fn list(&self, project: &str) -> Result<Vec<ListedSession>, StoreError> {
        let project = project.to_owned();
        self.run_blocking(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT session, modified_ms FROM transcripts
                 WHERE project = ? AND subpath = '' ORDER BY modified_ms DESC, id DESC",
            )?;
            let rows = query.query_map([project], |row| {
                let modified_ms = u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
                Ok(ListedSession { session: row.get(0)?, modified_ms })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn summaries(&self, project: &str) -> Result<Vec<SummarizedSession>, StoreError> {
        let project = project.to_owned();
        self.run_blocking(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT session, modified_ms, summary FROM transcripts
                 WHERE project = ? AND subpath = '' ORDER BY modified_ms DESC, id DESC",
            )?;
            let rows = query.query_map([project], |row| {
                let modified_ms = u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
                Ok((ListedSession { session: row.get(0)?, modified_ms }, row.get::<_, String>(2)?))
            })?;
            let parse_summary = |(listed, summary): (ListedSession, String)| {
                Ok(SummarizedSession { listed, summary: serde_json::from_str(&summary)? })
            };
            rows.map(|row| parse_summary(row?)).collect()
        })
        .await
    }

    async fn summary(&self, project: &str, session: &str) -> Result<Option<StoredSummary>, StoreError> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run_blocking(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT summary FROM transcripts WHERE project = ? AND session = ? AND subpath = ''",
            )?;
            let summary: Option<String> = query.query_row([project, session], |row| row.get(0)).optional()?;
            Ok(summary.map(|summary| serde_json::from_str(&summary)).transpose()?)
        })
        .await
    }

    async fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.run_blocking(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            match &key.subpath {
                Some(subpath) => transaction.execute(
                    "DELETE FROM transcripts WHERE project = ? AND session = ? AND subpath = ?",
                    params![key.project, key.session, subpath],
                )?,
                None => transaction.execute(
                    "DELETE FROM transcripts WHERE project = ? AND session = ?",
                    params![key.project, key.session],
                )?,
            };
            Ok(transaction.commit()?)
        })
        .await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run_blocking(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT subpath FROM transcripts
                 WHERE project = ? AND session = ? AND subpath <> '' ORDER BY subpath",
            )?;
            let rows = query.query_map([project, session], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Rejects keys with empty parts.
fn check_key(key: &StoreKey) -> Result<(), StoreError> {
    let mut names = [Some(&key.project), Some(&key.session), key.subpath.as_ref()].into_iter().flatten();
    match names.find(|name| name.is_empty()) {
        Some(name) => Err(StoreError::BadKey(name.clone())),
        None => Ok(()),
    }
}

/// Returns the row id of a transcript.
fn find_transcript(transaction: &Transaction<'_>, key: &StoreKey) -> rusqlite::Result<Option<i64>> {
    let mut query = transaction
        .prepare_cached("SELECT id FROM transcripts WHERE project = ? AND session = ? AND subpath = ?")?;
    query.query_row(params![key.project, key.session, subpath(key)], |row| row.get(0)).optional()
}

/// Subpath column of a key. The empty string marks the session's own transcript, since keys have no empty parts.
fn subpath(key: &StoreKey) -> &str {
    key.subpath.as_deref().unwrap_or_default()
}

/// Checks whether lines may follow the last one that has a uuid.
fn check_conflict(
    transaction: &Transaction<'_>,
    key: &StoreKey,
    expected: Option<&str>,
    entries: &[RawJson],
) -> Result<(), error::DatabaseError> {
    let transcript = find_transcript(transaction, key)?;
    let mut last = transaction.prepare_cached(
        "SELECT uuid FROM entries WHERE transcript = ? AND uuid IS NOT NULL ORDER BY id DESC LIMIT 1",
    )?;
    let last: Option<String> = last.query_row([transcript], |row| row.get(0)).optional()?;
    let mut stored = transaction.prepare_cached("SELECT 1 FROM entries WHERE transcript = ? AND uuid = ?")?;
    let is_stored = |uuid: &str| Ok::<_, error::DatabaseError>(stored.exists(params![transcript, uuid])?);
    check_last_entry(entries, expected, last.as_deref(), is_stored)
}

/// Inserts the lines that are new and updates the summary of the session.
fn append_entries(
    transaction: &Transaction<'_>,
    key: &StoreKey,
    entries: &[RawJson],
) -> Result<(), error::DatabaseError> {
    let (id, mut summary) = find_or_create_transcript(transaction, key)?;
    let mut add = transaction.prepare_cached(
        "INSERT INTO entries (transcript, uuid, line) VALUES (?, ?, ?) ON CONFLICT (transcript, uuid) DO NOTHING",
    )?;
    for entry in entries {
        if add.execute(params![id, uuid_of(entry), entry.as_str()])? > 0 && key.subpath.is_none() {
            summary.add_lines([entry]);
        }
    }
    let elapsed = clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    transaction.execute(
        "UPDATE transcripts SET modified_ms = ?, summary = ? WHERE id = ?",
        params![now, serde_json::to_string(&summary)?, id],
    )?;
    Ok(())
}

/// Returns row id and summary of a transcript, creating it if necessary.
fn find_or_create_transcript(
    transaction: &Transaction<'_>,
    key: &StoreKey,
) -> Result<(i64, StoredSummary), error::DatabaseError> {
    transaction.execute(
        "INSERT INTO transcripts (project, session, subpath, modified_ms, summary) VALUES (?, ?, ?, 0, '{}')
         ON CONFLICT (project, session, subpath) DO NOTHING",
        params![key.project, key.session, subpath(key)],
    )?;
    let (id, summary): (i64, String) = transaction.query_row(
        "SELECT id, summary FROM transcripts WHERE project = ? AND session = ? AND subpath = ?",
        params![key.project, key.session, subpath(key)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok((id, serde_json::from_str(&summary)?))
}
