//! Turns, and what they cost.

use serde_json::{Value as Json, json};

use super::{Row, Step, Store, StoreError};
use crate::clock;

/// A turn that has not ended.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    pub(crate) id: String,
    pub(crate) message: Option<String>,
    /// `running`, or `suspended` if the host was stopped in an orderly way.
    pub(crate) state: String,
}

/// Why a turn began.
pub(crate) const CAUSE_MESSAGE: &str = "message";
pub(crate) const CAUSE_BACKGROUND: &str = "background";

/// The step that stores a turn that begins.
pub(crate) fn begin(id: &str, session: &str, cause: &str, message: Option<&str>) -> Step {
    Step::new(
        "INSERT INTO turns (id, session, cause, message, state, began_at) VALUES ($1, $2, $3, $4, 'running', $5) \
         ON CONFLICT (id) DO NOTHING",
        vec![id.into(), session.into(), cause.into(), message.into(), clock::now_ms().into()],
    )
}

/// The step that ends a turn with what it cost.
pub(crate) fn end(id: &str, state: &str, usage: Option<&str>, cost_micros: i64) -> Step {
    Step::new(
        "UPDATE turns SET state = $2, usage = COALESCE($3, usage), cost_micros = cost_micros + $4, ended_at = $5 WHERE id = $1",
        vec![id.into(), state.into(), usage.into(), cost_micros.into(), clock::now_ms().into()],
    )
}

/// The step that marks a turn that goes on.
pub(crate) fn resume(id: &str) -> Step {
    Step::new(
        "UPDATE turns SET state = 'running', recoveries = recoveries + 1, ended_at = NULL WHERE id = $1",
        vec![id.into()],
    )
}

/// How the sums of a usage table are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageKey {
    Day,
    Model,
    Session,
    Group,
}

/// A line of a usage table.
#[derive(Debug, Clone, Default)]
pub(crate) struct UsageLine {
    pub(crate) key: String,
    pub(crate) turns: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) cost_usd: f64,
}

impl UsageLine {
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "key": self.key, "turns": self.turns, "input": self.input, "output": self.output,
            "cache_read": self.cache_read, "cache_write": self.cache_write, "cost_usd": self.cost_usd,
        })
    }
}

/// A finished turn, for sums: session, time of its end, its usage by model as JSON, its cost.
pub(crate) struct FinishedTurn {
    pub(crate) session: String,
    pub(crate) ended_at: i64,
    pub(crate) usage: Option<String>,
    pub(crate) cost_micros: i64,
}

impl Store {
    /// The turn of a session that has not ended, or the one that was interrupted last.
    pub(crate) async fn open_turn(&self, session: &str) -> Result<Option<TurnRow>, StoreError> {
        let sql = "SELECT id, message, state FROM turns WHERE session = $1 AND state IN \
                   ('running', 'suspended', 'interrupted') ORDER BY began_at DESC, id DESC LIMIT 1";
        let rows = self.read(sql, vec![session.into()]).await?;
        let read =
            |row: &Row| Ok(TurnRow { id: row.text(0)?, message: row.optional_text(1), state: row.text(2)? });
        rows.first().map(read).transpose()
    }

    /// Turns that ended between two times.
    pub(crate) async fn finished_turns(
        &self,
        from: Option<i64>,
        to: Option<i64>,
    ) -> Result<Vec<FinishedTurn>, StoreError> {
        let sql = "SELECT session, ended_at, usage, cost_micros FROM turns \
                   WHERE ended_at IS NOT NULL AND ended_at >= $1 AND ended_at < $2 ORDER BY ended_at";
        let values = vec![from.unwrap_or(0).into(), to.unwrap_or(i64::MAX).into()];
        let read = |row: &Row| {
            Ok(FinishedTurn {
                session: row.text(0)?,
                ended_at: row.int(1)?,
                usage: row.optional_text(2),
                cost_micros: row.int(3)?,
            })
        };
        self.read(sql, values).await?.iter().map(read).collect()
    }
}
