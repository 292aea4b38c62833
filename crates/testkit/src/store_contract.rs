//! Contract of session stores. The crate of a store runs [`check`] in a test:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use whimbrel_engine::session::store::MemoryStore;
//! whimbrel_testkit::store_contract::check(MemoryStore::default).await.unwrap();
//! # })
//! ```

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use whimbrel_session_store::store::{SessionStore, StoreKey, Summary};
use whimbrel_wire::RawJson;

/// Checks a store, with a new instance for each claim. The error names the claim that failed.
pub async fn check<S: SessionStore>(mut fresh: impl FnMut() -> S) -> Result<()> {
    check_order(&fresh()).await?;
    check_duplicates(&fresh()).await?;
    check_isolation(&fresh()).await?;
    check_lists(&fresh()).await?;
    check_removal(&fresh()).await?;
    check_summaries(&fresh()).await
}

fn entry(name: &str) -> RawJson {
    raw_json(&json!({"type": "x", "uuid": name}))
}

fn raw_json(value: &Value) -> RawJson {
    RawJson::from_value(value).unwrap_or_else(|error| unreachable!("a JSON value can be written: {error}"))
}

fn session_key() -> StoreKey {
    StoreKey::session("proj", "sess")
}

async fn check_order(store: &impl SessionStore) -> Result<()> {
    ensure!(store.load(&session_key()).await?.is_none(), "a transcript that nobody wrote is none");
    store.append(&session_key(), &[]).await?;
    ensure!(store.load(&session_key()).await?.is_none(), "no lines make no transcript");
    store.append(&session_key(), &[entry("b"), entry("a")]).await?;
    store.append(&session_key(), &[]).await?;
    store.append(&session_key(), &[entry("c")]).await?;
    let loaded = store.load(&session_key()).await?;
    ensure!(
        loaded == Some(vec![entry("b"), entry("a"), entry("c")]),
        "lines come back in the order in which they came, not {loaded:?}"
    );
    let odd = raw_json(&json!({"type": "x", "text": "two\nlines, \u{1f426}, \u{0} and \"quotes\""}));
    store.append(&session_key().below("odd"), std::slice::from_ref(&odd)).await?;
    ensure!(
        store.load(&session_key().below("odd")).await? == Some(vec![odd]),
        "any text comes back as it was"
    );
    Ok(())
}

async fn check_duplicates(store: &impl SessionStore) -> Result<()> {
    let nameless = raw_json(&json!({"type": "tag", "tag": "x"}));
    store.append(&session_key(), &[entry("a"), entry("b")]).await?;
    store.append(&session_key(), &[entry("a"), entry("b"), entry("c"), nameless.clone()]).await?;
    store.append(&session_key(), std::slice::from_ref(&nameless)).await?;
    let loaded = store.load(&session_key()).await?;
    let expected = vec![entry("a"), entry("b"), entry("c"), nameless.clone(), nameless];
    ensure!(
        loaded == Some(expected),
        "a line that comes twice is kept once, one without an id each time, not {loaded:?}"
    );
    let below = session_key().below("subagents/agent-1");
    store.append(&below, &[entry("a")]).await?;
    ensure!(store.load(&below).await?.is_some(), "an id is known in its own transcript only");
    Ok(())
}

async fn check_isolation(store: &impl SessionStore) -> Result<()> {
    let other = StoreKey::session("other", "sess");
    for (key, line) in
        [(session_key(), "m"), (session_key().below("subagents/agent-1"), "s"), (other.clone(), "o")]
    {
        store.append(&key, &[entry(line)]).await?;
    }
    for (key, line) in [(session_key(), "m"), (session_key().below("subagents/agent-1"), "s"), (other, "o")] {
        let loaded = store.load(&key).await?;
        ensure!(loaded == Some(vec![entry(line)]), "{key:?} has its own line only, not {loaded:?}");
    }
    ensure!(store.load(&session_key().below("nope")).await?.is_none(), "another subpath has no transcript");
    Ok(())
}

async fn check_lists(store: &impl SessionStore) -> Result<()> {
    let (one, two) = (StoreKey::session("proj", "one"), StoreKey::session("proj", "two"));
    for key in [&one, &two, &one.below("subagents/agent-2"), &one.below("subagents/agent-1")] {
        store.append(key, &[entry("x")]).await?;
    }
    let listed = store.list("proj").await?;
    let mut ids: Vec<&str> = listed.iter().map(|stored| stored.session.as_str()).collect();
    ids.sort_unstable();
    ensure!(ids == ["one", "two"], "a list has each session once, not {ids:?}");
    ensure!(listed.iter().all(|stored| stored.modified_ms > 1_000_000_000_000), "times are milliseconds");
    ensure!(
        listed.is_sorted_by(|one, other| one.modified_ms >= other.modified_ms),
        "the last one stands first"
    );
    ensure!(store.list("never").await?.is_empty(), "a project that nobody wrote to has no sessions");
    let subkeys = store.subkeys("proj", "one").await?;
    ensure!(subkeys == ["subagents/agent-1", "subagents/agent-2"], "subpaths come in order, not {subkeys:?}");
    ensure!(store.subkeys("proj", "two").await?.is_empty(), "a session's own transcript is no subpath");
    Ok(())
}

async fn check_removal(store: &impl SessionStore) -> Result<()> {
    let (one, two) = (session_key().below("subagents/agent-1"), session_key().below("subagents/agent-2"));
    let near = [StoreKey::session("proj", "sess2"), StoreKey::session("other", "sess")];
    for key in [&session_key(), &one, &two, &near[0], &near[1]] {
        store.append(key, &[entry("x")]).await?;
    }
    store.delete(&one).await?;
    ensure!(store.subkeys("proj", "sess").await? == ["subagents/agent-2"], "a subpath goes alone");
    ensure!(store.load(&session_key()).await?.is_some(), "its session stays");
    store.delete(&session_key()).await?;
    store.delete(&session_key()).await?;
    for gone in [&session_key(), &two] {
        ensure!(store.load(gone).await?.is_none(), "a session goes with all below it");
    }
    for stays in &near {
        ensure!(store.load(stays).await?.is_some(), "other sessions stay");
    }
    store.append(&session_key(), &[entry("x")]).await?;
    ensure!(
        store.load(&session_key()).await? == Some(vec![entry("x")]),
        "what was removed can be written anew"
    );
    Ok(())
}

async fn check_summaries(store: &impl SessionStore) -> Result<()> {
    let prompt = json!({
        "type": "user", "cwd": "/w", "timestamp": "2026-11-16T03:00:00.123Z", "message": {"content": "Do\nthis"},
    });
    store.append(&session_key(), &[entry("x"), raw_json(&prompt)]).await?;
    ensure!(
        only_summary(store).await?.text() == Some("Do this"),
        "the first prompt says what a session is about"
    );
    // Longer than the head and tail that a listing reads.
    let filler: Vec<RawJson> =
        (0..3_000).map(|number| entry(&format!("a long transcript {number}"))).collect();
    store.append(&session_key(), &filler).await?;
    let named =
        [json!({"type": "custom-title", "customTitle": "Mine"}), json!({"type": "tag", "tag": "blue"})];
    store.append(&session_key(), &named.each_ref().map(raw_json)).await?;
    store
        .append(&session_key().below("subagents/agent-1"), &[raw_json(&json!({"type": "tag", "tag": "red"}))])
        .await?;
    let found = only_summary(store).await?;
    let facts = (found.text(), found.tag.as_deref(), found.cwd.as_deref(), found.created_at);
    ensure!(
        facts == (Some("Mine"), Some("blue"), Some("/w"), Some(1_794_798_000_123)),
        "a summary has titles, tags and facts of the session's own lines, not {facts:?}"
    );
    let modified = (store.list("proj").await?, store.summaries("proj").await?);
    ensure!(
        modified.0.iter().eq(modified.1.iter().map(|described| &described.stored)),
        "both lists have the same times"
    );
    Ok(())
}

/// Returns the summary of the only session.
async fn only_summary(store: &impl SessionStore) -> Result<Summary> {
    let mut described = store.summaries("proj").await?;
    ensure!(described.len() == 1, "one session has one summary, not {described:?}");
    Ok(described.remove(0).summary)
}
