//! Limit on the bytes of unread frames: above it the router stops reading, which slows the engine down.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Bytes of queued frames, and the limit above which the engine is slowed down.
pub(crate) struct UnreadLimit {
    bytes: AtomicUsize,
    limit: usize,
    /// Wakes the router when it may read on: frames were read, or a request is pending.
    reader_wake: Notify,
}

impl UnreadLimit {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit, reader_wake: Notify::new() }
    }

    /// Adds to the unread bytes.
    pub(crate) fn add_unread(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts from the unread bytes; wakes the router if the limit was exceeded.
    pub(crate) fn remove_unread(&self, bytes: usize) {
        if self.bytes.fetch_sub(bytes, Ordering::Relaxed) > self.limit {
            self.reader_wake.notify_one();
        }
    }

    /// Wakes the router, because a request is pending now.
    pub(crate) fn wake_reader(&self) {
        self.reader_wake.notify_one();
    }

    /// Waits while too many bytes are unread, but not while a request is pending, whose response may be queued behind
    /// more frames, and not after a stop.
    pub(crate) async fn wait_for_capacity(
        &self,
        pending_count: impl Fn() -> usize,
        stop: &CancellationToken,
    ) {
        while self.bytes.load(Ordering::Relaxed) > self.limit && pending_count() == 0 {
            tokio::select! {
                () = self.reader_wake.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }
}
