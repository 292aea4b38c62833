//! Lines on their way to a store that fails.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::session::store::{MemoryStore, SessionStore};

/// A store that behaves as it is told.
#[derive(Debug, Default)]
struct Moody {
    kept: MemoryStore,
    mood: Mutex<Mood>,
    asked: AtomicUsize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Mood {
    #[default]
    Works,
    Fails,
    Sleeps,
}

#[async_trait]
impl SessionStore for Moody {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Works => self.kept.append(key, entries).await,
            Mood::Fails => Err(io::Error::from(io::ErrorKind::StorageFull).into()),
            Mood::Sleeps => std::future::pending().await,
        }
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        self.slow().await;
        self.kept.load(key).await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError> {
        self.slow().await;
        self.kept.subkeys(project, session).await
    }
}

impl Moody {
    async fn slow(&self) {
        let mood = *self.mood.lock().unwrap();
        if mood == Mood::Sleeps {
            std::future::pending::<()>().await;
        }
    }
}

fn line(name: &str) -> RawJson {
    RawJson::of(&json!({"type": "user", "uuid": name})).unwrap()
}

struct Errand {
    store: Arc<Moody>,
    courier: Courier,
    key: Arc<StoreKey>,
}

impl Errand {
    fn new(room: usize) -> Self {
        let store = Arc::new(Moody::default());
        let courier = Courier::with_room(Arc::clone(&store).into(), "p", room);
        Self { store, courier, key: Arc::new(StoreKey::session("p", "s")) }
    }

    fn mood(&self, mood: Mood) {
        *self.store.mood.lock().unwrap() = mood;
    }

    fn take(&self, names: &[&str]) {
        for name in names {
            self.courier.take(&self.key, line(name));
        }
    }

    async fn deliver(&self, urgency: Urgency) -> bool {
        self.courier.deliver(urgency).await.is_ok()
    }

    async fn kept(&self) -> Vec<RawJson> {
        self.store.load(&self.key).await.unwrap().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_refuses_waits_and_comes_later_in_order() {
    let errand = Errand::new(1 << 20);
    errand.mood(Mood::Fails);
    errand.take(&["a", "b"]);
    assert!(!errand.deliver(Urgency::Soon).await);
    assert!(matches!(errand.courier.take_news(), Some(News::Lost(_))));
    // Not asked again at once, and the host is not told again.
    errand.take(&["c"]);
    assert!(!errand.deliver(Urgency::Soon).await);
    assert_eq!(errand.store.asked.load(Ordering::Relaxed), 1);
    assert!(errand.courier.take_news().is_none());
    assert_eq!(errand.courier.owes(), 3);
    errand.mood(Mood::Works);
    tokio::time::advance(PAUSE).await;
    assert!(errand.deliver(Urgency::Soon).await);
    assert!(matches!(errand.courier.take_news(), Some(News::Complete)));
    assert_eq!((errand.courier.owes(), errand.kept().await), (0, vec![line("a"), line("b"), line("c")]));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_must_succeed_is_tried_three_times() {
    let errand = Errand::new(1 << 20);
    errand.mood(Mood::Fails);
    errand.take(&["a"]);
    assert!(!errand.deliver(Urgency::Last).await);
    assert_eq!(errand.store.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_given_up_and_nothing_is_lost_by_that() {
    let errand = Errand::new(1 << 20);
    errand.mood(Mood::Sleeps);
    errand.take(&["a"]);
    assert!(!errand.deliver(Urgency::Now).await);
    assert!(
        matches!(errand.courier.take_news(), Some(News::Lost(error)) if error.kind() == io::ErrorKind::TimedOut)
    );
    // A delivery that somebody drops half way.
    drop(timeout(Duration::from_secs(1), errand.courier.deliver(Urgency::Now)).await);
    errand.mood(Mood::Works);
    assert!(errand.deliver(Urgency::Now).await);
    assert_eq!(errand.kept().await, [line("a")]);
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_is_given_up_and_told() {
    let errand = Errand::new(2 * line("a").as_str().len());
    errand.mood(Mood::Fails);
    errand.take(&["a"]);
    errand.deliver(Urgency::Now).await;
    assert!(matches!(errand.courier.take_news(), Some(News::Lost(_))));
    errand.take(&["b", "c", "d"]);
    assert!(
        matches!(errand.courier.take_news(), Some(News::Lost(error)) if error.to_string().contains("no more"))
    );
    errand.mood(Mood::Works);
    assert!(errand.deliver(Urgency::Now).await);
    assert!(matches!(errand.courier.take_news(), Some(News::Gap(2))));
    errand.take(&["e"]);
    assert!(errand.deliver(Urgency::Soon).await);
    assert_eq!(errand.kept().await, [line("a"), line("b"), line("e")]);
}

#[tokio::test]
async fn lines_of_several_transcripts_go_each_to_its_own() {
    let errand = Errand::new(1 << 20);
    let below = Arc::new(errand.key.below("subagents/agent-1"));
    errand.take(&["a"]);
    errand.courier.take(&below, line("x"));
    errand.take(&["b"]);
    assert!(errand.deliver(Urgency::Soon).await);
    assert_eq!(errand.kept().await, [line("a"), line("b")]);
    assert_eq!(errand.store.load(&below).await.unwrap(), Some(vec![line("x")]));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_gives_anything_back_is_given_up() {
    let errand = Errand::new(1 << 20);
    errand.mood(Mood::Sleeps);
    let late = |error: StoreError| error.into_io().kind() == io::ErrorKind::TimedOut;
    assert!(errand.courier.load("s", "subagents/agent-a").await.is_err_and(late));
    assert!(errand.courier.subkeys("s").await.is_err_and(late));
    errand.mood(Mood::Works);
    assert_eq!(errand.courier.load("s", "subagents/agent-a").await.unwrap(), None);
}
