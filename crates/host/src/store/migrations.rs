//! The schema of the database: numbered files, applied in order, each in a transaction. Before each a copy of the file is
//! kept.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;

/// The migrations; the version of a database is how many of them it has.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_sessions.sql")];

/// Brings a database to the version of this program.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::TooNew { path: path.display().to_string(), found, known });
    }
    for version in found..known {
        if version > 0 {
            let copy = path.with_extension(format!("sqlite.version-{version}"));
            connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
        }
        let transaction = connection.transaction()?;
        transaction.execute_batch(MIGRATIONS[usize::try_from(version).unwrap_or_default()])?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
    Ok(())
}
