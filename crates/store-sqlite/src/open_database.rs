//! Opens the database file: private to its owner, with write-ahead log and fsync.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::DatabaseError;
use crate::schema::{check_application_id, migrate};

/// Opens a database and migrates it to the current version.
pub(crate) fn open(path: &Path, busy_timeout: Duration) -> Result<Connection, DatabaseError> {
    create_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    check_application_id(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A commit is on disk before it is acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Creates the file with mode 0600 if it does not exist, because transcripts are private.
fn create_file(path: &Path) -> Result<(), DatabaseError> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // Opening a pipe would block.
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(DatabaseError::ForeignFile),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    Ok(())
}
