//! Delivery to a store that fails or hangs.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::store::{MemoryStore, SessionStore};

/// A store whose behavior tests can set.
#[derive(Debug, Default)]
struct FakeStore {
    inner: MemoryStore,
    behavior: Mutex<Behavior>,
    append_calls: AtomicUsize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Behavior {
    #[default]
    Works,
    Fails,
    Hangs,
}

#[async_trait]
impl SessionStore for FakeStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        self.append_calls.fetch_add(1, Ordering::Relaxed);
        let behavior = *self.behavior.lock().unwrap();
        match behavior {
            Behavior::Works => self.inner.append(key, entries).await,
            Behavior::Fails => Err(io::Error::from(io::ErrorKind::StorageFull).into()),
            Behavior::Hangs => std::future::pending().await,
        }
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        self.hang_if_set().await;
        self.inner.load(key).await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError> {
        self.hang_if_set().await;
        self.inner.subkeys(project, session).await
    }
}

impl FakeStore {
    async fn hang_if_set(&self) {
        let behavior = *self.behavior.lock().unwrap();
        if behavior == Behavior::Hangs {
            std::future::pending::<()>().await;
        }
    }
}

fn raw_line(name: &str) -> RawJson {
    RawJson::from_value(&json!({"type": "user", "uuid": name})).unwrap()
}

#[tokio::test]
async fn conflict_drops_the_lines_of_its_transcript_only() {
    let fixture = Fixture::new(1 << 20);
    let other = Arc::new(fixture.key.with_subpath("subagents/agent-1"));
    fixture.store.append(&fixture.key, &[raw_line("a"), raw_line("elsewhere")]).await.unwrap();
    fixture.writer.set_last_entry("s", "a".into());
    fixture.push(&["b"]);
    fixture.writer.push(&other, raw_line("x"));
    assert!(!fixture.writer.has_conflict());
    fixture.writer.flush(FlushMode::Once).await.unwrap();
    assert!(fixture.writer.has_conflict());
    assert!(matches!(fixture.writer.take_notice(), Some(TranscriptNotice::Conflict)));
    fixture.push(&["c"]);
    fixture.writer.flush(FlushMode::Once).await.unwrap();
    assert_eq!((fixture.writer.undelivered_count(), fixture.writer.take_notice().is_none()), (0, true));
    let stored = fixture.store.load(&fixture.key).await.unwrap().unwrap();
    assert_eq!(stored, [raw_line("a"), raw_line("elsewhere")]);
    assert_eq!(fixture.store.load(&other).await.unwrap().unwrap(), [raw_line("x")]);
}

struct Fixture {
    store: Arc<FakeStore>,
    writer: StoreWriter,
    key: Arc<StoreKey>,
}

impl Fixture {
    fn new(room: usize) -> Self {
        let store = Arc::new(FakeStore::default());
        let writer = StoreWriter::with_buffer_limit(Arc::clone(&store).into(), "p", room);
        Self { store, writer, key: Arc::new(StoreKey::session("p", "s")) }
    }

    fn set_behavior(&self, behavior: Behavior) {
        *self.store.behavior.lock().unwrap() = behavior;
    }

    fn push(&self, names: &[&str]) {
        for name in names {
            self.writer.push(&self.key, raw_line(name));
        }
    }

    async fn flush(&self, mode: FlushMode) -> bool {
        self.writer.flush(mode).await.is_ok()
    }

    async fn stored_lines(&self) -> Vec<RawJson> {
        self.store.load(&self.key).await.unwrap().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_lines_are_resent_in_order() {
    let fixture = Fixture::new(1 << 20);
    fixture.set_behavior(Behavior::Fails);
    fixture.push(&["a", "b"]);
    assert!(!fixture.flush(FlushMode::RespectBackoff).await);
    assert!(matches!(fixture.writer.take_notice(), Some(TranscriptNotice::WriteFailed(_))));
    // Within the backoff the store is not called and no second notice is created.
    fixture.push(&["c"]);
    assert!(!fixture.flush(FlushMode::RespectBackoff).await);
    assert_eq!(fixture.store.append_calls.load(Ordering::Relaxed), 1);
    assert!(fixture.writer.take_notice().is_none());
    assert_eq!(fixture.writer.undelivered_count(), 3);
    fixture.set_behavior(Behavior::Works);
    tokio::time::advance(BACKOFF.initial).await;
    assert!(fixture.flush(FlushMode::RespectBackoff).await);
    assert!(matches!(fixture.writer.take_notice(), Some(TranscriptNotice::Recovered)));
    assert_eq!(
        (fixture.writer.undelivered_count(), fixture.stored_lines().await),
        (0, vec![raw_line("a"), raw_line("b"), raw_line("c")])
    );
}

#[tokio::test(start_paused = true)]
async fn final_flush_is_tried_three_times() {
    let fixture = Fixture::new(1 << 20);
    fixture.set_behavior(Behavior::Fails);
    fixture.push(&["a"]);
    assert!(!fixture.flush(FlushMode::WithRetries).await);
    assert_eq!(fixture.store.append_calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn hanging_store_times_out_and_keeps_lines() {
    let fixture = Fixture::new(1 << 20);
    fixture.set_behavior(Behavior::Hangs);
    fixture.push(&["a"]);
    assert!(!fixture.flush(FlushMode::Once).await);
    assert!(
        matches!(fixture.writer.take_notice(), Some(TranscriptNotice::WriteFailed(error)) if error.kind() == io::ErrorKind::TimedOut)
    );
    // A flush that is cancelled half way.
    drop(timeout(Duration::from_secs(1), fixture.writer.flush(FlushMode::Once)).await);
    fixture.set_behavior(Behavior::Works);
    assert!(fixture.flush(FlushMode::Once).await);
    assert_eq!(fixture.stored_lines().await, [raw_line("a")]);
}

#[tokio::test(start_paused = true)]
async fn full_buffer_drops_lines_and_reports_them() {
    let fixture = Fixture::new(2 * raw_line("a").as_str().len());
    fixture.set_behavior(Behavior::Fails);
    fixture.push(&["a"]);
    fixture.flush(FlushMode::Once).await;
    assert!(matches!(fixture.writer.take_notice(), Some(TranscriptNotice::WriteFailed(_))));
    fixture.push(&["b", "c", "d"]);
    assert!(
        matches!(fixture.writer.take_notice(), Some(TranscriptNotice::WriteFailed(error)) if error.to_string().contains("dropped"))
    );
    fixture.set_behavior(Behavior::Works);
    assert!(fixture.flush(FlushMode::Once).await);
    assert!(matches!(fixture.writer.take_notice(), Some(TranscriptNotice::RecoveredWithGap(2))));
    fixture.push(&["e"]);
    assert!(fixture.flush(FlushMode::RespectBackoff).await);
    assert_eq!(fixture.stored_lines().await, [raw_line("a"), raw_line("b"), raw_line("e")]);
}

#[tokio::test]
async fn lines_go_to_their_own_transcripts() {
    let fixture = Fixture::new(1 << 20);
    let below = Arc::new(fixture.key.with_subpath("subagents/agent-1"));
    fixture.push(&["a"]);
    fixture.writer.push(&below, raw_line("x"));
    fixture.push(&["b"]);
    assert!(fixture.flush(FlushMode::RespectBackoff).await);
    assert_eq!(fixture.stored_lines().await, [raw_line("a"), raw_line("b")]);
    assert_eq!(fixture.store.load(&below).await.unwrap(), Some(vec![raw_line("x")]));
}

#[tokio::test(start_paused = true)]
async fn hanging_store_times_out_on_read() {
    let fixture = Fixture::new(1 << 20);
    fixture.set_behavior(Behavior::Hangs);
    let late = |error: StoreError| error.into_io().kind() == io::ErrorKind::TimedOut;
    assert!(fixture.writer.load("s", "subagents/agent-a").await.is_err_and(late));
    assert!(fixture.writer.subkeys("s").await.is_err_and(late));
    fixture.set_behavior(Behavior::Works);
    assert_eq!(fixture.writer.load("s", "subagents/agent-a").await.unwrap(), None);
}
