//! Contract of session stores. The crate of a store runs [`check`] in a test:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use whimbrel_session_store::store::MemoryStore;
//! whimbrel_testkit::store_contract::check(MemoryStore::default).await.unwrap();
//! # })
//! ```

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use whimbrel_session_store::store::{SessionStore, StoreError, StoreKey, StoredSummary};
use whimbrel_wire::RawJson;

/// Checks a store, with a new instance for each claim. The error names the claim that failed.
pub async fn check<S: SessionStore>(mut new_store: impl FnMut() -> S) -> Result<()> {
    check_order(&new_store()).await?;
    check_duplicates(&new_store()).await?;
    check_conflicts(&new_store()).await?;
    check_isolation(&new_store()).await?;
    check_lists(&new_store()).await?;
    check_removal(&new_store()).await?;
    check_summaries(&new_store()).await
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
    ensure!(
        store.load(&session_key()).await?.is_none(),
        "a transcript that was never written does not exist"
    );
    store.append(&session_key(), &[]).await?;
    ensure!(store.load(&session_key()).await?.is_none(), "appending nothing creates no transcript");
    store.append(&session_key(), &[entry("b"), entry("a")]).await?;
    store.append(&session_key(), &[]).await?;
    store.append(&session_key(), &[entry("c")]).await?;
    let loaded = store.load(&session_key()).await?;
    ensure!(
        loaded == Some(vec![entry("b"), entry("a"), entry("c")]),
        "lines are loaded in the order of appending, not {loaded:?}"
    );
    let special = raw_json(&json!({"type": "x", "text": "two\nlines, \u{1f426}, \u{0} and \"quotes\""}));
    store.append(&session_key().with_subpath("odd"), std::slice::from_ref(&special)).await?;
    ensure!(
        store.load(&session_key().with_subpath("odd")).await? == Some(vec![special]),
        "text is loaded unchanged"
    );
    Ok(())
}

async fn check_duplicates(store: &impl SessionStore) -> Result<()> {
    let without_uuid = raw_json(&json!({"type": "tag", "tag": "x"}));
    store.append(&session_key(), &[entry("a"), entry("b")]).await?;
    store.append(&session_key(), &[entry("a"), entry("b"), entry("c"), without_uuid.clone()]).await?;
    store.append(&session_key(), std::slice::from_ref(&without_uuid)).await?;
    let loaded = store.load(&session_key()).await?;
    let expected = vec![entry("a"), entry("b"), entry("c"), without_uuid.clone(), without_uuid];
    ensure!(
        loaded == Some(expected),
        "a duplicate uuid is stored once, a line without uuid every time, not {loaded:?}"
    );
    let below = session_key().with_subpath("subagents/agent-1");
    store.append(&below, &[entry("a")]).await?;
    ensure!(store.load(&below).await?.is_some(), "a uuid is a duplicate only within its transcript");
    Ok(())
}

async fn check_conflicts(store: &impl SessionStore) -> Result<()> {
    let key = session_key();
    let tag = raw_json(&json!({"type": "tag", "tag": "x"}));
    store.append_after(&key, None, &[entry("a"), entry("b")]).await?;
    store.append_after(&key, Some("b"), std::slice::from_ref(&tag)).await?;
    store.append_after(&key, Some("b"), &[entry("c"), tag.clone()]).await?;
    for (name, last) in [("a new session", None), ("an earlier line", Some("b")), ("no line", Some("z"))] {
        let result = store.append_after(&key, last, &[entry("d")]).await;
        ensure!(
            matches!(result, Err(StoreError::Conflict { .. })),
            "a line after {name} conflicts with the last line, not {result:?}"
        );
    }
    store.append_after(&key, Some("b"), std::slice::from_ref(&tag)).await?;
    store.append_after(&key, Some("b"), &[entry("c"), entry("d")]).await?;
    let loaded = store.load(&key).await?;
    let expected = vec![entry("a"), entry("b"), tag.clone(), entry("c"), tag.clone(), tag, entry("d")];
    ensure!(
        loaded == Some(expected),
        "lines without uuid and repeated deliveries are no conflict, and conflicts store nothing, not {loaded:?}"
    );
    let below = key.with_subpath("subagents/agent-1");
    store.append_after(&below, None, &[entry("x")]).await?;
    let gone = StoreKey::session("proj", "gone");
    let result = store.append_after(&gone, Some("a"), &[entry("b")]).await;
    ensure!(
        matches!(result, Err(StoreError::Conflict { .. })),
        "a deleted session conflicts, not {result:?}"
    );
    ensure!(store.load(&gone).await?.is_none(), "and is not created");
    Ok(())
}

async fn check_isolation(store: &impl SessionStore) -> Result<()> {
    let other = StoreKey::session("other", "sess");
    for (key, line) in
        [(session_key(), "m"), (session_key().with_subpath("subagents/agent-1"), "s"), (other.clone(), "o")]
    {
        store.append(&key, &[entry(line)]).await?;
    }
    for (key, line) in
        [(session_key(), "m"), (session_key().with_subpath("subagents/agent-1"), "s"), (other, "o")]
    {
        let loaded = store.load(&key).await?;
        ensure!(loaded == Some(vec![entry(line)]), "{key:?} has only its own line, not {loaded:?}");
    }
    ensure!(
        store.load(&session_key().with_subpath("nope")).await?.is_none(),
        "another subpath has no transcript"
    );
    Ok(())
}

async fn check_lists(store: &impl SessionStore) -> Result<()> {
    let (one, two) = (StoreKey::session("proj", "one"), StoreKey::session("proj", "two"));
    for key in [&one, &two, &one.with_subpath("subagents/agent-2"), &one.with_subpath("subagents/agent-1")] {
        store.append(key, &[entry("x")]).await?;
    }
    let listed = store.list("proj").await?;
    let mut ids: Vec<&str> = listed.iter().map(|session| session.session.as_str()).collect();
    ids.sort_unstable();
    ensure!(ids == ["one", "two"], "the list has each session once, not {ids:?}");
    ensure!(listed.iter().all(|session| session.modified_ms > 1_000_000_000_000), "times are milliseconds");
    ensure!(
        listed.is_sorted_by(|one, other| one.modified_ms >= other.modified_ms),
        "the list begins with the newest session"
    );
    ensure!(store.list("never").await?.is_empty(), "an unknown project has no sessions");
    let subkeys = store.subkeys("proj", "one").await?;
    ensure!(subkeys == ["subagents/agent-1", "subagents/agent-2"], "subpaths are sorted, not {subkeys:?}");
    ensure!(store.subkeys("proj", "two").await?.is_empty(), "the session's own transcript is not a subpath");
    Ok(())
}

async fn check_removal(store: &impl SessionStore) -> Result<()> {
    let (one, two) =
        (session_key().with_subpath("subagents/agent-1"), session_key().with_subpath("subagents/agent-2"));
    let neighbors = [StoreKey::session("proj", "sess2"), StoreKey::session("other", "sess")];
    for key in [&session_key(), &one, &two, &neighbors[0], &neighbors[1]] {
        store.append(key, &[entry("x")]).await?;
    }
    store.delete(&one).await?;
    ensure!(
        store.subkeys("proj", "sess").await? == ["subagents/agent-2"],
        "deleting a subpath deletes only it"
    );
    ensure!(store.load(&session_key()).await?.is_some(), "deleting a subpath keeps its session");
    store.delete(&session_key()).await?;
    store.delete(&session_key()).await?;
    for gone in [&session_key(), &two] {
        ensure!(store.load(gone).await?.is_none(), "deleting a session deletes its subpaths");
    }
    for neighbor in &neighbors {
        ensure!(store.load(neighbor).await?.is_some(), "deleting a session keeps others");
    }
    store.append(&session_key(), &[entry("x")]).await?;
    ensure!(
        store.load(&session_key()).await? == Some(vec![entry("x")]),
        "a deleted session can be written again"
    );
    Ok(())
}

async fn check_summaries(store: &impl SessionStore) -> Result<()> {
    let prompt = json!({
        "type": "user", "cwd": "/w", "timestamp": "2026-11-16T03:00:00.123Z", "message": {"content": "Do\nthis"},
    });
    store.append(&session_key(), &[entry("x"), raw_json(&prompt)]).await?;
    ensure!(only_summary(store).await?.text() == Some("Do this"), "the first prompt is the summary");
    // Longer than the head and tail that a listing reads.
    let filler: Vec<RawJson> =
        (0..3_000).map(|number| entry(&format!("a long transcript {number}"))).collect();
    store.append(&session_key(), &filler).await?;
    let metadata =
        [json!({"type": "custom-title", "customTitle": "Mine"}), json!({"type": "tag", "tag": "blue"})];
    store.append(&session_key(), &metadata.each_ref().map(raw_json)).await?;
    store
        .append(
            &session_key().with_subpath("subagents/agent-1"),
            &[raw_json(&json!({"type": "tag", "tag": "red"}))],
        )
        .await?;
    let found = only_summary(store).await?;
    let fields = (found.text(), found.tag.as_deref(), found.cwd.as_deref(), found.created_at);
    ensure!(
        fields == (Some("Mine"), Some("blue"), Some("/w"), Some(1_794_798_000_123)),
        "the summary comes from the session's own lines, not {fields:?}"
    );
    ensure!(
        store.summary("proj", "sess").await? == Some(found),
        "the summary of one session is that of the list"
    );
    ensure!(store.summary("proj", "never").await?.is_none(), "an unknown session has no summary");
    let modified = (store.list("proj").await?, store.summaries("proj").await?);
    ensure!(
        modified.0.iter().eq(modified.1.iter().map(|session| &session.listed)),
        "both lists have the same times"
    );
    Ok(())
}

/// Returns the summary of the only session.
async fn only_summary(store: &impl SessionStore) -> Result<StoredSummary> {
    let mut summaries = store.summaries("proj").await?;
    ensure!(summaries.len() == 1, "one session has one summary, not {summaries:?}");
    Ok(summaries.remove(0).summary)
}
