//! Sessions, and the lease of the writer.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Row, Step, Store, StoreError, Value};
use crate::clock;

/// State of a session, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionState {
    Resting,
    Running,
    Waiting,
    Interrupted,
    Failed,
    Elsewhere,
}

impl SessionState {
    const ALL: [Self; 6] =
        [Self::Resting, Self::Running, Self::Waiting, Self::Interrupted, Self::Failed, Self::Elsewhere];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Resting => "resting",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Elsewhere => "elsewhere",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A session as stored, with what lists show of its messages and requests.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) engine_session: String,
    pub(crate) folder: String,
    pub(crate) title: String,
    pub(crate) state: SessionState,
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) origin: String,
    pub(crate) parent: Option<String>,
    pub(crate) head: i64,
    pub(crate) cost_micros: i64,
    pub(crate) made_at: i64,
    pub(crate) touched_at: i64,
    pub(crate) archived: bool,
    pub(crate) bypass_until: Option<i64>,
    pub(crate) queued: i64,
    pub(crate) open_requests: i64,
    pub(crate) trusted: bool,
}

/// The columns of [`SessionRow`], in order.
const COLUMNS: &str = "s.id, s.engine_session, s.folder, s.title, s.state, s.mode, s.model, s.origin, s.parent, s.head, \
    s.cost_micros, s.made_at, s.touched_at, s.archived, s.bypass_until, \
    (SELECT COUNT(*) FROM messages m WHERE m.session = s.id AND m.state = 'queued'), \
    (SELECT COUNT(*) FROM requests r WHERE r.session = s.id AND r.state = 'open'), \
    EXISTS (SELECT 1 FROM folders f WHERE f.path = s.folder AND f.trusted_at IS NOT NULL)";

impl SessionRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.text(0)?,
            engine_session: row.text(1)?,
            folder: row.text(2)?,
            title: row.text(3)?,
            state: SessionState::parse(&row.text(4)?).ok_or(StoreError::Shape("an unknown state"))?,
            mode: row.optional_text(5),
            model: row.optional_text(6),
            origin: row.text(7)?,
            parent: row.optional_text(8),
            head: row.int(9)?,
            cost_micros: row.int(10)?,
            made_at: row.int(11)?,
            touched_at: row.int(12)?,
            archived: row.flag(13),
            bypass_until: row.optional_int(14),
            queued: row.int(15)?,
            open_requests: row.int(16)?,
            trusted: row.flag(17),
        })
    }

    /// A new session that rests.
    pub(crate) fn new(folder: String, title: String, origin: &str) -> Self {
        let now = clock::now_ms();
        let id = clock::new_uuid();
        Self {
            engine_session: id.clone(),
            id,
            folder,
            title,
            state: SessionState::Resting,
            mode: None,
            model: None,
            origin: origin.to_owned(),
            parent: None,
            head: 0,
            cost_micros: 0,
            made_at: now,
            touched_at: now,
            archived: false,
            bypass_until: None,
            queued: 0,
            open_requests: 0,
            trusted: false,
        }
    }

    /// The session as clients see it.
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "id": self.id, "engine_session": self.engine_session, "folder": self.folder, "title": self.title,
            "state": self.state, "mode": self.mode, "model": self.model, "origin": self.origin,
            "parent": self.parent, "group": null, "head": self.head, "queued": self.queued,
            "open_requests": self.open_requests, "cost_usd": dollars(self.cost_micros),
            "trusted": self.trusted, "made_at": self.made_at, "touched_at": self.touched_at,
            "archived": self.archived,
        })
    }

    /// The step that stores a new session.
    pub(crate) fn insert(&self, key: Option<&str>, digest: Option<&str>) -> Step {
        Step::new(
            "INSERT INTO sessions (id, key, request_digest, engine_session, folder, title, state, mode, model, origin, parent, \
             head, cost_micros, made_at, touched_at, archived) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $13, $14, 0) ON CONFLICT DO NOTHING",
            vec![
                (&self.id).into(),
                key.into(),
                digest.into(),
                (&self.engine_session).into(),
                (&self.folder).into(),
                (&self.title).into(),
                self.state.as_str().into(),
                self.mode.clone().into(),
                self.model.clone().into(),
                (&self.origin).into(),
                self.parent.clone().into(),
                self.cost_micros.into(),
                self.made_at.into(),
                self.touched_at.into(),
            ],
        )
    }

    /// The step that stores what changes while a session is used.
    pub(crate) fn update(&self) -> Step {
        Step::new(
            "UPDATE sessions SET engine_session = $2, title = $3, state = $4, mode = $5, model = $6, head = $7, \
             cost_micros = $8, touched_at = $9, archived = $10, bypass_until = $11 WHERE id = $1",
            vec![
                (&self.id).into(),
                (&self.engine_session).into(),
                (&self.title).into(),
                self.state.as_str().into(),
                self.mode.clone().into(),
                self.model.clone().into(),
                self.head.into(),
                self.cost_micros.into(),
                self.touched_at.into(),
                self.archived.into(),
                self.bypass_until.into(),
            ],
        )
        .required()
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of money are far below 2^52 millionths of a dollar")]
pub(crate) fn dollars(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Which sessions a list has.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFilter {
    pub(crate) search: Option<SessionSearch>,
    pub(crate) folder: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) archived: bool,
    /// Sessions before this one: time of its last change, and its id.
    pub(crate) before: Option<(i64, String)>,
    pub(crate) limit: i64,
}

/// Words that are searched for: all of them in the title, or in the transcript.
#[derive(Debug, Clone)]
pub(crate) struct SessionSearch {
    words: Vec<String>,
    /// Sessions of the engine whose transcripts have the words.
    found: HashSet<String>,
}

impl SessionSearch {
    pub(crate) fn new(words: &str, found: HashSet<String>) -> Self {
        Self { words: words.split_whitespace().map(str::to_lowercase).collect(), found }
    }

    fn matches(&self, row: &SessionRow) -> bool {
        let title = row.title.to_lowercase();
        self.found.contains(&row.engine_session) || self.words.iter().all(|word| title.contains(word))
    }
}

impl Store {
    /// Reads a session.
    pub(crate) async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        let rows =
            self.read(format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = $1"), vec![id.into()]).await?;
        rows.first().map(SessionRow::from_row).transpose()
    }

    /// The sessions by the transcripts that they have or had.
    pub(crate) async fn transcript_index(&self) -> Result<HashMap<String, String>, StoreError> {
        let rows = self.read("SELECT engine_session, id FROM sessions", Vec::new()).await?;
        let mut index = HashMap::with_capacity(rows.len());
        for row in &rows {
            index.insert(row.text(1)?, row.text(1)?);
            index.insert(row.text(0)?, row.text(1)?);
        }
        Ok(index)
    }

    /// The sessions that another program held when it was asked last.
    pub(crate) async fn sessions_elsewhere(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.read("SELECT id FROM sessions WHERE state = 'elsewhere'", Vec::new()).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Reads the session that was made with a key, and the digest of that request.
    pub(crate) async fn session_by_key(
        &self,
        key: &str,
    ) -> Result<Option<(SessionRow, Option<String>)>, StoreError> {
        let sql = format!("SELECT {COLUMNS}, s.request_digest FROM sessions s WHERE s.key = $1");
        let rows = self.read(sql, vec![key.into()]).await?;
        rows.first().map(|row| Ok((SessionRow::from_row(row)?, row.optional_text(18)))).transpose()
    }

    /// Lists sessions, those that changed last first.
    pub(crate) async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        // What is searched for is compared here: a database knows lower case of ASCII only.
        let limit = if filter.search.is_some() { i64::MAX } else { filter.limit };
        let mut values: Vec<Value> = vec![filter.archived.into(), limit.into()];
        let mut sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.archived = $1");
        let mut add = |condition: &str, value: Value| {
            values.push(value);
            sql.push_str(&condition.replace('#', &format!("${}", values.len())));
        };
        if let Some(folder) = &filter.folder {
            add(" AND s.folder = #", folder.into());
        }
        if let Some(state) = &filter.state {
            add(" AND s.state = #", state.into());
        }
        if let Some(origin) = &filter.origin {
            add(" AND s.origin = #", origin.into());
        }
        if let Some((at, id)) = &filter.before {
            values.push((*at).into());
            values.push(id.into());
            let (at, id) = (values.len() - 1, values.len());
            sql.push_str(&format!(" AND (s.touched_at < ${at} OR (s.touched_at = ${at} AND s.id < ${id}))"));
        }
        sql.push_str(" ORDER BY s.touched_at DESC, s.id DESC LIMIT $2");
        let rows = self.read(sql, values).await?;
        let rows = rows.iter().map(SessionRow::from_row).collect::<Result<Vec<_>, _>>()?;
        let Some(search) = &filter.search else { return Ok(rows) };
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        Ok(rows.into_iter().filter(|row| search.matches(row)).take(limit).collect())
    }

    /// Reads the sessions with a turn that had not ended when the last host ended.
    pub(crate) async fn sessions_with_open_turns(&self) -> Result<Vec<SessionRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions s WHERE s.state IN ('running', 'waiting') OR EXISTS \
             (SELECT 1 FROM turns t WHERE t.session = s.id AND t.state IN ('running', 'suspended')) OR EXISTS \
             (SELECT 1 FROM messages m WHERE m.session = s.id AND m.state = 'queued')"
        );
        self.read(sql, Vec::new()).await?.iter().map(SessionRow::from_row).collect()
    }

    /// Deletes what is stored of a session.
    pub(crate) async fn delete_session(&self, id: &str) -> Result<(), StoreError> {
        let steps = [
            "DELETE FROM events WHERE session = $1",
            "DELETE FROM messages WHERE session = $1",
            "DELETE FROM requests WHERE session = $1",
            "DELETE FROM uploads WHERE session = $1",
            "DELETE FROM sessions WHERE id = $1",
            "DELETE FROM leases WHERE key = 'session:' || $1",
        ];
        let steps = steps.into_iter().map(|sql| Step::new(sql, vec![id.into()])).collect::<Vec<_>>();
        self.write(steps.into()).await.map(drop)
    }
}

/// The right of this host to write a session: each batch is guarded by it.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    key: String,
    epoch: i64,
    lasts_ms: i64,
}

impl Lease {
    /// Takes the lease of a session; `None` if another node holds it.
    pub(crate) async fn take(
        store: &Store,
        session: &str,
        node: &str,
        lasts_ms: i64,
    ) -> Result<Option<Self>, StoreError> {
        let key = format!("session:{session}");
        let now = clock::now_ms();
        let step = Step::new(
            "INSERT INTO leases (key, node, address, epoch, until) VALUES ($1, $2, '', 1, $3) \
             ON CONFLICT (key) DO UPDATE SET epoch = leases.epoch + 1, node = $2, until = $3 \
             WHERE leases.until < $4 OR leases.node = $2 RETURNING epoch",
            vec![(&key).into(), node.into(), (now + lasts_ms).into(), now.into()],
        );
        let rows = store.write_one(step).await?;
        rows.first().map(|row| Ok(Self { key, epoch: row.int(0)?, lasts_ms })).transpose()
    }

    /// The first step of each batch of the session: refuses it if another node holds the lease now.
    pub(crate) fn guard(&self) -> Step {
        Step::new(
            "UPDATE leases SET until = $3 WHERE key = $1 AND epoch = $2 RETURNING epoch",
            vec![(&self.key).into(), self.epoch.into(), (clock::now_ms() + self.lasts_ms).into()],
        )
        .required()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_match_all_words_in_any_case() {
        let rows = [
            ("Ärger mit Bäumen", "ÄRGER bäumen", true),
            ("Ärger mit Bäumen", "ärger wald", false),
            ("100% _done_", "% _", true),
            ("plain", "%", false),
        ];
        for (title, words, expected) in rows {
            let row = SessionRow::new("/w".into(), title.into(), "web");
            let search = SessionSearch::new(words, HashSet::new());
            assert_eq!(search.matches(&row), expected, "{title}: {words}");
        }
    }
}
