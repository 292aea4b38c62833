//! The event log of a session.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{Row, Step, Store, StoreError};

/// A frame that is longer is sent with its long strings cut.
pub(crate) const MAX_FRAME: usize = 256 * 1024;

/// Length of a string in a frame that is cut.
const MAX_CUT_STRING: usize = 16 * 1024;

/// An event of a session.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) seq: i64,
    pub(crate) at: i64,
    /// The frame, as JSON.
    pub(crate) body: String,
}

impl EventRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { seq: row.int(0)?, at: row.int(1)?, body: row.text(2)? })
    }

    /// The event as clients see it; `op` is set in messages of a socket.
    pub(crate) fn to_json(&self, session: &str, op: Option<&str>) -> String {
        let (frame, cut) = if self.body.len() > MAX_FRAME {
            (cut_strings(&self.body), r#","cut":true"#)
        } else {
            (self.body.clone(), "")
        };
        let op = op.map_or_else(String::new, |op| format!(r#""op":"{op}","#));
        let Self { seq, at, .. } = self;
        format!(r#"{{{op}"session":"{session}","seq":{seq},"at":{at},"frame":{frame}{cut}}}"#)
    }

    /// The event with its whole frame.
    pub(crate) fn to_whole_json(&self, session: &str) -> String {
        let Self { seq, at, body } = self;
        format!(r#"{{"session":"{session}","seq":{seq},"at":{at},"frame":{body}}}"#)
    }
}

/// Cuts the long strings of a frame.
fn cut_strings(body: &str) -> String {
    fn cut(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) if text.len() > MAX_CUT_STRING => {
                let end = (0..=MAX_CUT_STRING).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                text.truncate(end);
                text.push('…');
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(cut),
            serde_json::Value::Object(fields) => fields.values_mut().for_each(cut),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(body) else { return "null".into() };
    cut(&mut value);
    value.to_string()
}

/// The step that appends an event.
pub(crate) fn append(session: &str, event: &EventRow, kind: &str, uuid: Option<&str>) -> Step {
    Step::new(
        "INSERT INTO events (session, seq, at, kind, uuid, body) VALUES ($1, $2, $3, $4, $5, $6)",
        vec![
            session.into(),
            event.seq.into(),
            event.at.into(),
            kind.into(),
            uuid.into(),
            (&event.body).into(),
        ],
    )
}

impl Store {
    /// Reads events in order: those after and before a number. With `before` alone the last ones.
    pub(crate) async fn events(
        &self,
        session: &str,
        after: Option<i64>,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<EventRow>, StoreError> {
        let is_backward = before.is_some() && after.is_none();
        let order = if is_backward { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT seq, at, body FROM events WHERE session = $1 AND seq > $2 AND seq < $3 ORDER BY seq {order} LIMIT $4"
        );
        let values =
            vec![session.into(), after.unwrap_or(0).into(), before.unwrap_or(i64::MAX).into(), limit.into()];
        let rows = self.read(sql, values).await?;
        let mut events = rows.iter().map(EventRow::from_row).collect::<Result<Vec<_>, _>>()?;
        if is_backward {
            events.reverse();
        }
        Ok(events)
    }

    /// The uuids of a session's events: what of the transcript is known.
    pub(crate) async fn event_uuids(&self, session: &str) -> Result<HashSet<u128>, StoreError> {
        let sql = "SELECT uuid FROM events WHERE session = $1 AND uuid IS NOT NULL";
        let rows = self.read(sql, vec![session.into()]).await?;
        Ok(rows.iter().filter_map(|row| parse_uuid(&row.optional_text(0)?)).collect())
    }

    /// The number of the event with this uuid.
    pub(crate) async fn seq_of(&self, session: &str, uuid: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT seq FROM events WHERE session = $1 AND uuid = $2";
        let rows = self.read(sql, vec![session.into(), uuid.into()]).await?;
        Ok(rows.first().and_then(|row| row.optional_int(0)))
    }
}

/// A uuid as a number; `None` if it is none.
pub(crate) fn parse_uuid(text: &str) -> Option<u128> {
    uuid::Uuid::parse_str(text).ok().map(|uuid| uuid.as_u128())
}

/// JSON that is kept as it is written.
pub(crate) fn raw_json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_are_cut_and_the_event_says_so() {
        let body = serde_json::json!({"type": "user", "text": "ü".repeat(200_000)}).to_string();
        let event = EventRow { seq: 3, at: 5, body };
        let sent: serde_json::Value = serde_json::from_str(&event.to_json("s", Some("event"))).unwrap();
        assert_eq!((&sent["op"], &sent["cut"], &sent["seq"]), (&"event".into(), &true.into(), &3.into()));
        assert_eq!(sent["frame"]["text"].as_str().unwrap().chars().count(), MAX_CUT_STRING / 2 + 1);
    }
}
