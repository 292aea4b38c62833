//! The database of the host. A write is a batch of statements with guards, run in one transaction; a read is a single
//! statement. Callers know neither the driver nor its types.
//!
//! Modules: [`batch`]: what is written; [`sqlite`]: the driver; [`migrations`]: the schema; and one module per theme with
//! its statements.

pub(crate) mod access;
mod batch;
pub(crate) mod events;
pub(crate) mod messages;
mod migrations;
pub(crate) mod records;
pub(crate) mod requests;
pub(crate) mod sessions;
mod sqlite;
pub(crate) mod turns;

use std::path::Path;
use std::sync::Arc;

pub(crate) use batch::{Batch, Row, Step, Value};
use sqlite::SqliteDriver;

/// Error of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum StoreError {
    /// A guarded step touched no row; nothing was written.
    #[error("step {0} of the batch touched no row")]
    Refused(usize),
    /// The database is of a newer program.
    #[error("the database {path} has version {found}, this program knows {known}: use a newer program")]
    TooNew {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// The database failed.
    #[error("the database failed: {0}")]
    Failed(Arc<str>),
    /// A row has another shape than the program expects.
    #[error("a row of the database is not as expected: {0}")]
    Shape(&'static str),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.to_string().into())
    }
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    driver: Arc<SqliteDriver>,
}

impl Store {
    /// Opens the database in a data folder, and migrates it.
    pub(crate) fn open(data: &Path) -> Result<Self, StoreError> {
        Ok(Self { driver: Arc::new(SqliteDriver::open(&data.join("host.sqlite"))?) })
    }

    /// Runs a batch in one transaction and returns the rows that its steps gave.
    pub(crate) async fn write(&self, batch: Batch) -> Result<Vec<Vec<Row>>, StoreError> {
        self.driver.write(batch).await
    }

    /// Runs a batch of one step.
    pub(crate) async fn write_one(&self, step: Step) -> Result<Vec<Row>, StoreError> {
        Ok(self.write(Batch::from(vec![step])).await?.pop().unwrap_or_default())
    }

    /// Runs a single statement that only reads.
    pub(crate) async fn read(
        &self,
        sql: impl Into<String>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        self.driver.read(sql.into(), values).await
    }

    /// How long the last commits took, as buckets of a histogram.
    pub(crate) fn commit_times(&self) -> &crate::histogram::Histogram {
        self.driver.commit_times()
    }
}
