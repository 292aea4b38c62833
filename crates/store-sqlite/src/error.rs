//! Database errors, converted to messages that name the file, the cause and the remedy.

use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::ErrorCode;
use whimbrel_session_store::store::StoreError;

/// An error while opening or using the database.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// Reported by SQLite.
    Sqlite(rusqlite::Error),
    /// Reported by the operating system.
    Io(io::Error),
    /// The file is not a database of this store.
    ForeignFile,
    /// A later version of the program created the database.
    NewerVersion { theirs: usize, ours: usize },
    /// A stored line is not valid JSON.
    InvalidLine(serde_json::Error),
    /// An error of the store that does not concern the database.
    Store(StoreError),
}

impl From<StoreError> for DatabaseError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for DatabaseError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for DatabaseError {
    fn from(error: serde_json::Error) -> Self {
        Self::InvalidLine(error)
    }
}

impl DatabaseError {
    /// Converts to the error of the store, for the database at `path`.
    pub(crate) fn into_store_error(self, path: &Path) -> StoreError {
        let path = path.display();
        let damaged = |error: &dyn std::fmt::Display| {
            format!(
                "the database {path} is damaged ({error}); copy it and its -wal file, then recover what is readable with \
                 `sqlite3 {path} .recover`"
            )
        };
        let (kind, text) = match self {
            Self::Store(error) => return error,
            Self::Io(error) => (error.kind(), format!("the database {path} cannot be opened: {error}")),
            Self::ForeignFile => (
                ErrorKind::InvalidInput,
                format!("{path} is not a session database; choose another file, which will be created"),
            ),
            Self::NewerVersion { theirs, ours } => (
                ErrorKind::Unsupported,
                format!(
                    "the database {path} has version {theirs}, but this program supports only {ours}; use a \
                     newer program"
                ),
            ),
            Self::InvalidLine(error) => (ErrorKind::InvalidData, damaged(&error)),
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => (
                    ErrorKind::StorageFull,
                    format!("no disk space is left for the database {path}; free some"),
                ),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
                    ErrorKind::ResourceBusy,
                    format!(
                        "another process has locked the database {path}; wait until it finishes, or end it"
                    ),
                ),
                Some(ErrorCode::NotADatabase) => (
                    ErrorKind::InvalidData,
                    format!(
                        "{path} is not a database, or its header is damaged; choose another file, or restore a copy"
                    ),
                ),
                Some(ErrorCode::DatabaseCorrupt) => (ErrorKind::InvalidData, damaged(&error)),
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
                    ErrorKind::PermissionDenied,
                    format!(
                        "the database {path} cannot be written ({error}); check the permissions of the file and \
                         its directory"
                    ),
                ),
                _ => (ErrorKind::Other, format!("the database {path}: {error}")),
            },
        };
        io::Error::new(kind, text).into()
    }
}
