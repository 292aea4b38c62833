//! A session store of your own; nothing of a session is written to disk: `cargo run --example session_store`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use whimbrel::Agent;
use whimbrel::store::{SessionStore, StoreError, StoreKey, async_trait, uuid_of};
use whimbrel::wire::RawJson;

/// A minimal store: two methods are enough. A real one would write to a database or a bucket.
#[derive(Default)]
struct MapStore {
    lines: Mutex<HashMap<StoreKey, Vec<RawJson>>>,
}

#[async_trait]
impl SessionStore for MapStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        let mut drawer = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = drawer.entry(key.clone()).or_default();
        for entry in entries {
            // A repeated delivery may contain entries that are stored already; they are skipped.
            let uuid = uuid_of(entry);
            if uuid.is_none() || !lines.iter().any(|line| uuid_of(line) == uuid) {
                lines.push(entry.clone());
            }
        }
        Ok(())
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        Ok(self.lines.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(MapStore::default());
    let agent = Agent::new().session_store(Arc::clone(&store));
    let agent = model::real_or_scripted(agent, json!(["Hello, Ann.", "You are Ann."]))?;
    let first = whimbrel::query("I am Ann.", &agent).await?;
    println!("{first}");
    // Another process with the same store could do this as well.
    let again = agent.resume(first.session_id());
    println!("{}", whimbrel::query("Who am I?", &again).await?);
    for message in again.sessions()?.messages(first.session_id()).await? {
        println!("{}: {}", message.kind, message.message["content"]);
    }
    Ok(())
}
