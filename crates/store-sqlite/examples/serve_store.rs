//! A session store as a process: requests as JSON lines on stdin, responses on stdout. For programs in other languages,
//! and for the conformance suite that compares the stores with the official SDK.
//!
//! `serve_store memory`, `serve_store file DIR` or `serve_store sqlite FILE`. A request is
//! `{"do": "append", "project": "p", "session": "s", "subpath": null, "entries": [..]}`; the others are `load`, `list`,
//! `summaries`, `delete` and `subkeys`. A response is `{"ok": ..}` or `{"error": ".."}`.

use std::io::{BufRead, Write};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_session_store::store::{
    FileStore, ListedSession, MemoryStore, SharedStore, StoreError, StoreKey, SummarizedSession,
};
use whimbrel_store_sqlite::SqliteStore;
use whimbrel_wire::RawJson;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum StoreRequest {
    Append {
        #[serde(flatten)]
        key: RequestKey,
        entries: Vec<Value>,
    },
    Load(RequestKey),
    List {
        project: String,
    },
    Summaries {
        project: String,
    },
    Delete(RequestKey),
    Subkeys {
        project: String,
        session: String,
    },
}

#[derive(Deserialize)]
struct RequestKey {
    project: String,
    session: String,
    subpath: Option<String>,
}

impl From<RequestKey> for StoreKey {
    fn from(key: RequestKey) -> Self {
        Self { project: key.project, session: key.session, subpath: key.subpath }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let store = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory"] => SharedStore::new(MemoryStore::default()),
        ["file", dir] => SharedStore::new(FileStore::new(dir)),
        ["sqlite", file] => SharedStore::new(SqliteStore::open(file)?),
        _ => bail!("name a store: memory, file DIR or sqlite FILE"),
    };
    for line in std::io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?).context("the line is not a valid request")?;
        let response = match handle_request(&store, request).await {
            Ok(value) => json!({"ok": value}),
            Err(error) => json!({"error": error.to_string()}),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{response}")?;
        out.flush()?;
    }
    Ok(())
}

async fn handle_request(store: &SharedStore, request: StoreRequest) -> Result<Value, StoreError> {
    Ok(match request {
        StoreRequest::Append { key, entries } => {
            let lines = entries.iter().map(RawJson::from_value).collect::<Result<Vec<_>, _>>();
            store.append(&key.into(), &lines.map_err(std::io::Error::other)?).await?;
            Value::Null
        }
        StoreRequest::Load(key) => json!(store.load(&key.into()).await?),
        StoreRequest::List { project } => store.list(&project).await?.iter().map(listed_json).collect(),
        StoreRequest::Summaries { project } => {
            store.summaries(&project).await?.iter().map(summarized_json).collect()
        }
        StoreRequest::Delete(key) => {
            store.delete(&key.into()).await?;
            Value::Null
        }
        StoreRequest::Subkeys { project, session } => json!(store.subkeys(&project, &session).await?),
    })
}

fn listed_json(listed: &ListedSession) -> Value {
    json!({"session": listed.session, "modified_ms": listed.modified_ms})
}

fn summarized_json(session: &SummarizedSession) -> Value {
    let SummarizedSession { listed, summary } = session;
    json!({"session": listed.session, "modified_ms": listed.modified_ms, "summary": summary})
}
