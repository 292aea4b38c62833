//! Tables, migrations and identity of the database. Each entry of [`MIGRATIONS`] upgrades the schema by one version; a
//! released entry never changes.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::DatabaseError;

/// SQLite `application_id` of this store ("Whim"), by which foreign databases are recognized.
const APPLICATION_ID: i32 = 0x5768_696D;

/// Migrations from an empty database to the current version.
const MIGRATIONS: [&str; 1] = ["
CREATE TABLE transcripts (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    subpath TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    summary TEXT NOT NULL,
    UNIQUE (project, session, subpath)
) STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    transcript INTEGER NOT NULL REFERENCES transcripts (id) ON DELETE CASCADE,
    uuid TEXT,
    line TEXT NOT NULL,
    UNIQUE (transcript, uuid)
) STRICT;
CREATE INDEX entries_in_order ON entries (transcript, id);
"];

/// Rejects a database of another application.
pub(crate) fn check_application_id(connection: &Connection) -> Result<(), DatabaseError> {
    let application_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    match application_id {
        APPLICATION_ID => Ok(()),
        0 if tables == 0 => Ok(()),
        _ => Err(DatabaseError::ForeignFile),
    }
}

/// Applies the missing migrations in one transaction. If two processes migrate at the same time, the second finds
/// nothing to do.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), DatabaseError> {
    if schema_version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = schema_version(&transaction)?;
    let Some(missing) = MIGRATIONS.get(from..) else {
        return Err(DatabaseError::NewerVersion { theirs: from, ours: MIGRATIONS.len() });
    };
    for step in missing {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))?;
    Ok(transaction.commit()?)
}

fn schema_version(connection: &Connection) -> Result<usize, DatabaseError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
