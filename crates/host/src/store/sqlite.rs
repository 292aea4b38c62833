//! The SQLite driver: one writer thread that takes all waiting batches as savepoints of one transaction, and readers on
//! connections of their own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use tokio::sync::{mpsc, oneshot};

use super::batch::{Batch, Need, Row, Step, Value};
use super::{StoreError, migrations};
use crate::clock;
use crate::histogram::Histogram;

/// Batches that one transaction takes at most.
const MAX_GROUP: usize = 64;

/// Connections for reading that are kept open.
const MAX_IDLE_READERS: usize = 2;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

type BatchResult = Result<Vec<Vec<Row>>, StoreError>;

struct PendingBatch {
    batch: Batch,
    reply: oneshot::Sender<BatchResult>,
}

/// A database file.
pub(super) struct SqliteDriver {
    path: PathBuf,
    writer: mpsc::UnboundedSender<PendingBatch>,
    readers: Arc<Mutex<Vec<Connection>>>,
    commit_times: Arc<Histogram>,
}

impl SqliteDriver {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A commit is on disk before it is acknowledged.
        connection.pragma_update(None, "synchronous", "full")?;
        migrations::migrate(&mut connection, path)?;
        let (writer, pending) = mpsc::unbounded_channel();
        let commit_times = Arc::new(Histogram::default());
        let times = Arc::clone(&commit_times);
        std::thread::Builder::new()
            .name("host-store".into())
            .spawn(move || run_writer(&mut connection, pending, &times))
            .map_err(|error| StoreError::Failed(error.to_string().into()))?;
        Ok(Self { path: path.to_owned(), writer, readers: Arc::default(), commit_times })
    }

    pub(super) fn commit_times(&self) -> &Histogram {
        &self.commit_times
    }

    pub(super) async fn write(&self, batch: Batch) -> BatchResult {
        let (reply, result) = oneshot::channel();
        let ended = || StoreError::Failed("the writer has ended".into());
        self.writer.send(PendingBatch { batch, reply }).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }

    pub(super) async fn read(&self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        let (readers, path) = (Arc::clone(&self.readers), self.path.clone());
        let read = move || {
            let idle = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
            };
            let rows = run_statement(&connection, &sql, &values).map(|(rows, _)| rows);
            let mut readers = readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < MAX_IDLE_READERS {
                readers.push(connection);
            }
            rows
        };
        let ended = |error: tokio::task::JoinError| StoreError::Failed(error.to_string().into());
        tokio::task::spawn_blocking(read).await.map_err(ended)?
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Pages of 4 KiB in negative KiB: an idle host stays small.
    connection.pragma_update(None, "cache_size", -1024)?;
    connection.set_prepared_statement_cache_capacity(48);
    Ok(connection)
}

/// Writes batches until the store is dropped.
fn run_writer(
    connection: &mut Connection,
    mut pending: mpsc::UnboundedReceiver<PendingBatch>,
    commit_times: &Histogram,
) {
    while let Some(first) = pending.blocking_recv() {
        let mut group = vec![first];
        while group.len() < MAX_GROUP
            && let Ok(next) = pending.try_recv()
        {
            group.push(next);
        }
        let started = clock::monotonic();
        let (batches, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|pending| (pending.batch, pending.reply)).unzip();
        let results = write_group(connection, &batches);
        commit_times.record(started.elapsed());
        for (reply, result) in replies.into_iter().zip(results) {
            // The caller may have gone; what is written stays.
            let _ = reply.send(result);
        }
    }
}

/// Writes batches in one transaction. If the transaction fails, each batch has that error.
fn write_group(connection: &mut Connection, batches: &[Batch]) -> Vec<BatchResult> {
    let written = || -> Result<Vec<BatchResult>, StoreError> {
        let mut transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut results = Vec::with_capacity(batches.len());
        for batch in batches {
            let mut savepoint = transaction.savepoint()?;
            let result = run_batch(&savepoint, batch);
            match result {
                Ok(_) => savepoint.commit()?,
                Err(_) => savepoint.rollback()?,
            }
            results.push(result);
        }
        transaction.commit()?;
        Ok(results)
    };
    let mut written = written;
    written().unwrap_or_else(|error| batches.iter().map(|_| Err(error.clone())).collect())
}

fn run_batch(connection: &Connection, batch: &Batch) -> BatchResult {
    let run = |(index, step): (usize, &Step)| {
        let (rows, changed) = run_statement(connection, step.sql, &step.values)?;
        match step.need {
            Need::Rows if rows.is_empty() && changed == 0 => Err(StoreError::Refused(index)),
            Need::Any | Need::Rows => Ok(rows),
        }
    };
    batch.steps.iter().enumerate().map(run).collect()
}

/// Runs a statement; returns its rows and how many rows it changed.
fn run_statement(
    connection: &Connection,
    sql: &str,
    values: &[Value],
) -> Result<(Vec<Row>, u64), StoreError> {
    let mut statement = connection.prepare_cached(&sql.replace('$', "?"))?;
    let values = values.iter().map(|value| match value {
        Value::Null => rusqlite::types::Value::Null,
        Value::Int(number) => rusqlite::types::Value::Integer(*number),
        Value::Text(text) => rusqlite::types::Value::Text(text.clone()),
    });
    let columns = statement.column_count();
    if columns == 0 {
        let changed = statement.execute(params_from_iter(values))?;
        return Ok((Vec::new(), changed as u64));
    }
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Int(number),
                // Sums of money and the like: whole numbers everywhere else.
                #[expect(clippy::cast_possible_truncation, reason = "no column holds fractions")]
                ValueRef::Real(number) => Value::Int(number as i64),
                ValueRef::Text(text) | ValueRef::Blob(text) => {
                    Value::Text(String::from_utf8_lossy(text).into_owned())
                }
            })
        });
        found.push(Row(cells.collect::<Result<_, rusqlite::Error>>()?));
    }
    Ok((found, 0))
}
