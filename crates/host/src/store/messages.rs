//! Messages of people: queued, given to the engine, taken back.

use super::{Row, Step, Store, StoreError};

/// A message as stored.
#[derive(Debug, Clone)]
pub(crate) struct MessageRow {
    /// The uuid of the prompt.
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) key: String,
    /// Tells a repeated request from another one with the same key.
    pub(crate) digest: String,
    pub(crate) person: String,
    /// The message as JSON, as `message` reads it.
    pub(crate) body: String,
    pub(crate) state: String,
    /// Number of its `queued` event.
    pub(crate) seq: i64,
    pub(crate) made_at: i64,
}

const COLUMNS: &str = "id, session, key, digest, person, body, state, seq, made_at";

impl MessageRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.text(0)?,
            session: row.text(1)?,
            key: row.text(2)?,
            digest: row.text(3)?,
            person: row.text(4)?,
            body: row.text(5)?,
            state: row.text(6)?,
            seq: row.int(7)?,
            made_at: row.int(8)?,
        })
    }

    pub(crate) fn insert(&self) -> Step {
        Step::new(
            "INSERT INTO messages (id, session, key, digest, person, body, state, seq, made_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (session, key) DO NOTHING",
            vec![
                (&self.id).into(),
                (&self.session).into(),
                (&self.key).into(),
                (&self.digest).into(),
                (&self.person).into(),
                (&self.body).into(),
                (&self.state).into(),
                self.seq.into(),
                self.made_at.into(),
            ],
        )
        .required()
    }
}

/// The step that takes a message from one state to the next.
pub(crate) fn change_state(id: &str, from: &str, to: &str, turn: Option<&str>) -> Step {
    Step::new(
        "UPDATE messages SET state = $3, turn = COALESCE($4, turn) WHERE id = $1 AND state = $2",
        vec![id.into(), from.into(), to.into(), turn.into()],
    )
    .required()
}

/// The step that ends the messages of a turn.
pub(crate) fn finish_given(session: &str, turn: &str, state: &str) -> Step {
    Step::new(
        "UPDATE messages SET state = $3 WHERE session = $1 AND turn = $2 AND state = 'given'",
        vec![session.into(), turn.into(), state.into()],
    )
}

impl Store {
    pub(crate) async fn message_by_key(
        &self,
        session: &str,
        key: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM messages WHERE session = $1 AND key = $2");
        self.read(sql, vec![session.into(), key.into()]).await?.first().map(MessageRow::from_row).transpose()
    }

    pub(crate) async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM messages WHERE id = $1");
        self.read(sql, vec![id.into()]).await?.first().map(MessageRow::from_row).transpose()
    }

    pub(crate) async fn queued_messages(&self, session: &str) -> Result<Vec<MessageRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM messages WHERE session = $1 AND state = 'queued' ORDER BY seq");
        self.read(sql, vec![session.into()]).await?.iter().map(MessageRow::from_row).collect()
    }
}
