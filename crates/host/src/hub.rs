//! News for those who watch lists: changes of sessions and of requests, and tokens that are revoked.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use serde_json::{Value as Json, json};
use tokio::sync::broadcast;

/// Changes that a slow watcher may be behind before it reads the list again.
const CAPACITY: usize = 256;

/// A change, as sockets send it.
#[derive(Debug, Clone)]
pub(crate) enum Notice {
    Session(Utf8Bytes),
    Request(Utf8Bytes),
    /// A token is no longer valid: its sockets close.
    Revoked(String),
}

/// Sends changes to all watchers.
#[derive(Debug)]
pub(crate) struct Hub {
    sender: broadcast::Sender<Notice>,
    list_watchers: Arc<()>,
    visible: Arc<()>,
}

/// Counts as one as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted {
    _count: Arc<()>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(CAPACITY),
            list_watchers: Arc::default(),
            visible: Arc::default(),
        }
    }
}

impl Hub {
    pub(crate) fn watch(&self) -> broadcast::Receiver<Notice> {
        self.sender.subscribe()
    }

    pub(crate) fn watch_list(&self) -> Counted {
        Counted { _count: Arc::clone(&self.list_watchers) }
    }

    /// A person looks at a page.
    pub(crate) fn look(&self) -> Counted {
        Counted { _count: Arc::clone(&self.visible) }
    }

    /// How many pages are looked at.
    pub(crate) fn visible(&self) -> usize {
        Arc::strong_count(&self.visible) - 1
    }

    /// How many watch the list of sessions.
    pub(crate) fn list_watchers(&self) -> usize {
        Arc::strong_count(&self.list_watchers) - 1
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub(crate) fn session_changed(&self, session: &Json) {
        self.send(|| Notice::Session(json!({"op": "session", "session": session}).to_string().into()));
    }

    pub(crate) fn request_changed(&self, request: &Json) {
        self.send(|| Notice::Request(json!({"op": "request", "request": request}).to_string().into()));
    }

    pub(crate) fn revoked(&self, token: &str) {
        self.send(|| Notice::Revoked(token.to_owned()));
    }

    fn send(&self, notice: impl FnOnce() -> Notice) {
        if self.is_watched() {
            // Without a receiver there is nothing to tell.
            let _ = self.sender.send(notice());
        }
    }
}
