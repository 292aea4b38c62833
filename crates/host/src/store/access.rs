//! People, their tokens, and the audit.

use serde_json::{Value as Json, json};

use super::{Row, Step, Store, StoreError};
use crate::clock;

/// A person who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) role: String,
}

impl Person {
    /// As `by` fields name a person.
    pub(crate) fn to_by(&self) -> Json {
        json!({"id": self.id, "name": self.name})
    }

    pub(crate) fn to_json(&self) -> Json {
        json!({"id": self.id, "name": self.name, "role": self.role})
    }
}

/// A token as stored. The secret itself is not.
#[derive(Debug, Clone)]
pub(crate) struct TokenRow {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) made_at: i64,
    pub(crate) seen_at: Option<i64>,
    pub(crate) ends_at: Option<i64>,
    pub(crate) used_at: Option<i64>,
    pub(crate) person: Person,
}

const TOKEN_COLUMNS: &str =
    "t.id, t.kind, t.name, t.made_at, t.seen_at, t.ends_at, t.used_at, p.id, p.name, p.role";

impl TokenRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.text(0)?,
            kind: row.text(1)?,
            name: row.text(2)?,
            made_at: row.int(3)?,
            seen_at: row.optional_int(4),
            ends_at: row.optional_int(5),
            used_at: row.optional_int(6),
            person: Person { id: row.text(7)?, name: row.text(8)?, role: row.text(9)? },
        })
    }

    pub(crate) fn to_json(&self, current: &str) -> Json {
        json!({
            "id": self.id, "kind": self.kind, "name": self.name, "made_at": self.made_at, "seen_at": self.seen_at,
            "ends_at": self.ends_at, "current": self.id == current,
        })
    }
}

/// A token that is made: its kind, and until when it is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewToken<'a> {
    pub(crate) person: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) ends_at: Option<i64>,
}

impl Store {
    /// The owner, created by the first start.
    pub(crate) async fn owner(&self, name: &str) -> Result<Person, StoreError> {
        let insert = Step::new(
            "INSERT INTO people (id, name, role) SELECT $1, $2, 'owner' WHERE NOT EXISTS (SELECT 1 FROM people WHERE role = 'owner')",
            vec![clock::new_id().into(), name.into()],
        );
        self.write_one(insert).await?;
        let rows =
            self.read("SELECT id, name, role FROM people WHERE role = 'owner' LIMIT 1", Vec::new()).await?;
        let row = rows.first().ok_or(StoreError::Shape("there is no owner"))?;
        Ok(Person { id: row.text(0)?, name: row.text(1)?, role: row.text(2)? })
    }

    pub(crate) async fn add_token(&self, token: NewToken<'_>) -> Result<String, StoreError> {
        let id = clock::new_id();
        let step = Step::new(
            "INSERT INTO tokens (id, person, kind, name, hash, made_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (hash) DO UPDATE SET name = tokens.name RETURNING id",
            vec![
                (&id).into(),
                token.person.into(),
                token.kind.into(),
                token.name.into(),
                clock::digest(token.secret).into(),
                clock::now_ms().into(),
                token.ends_at.into(),
            ],
        );
        self.write_one(step).await?.first().map_or(Ok(id), |row| row.text(0))
    }

    /// The token of this hash.
    pub(crate) async fn token_by_hash(&self, hash: &str) -> Result<Option<TokenRow>, StoreError> {
        let sql = format!(
            "SELECT {TOKEN_COLUMNS} FROM tokens t JOIN people p ON p.id = t.person WHERE t.hash = $1"
        );
        self.read(sql, vec![hash.into()]).await?.first().map(TokenRow::from_row).transpose()
    }

    /// Whether a token is still valid.
    pub(crate) async fn has_token(&self, id: &str) -> Result<bool, StoreError> {
        Ok(!self.read("SELECT 1 FROM tokens WHERE id = $1", vec![id.into()]).await?.is_empty())
    }

    /// Uses a login code; `false` if it was used before.
    pub(crate) async fn use_code(&self, id: &str) -> Result<bool, StoreError> {
        let step = Step::new(
            "UPDATE tokens SET used_at = $2 WHERE id = $1 AND used_at IS NULL",
            vec![id.into(), clock::now_ms().into()],
        );
        match self.write_one(step.required()).await {
            Ok(_) => Ok(true),
            Err(StoreError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn touch_token(&self, id: &str) -> Result<(), StoreError> {
        let step = Step::new(
            "UPDATE tokens SET seen_at = $2 WHERE id = $1",
            vec![id.into(), clock::now_ms().into()],
        );
        self.write_one(step).await.map(drop)
    }

    /// Devices and keys, and login codes that can still be used.
    pub(crate) async fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        let sql = format!(
            "SELECT {TOKEN_COLUMNS} FROM tokens t JOIN people p ON p.id = t.person \
             WHERE t.used_at IS NULL AND (t.ends_at IS NULL OR t.ends_at > $1) ORDER BY t.made_at, t.id LIMIT 500"
        );
        self.read(sql, vec![clock::now_ms().into()]).await?.iter().map(TokenRow::from_row).collect()
    }

    /// Deletes a token, unless it is the one of the token file. Returns whether there was one.
    pub(crate) async fn delete_token(&self, id: &str) -> Result<bool, StoreError> {
        let step = Step::new("DELETE FROM tokens WHERE id = $1 AND kind <> 'file'", vec![id.into()]);
        match self.write_one(step.required()).await {
            Ok(_) => Ok(true),
            Err(StoreError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes keys of token files that are no longer given.
    pub(crate) async fn delete_file_tokens(&self) -> Result<(), StoreError> {
        self.write_one(Step::new("DELETE FROM tokens WHERE kind = 'file'", Vec::new())).await.map(drop)
    }

    /// Lists the audit, newest last.
    pub(crate) async fn audit(&self, since: i64, after: &str, limit: i64) -> Result<Vec<Json>, StoreError> {
        let sql = "SELECT a.id, a.at, a.person, p.name, a.what, a.body FROM audit a LEFT JOIN people p ON p.id = a.person \
                   WHERE a.at >= $1 AND a.id > $2 ORDER BY a.id LIMIT $3";
        let rows = self.read(sql, vec![since.into(), after.into(), limit.into()]).await?;
        let read = |row: &Row| {
            let by = row
                .optional_text(2)
                .map(|id| json!({"id": id, "name": row.optional_text(3).unwrap_or_default()}));
            let body: Json = serde_json::from_str(&row.text(5)?).unwrap_or_default();
            Ok(json!({"id": row.text(0)?, "at": row.int(1)?, "by": by, "what": row.text(4)?, "body": body}))
        };
        rows.iter().map(read).collect()
    }
}

/// The step that notes who did what.
pub(crate) fn audit_step(person: Option<&str>, what: &str, body: &Json) -> Step {
    Step::new(
        "INSERT INTO audit (id, at, person, what, body) VALUES ($1, $2, $3, $4, $5)",
        vec![
            clock::new_id().into(),
            clock::now_ms().into(),
            person.into(),
            what.into(),
            body.to_string().into(),
        ],
    )
}
