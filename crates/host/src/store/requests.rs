//! Requests of agents to people: permissions, questions, plans, forms.

use serde_json::{Value as Json, json};

use super::events::raw_json;
use super::{Row, Step, Store, StoreError};
use crate::clock;

/// A request as stored, with what lists show of its session.
#[derive(Debug, Clone)]
pub(crate) struct RequestRow {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) turn: Option<String>,
    pub(crate) kind: String,
    pub(crate) tool: String,
    /// The wire's request, as JSON.
    pub(crate) body: String,
    pub(crate) scopes: String,
    /// Tells the same call of a resumed turn.
    pub(crate) digest: String,
    pub(crate) state: String,
    pub(crate) answer: Option<String>,
    pub(crate) person: Option<String>,
    pub(crate) person_name: Option<String>,
    pub(crate) by_request: Option<String>,
    pub(crate) opened_at: i64,
    pub(crate) closed_at: Option<i64>,
    pub(crate) title: String,
    pub(crate) folder: String,
}

const COLUMNS: &str = "r.id, r.session, r.turn, r.kind, r.tool, r.body, r.scopes, r.digest, r.state, r.answer, r.person, p.name, \
    r.by_request, r.opened_at, r.closed_at, s.title, s.folder";
const TABLES: &str =
    "requests r LEFT JOIN sessions s ON s.id = r.session LEFT JOIN people p ON p.id = r.person";

impl RequestRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.text(0)?,
            session: row.text(1)?,
            turn: row.optional_text(2),
            kind: row.text(3)?,
            tool: row.text(4)?,
            body: row.text(5)?,
            scopes: row.text(6)?,
            digest: row.text(7)?,
            state: row.text(8)?,
            answer: row.optional_text(9),
            person: row.optional_text(10),
            person_name: row.optional_text(11),
            by_request: row.optional_text(12),
            opened_at: row.int(13)?,
            closed_at: row.optional_int(14),
            title: row.optional_text(15).unwrap_or_default(),
            folder: row.optional_text(16).unwrap_or_default(),
        })
    }

    /// The request as clients see it.
    pub(crate) fn to_json(&self) -> Json {
        let by = self
            .person
            .as_ref()
            .map(|id| json!({"id": id, "name": self.person_name.as_deref().unwrap_or_default()}));
        let parse =
            |text: &str| serde_json::from_str::<Json>(raw_json(text.to_owned()).get()).unwrap_or_default();
        let mut request = json!({
            "id": self.id, "session": self.session, "session_title": self.title, "folder": self.folder,
            "kind": self.kind, "state": self.state, "opened_at": self.opened_at, "closed_at": self.closed_at,
            "by": by, "request": parse(&self.body), "scopes": parse(&self.scopes),
        });
        if let Some(answer) = &self.answer {
            request["answer"] = parse(answer)["shown"].take();
        }
        if let Some(newer) = &self.by_request {
            request["by_request"] = newer.clone().into();
        }
        request
    }

    pub(crate) fn insert(&self) -> Step {
        Step::new(
            "INSERT INTO requests (id, session, turn, kind, tool, body, scopes, digest, state, opened_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9)",
            vec![
                (&self.id).into(),
                (&self.session).into(),
                self.turn.clone().into(),
                (&self.kind).into(),
                (&self.tool).into(),
                (&self.body).into(),
                (&self.scopes).into(),
                (&self.digest).into(),
                self.opened_at.into(),
            ],
        )
    }
}

/// The step that closes an open request; refused if it is closed already.
pub(crate) fn close(id: &str, state: &str, answer: Option<&str>, person: Option<&str>) -> Step {
    Step::new(
        "UPDATE requests SET state = $2, answer = $3, person = $4, closed_at = $5 WHERE id = $1 AND state = 'open'",
        vec![id.into(), state.into(), answer.into(), person.into(), clock::now_ms().into()],
    )
    .required()
}

/// The step that loses the open requests of a session, because the host ended.
pub(crate) fn lose_all(session: &str) -> Step {
    Step::new(
        "UPDATE requests SET state = 'lost', closed_at = $2 WHERE session = $1 AND state = 'open'",
        vec![session.into(), clock::now_ms().into()],
    )
}

/// The step by which a request takes the place of an earlier one for the same call.
pub(crate) fn replace(session: &str, digest: &str, by: &str) -> Step {
    Step::new(
        "UPDATE requests SET state = 'replaced', by_request = $3, closed_at = COALESCE(closed_at, $4) \
         WHERE session = $1 AND digest = $2 AND state IN ('lost', 'open') AND id <> $3",
        vec![session.into(), digest.into(), by.into(), clock::now_ms().into()],
    )
}

impl Store {
    pub(crate) async fn request(&self, id: &str) -> Result<Option<RequestRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE r.id = $1");
        self.read(sql, vec![id.into()]).await?.first().map(RequestRow::from_row).transpose()
    }

    pub(crate) async fn count_open_requests(&self) -> Result<i64, StoreError> {
        let rows = self.read("SELECT COUNT(*) FROM requests WHERE state = 'open'", Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Lists requests, oldest first.
    pub(crate) async fn requests(
        &self,
        state: Option<&str>,
        session: Option<&str>,
        after: Option<(i64, String)>,
        limit: i64,
    ) -> Result<Vec<RequestRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE ($1 IS NULL OR r.state = $1) AND ($2 IS NULL OR r.session = $2) \
             AND (r.opened_at > $3 OR (r.opened_at = $3 AND r.id > $4)) ORDER BY r.opened_at, r.id LIMIT $5"
        );
        let (at, id) = after.unwrap_or((-1, String::new()));
        let values = vec![state.into(), session.into(), at.into(), id.into(), limit.into()];
        self.read(sql, values).await?.iter().map(RequestRow::from_row).collect()
    }
}
