//! The way from a session to one socket. A socket that does not keep up first loses what is only live, then is told to
//! read from the store again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::{Notify, mpsc};

/// Bytes that may wait for a socket.
pub(crate) const MAX_QUEUED: usize = 1024 * 1024;

/// What waits to be sent on a socket.
#[derive(Clone, Debug)]
pub(crate) struct SocketQueue {
    sender: mpsc::UnboundedSender<Utf8Bytes>,
    bytes: Arc<AtomicUsize>,
    drained: Arc<Notify>,
}

/// The receiving end, which the socket's writer reads.
pub(crate) struct QueuedMessages {
    receiver: mpsc::UnboundedReceiver<Utf8Bytes>,
    bytes: Arc<AtomicUsize>,
    drained: Arc<Notify>,
}

pub(crate) fn socket_queue() -> (SocketQueue, QueuedMessages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (bytes, drained) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let queue = SocketQueue { sender, bytes: Arc::clone(&bytes), drained: Arc::clone(&drained) };
    (queue, QueuedMessages { receiver, bytes, drained })
}

impl SocketQueue {
    /// Queues a message, whatever waits already: replies, and what a client asked for.
    pub(crate) fn push(&self, message: impl Into<Utf8Bytes>) {
        let message = message.into();
        self.bytes.fetch_add(message.len(), Ordering::AcqRel);
        // A socket that has closed needs no messages.
        let _ = self.sender.send(message);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > MAX_QUEUED
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until there is room, or the socket has closed.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let drained = self.drained.notified();
            if !self.is_full() || self.is_closed() {
                return;
            }
            tokio::select! {
                () = drained => {}
                () = self.sender.closed() => return,
            }
        }
    }
}

impl QueuedMessages {
    /// The next message; `None` when no sender is left.
    pub(crate) async fn next(&mut self) -> Option<Utf8Bytes> {
        let message = self.receiver.recv().await?;
        self.sent(&message);
        Some(message)
    }

    /// The next message that waits already.
    pub(crate) fn next_waiting(&mut self) -> Option<Utf8Bytes> {
        let message = self.receiver.try_recv().ok()?;
        self.sent(&message);
        Some(message)
    }

    fn sent(&self, message: &Utf8Bytes) {
        let before = self.bytes.fetch_sub(message.len(), Ordering::AcqRel);
        if before > MAX_QUEUED / 2 && before - message.len() <= MAX_QUEUED / 2 {
            self.drained.notify_waiters();
        }
    }
}

/// A subscription of a socket to a session.
#[derive(Debug)]
pub(crate) struct Outlet {
    session: String,
    queue: SocketQueue,
    /// What came while the log is being replayed; none once the socket is up to date.
    held: Mutex<Option<Vec<Utf8Bytes>>>,
    /// Live frames are left out until the next message begins, because some were dropped.
    skips_live: AtomicBool,
    is_closed: AtomicBool,
}

/// What became of a message for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Taken,
    /// The socket is too slow: the subscription is over.
    Overflow,
}

impl Outlet {
    pub(crate) fn new(session: String, queue: SocketQueue) -> Self {
        let held = Mutex::new(Some(Vec::new()));
        Self { session, queue, held, skips_live: AtomicBool::new(false), is_closed: AtomicBool::new(false) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    /// Ends the subscription; nothing more is sent.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Ends the subscription and tells the client to subscribe again.
    pub(crate) fn end(&self, last_seq: i64) {
        self.close();
        let session = &self.session;
        self.queue.push(format!(r#"{{"op":"resync","session":"{session}","after":{last_seq}}}"#));
    }

    /// Offers an event. If the socket is too slow, it is told where to go on.
    pub(crate) fn offer_event(&self, message: &Utf8Bytes, last_seq: i64) -> Offer {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &mut *held {
            held.push(message.clone());
            return Offer::Taken;
        }
        if self.queue.is_full() {
            self.end(last_seq);
            return Offer::Overflow;
        }
        self.queue.push(message.clone());
        Offer::Taken
    }

    /// Offers a live frame. It is left out if the socket is too slow.
    pub(crate) fn offer_live(&self, message: &Utf8Bytes, begins_message: bool) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &mut *held {
            held.push(message.clone());
            return;
        }
        if begins_message {
            self.skips_live.store(false, Ordering::Relaxed);
        }
        if self.queue.is_full() {
            self.skips_live.store(true, Ordering::Relaxed);
        }
        if !self.skips_live.load(Ordering::Relaxed) {
            self.queue.push(message.clone());
        }
    }

    /// Sends what was held during the replay; from now on messages go straight to the socket.
    pub(crate) fn go_live(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed() {
            return;
        }
        for message in held.take().into_iter().flatten() {
            self.queue.push(message);
        }
    }
}
