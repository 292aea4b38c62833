//! Client side of the link to an engine: state that the caller's handles and the frame router share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::Shared;
use tokio::sync::{Notify, OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlRequest, Initialize, InitializeReply, Response, TypedRequest};

use crate::error::Error;

/// Sends frames and requests to one engine. Shared by every handle of a session and by the router task.
pub(crate) struct EngineClient {
    to_engine: mpsc::Sender<link::IncomingFrame>,
    pending: Mutex<PendingRequests>,
    /// Bytes of queued frames, and the limit above which the engine is slowed down.
    unread_bytes: AtomicUsize,
    unread_limit: usize,
    /// Wakes the router when it may read on: frames were read, or a request is pending.
    reader_wake: Notify,
    /// Response to the `initialize` that opened the session, if there was one.
    initialize_response: Option<Shared<oneshot::Receiver<Response>>>,
    info: OnceCell<Box<InitializeReply>>,
    pub(crate) finished: CancellationToken,
    pub(crate) stop: CancellationToken,
}

/// Requests to the engine that have no response yet.
#[derive(Default)]
struct PendingRequests {
    by_id: HashMap<String, oneshot::Sender<Response>>,
    /// The engine has ended: no response will come.
    is_closed: bool,
}

/// Removes a pending request when its caller stops waiting.
struct PendingGuard<'a> {
    client: &'a EngineClient,
    id: String,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.client.lock_pending().by_id.remove(&self.id);
    }
}

impl EngineClient {
    pub(crate) fn new(
        to_engine: mpsc::Sender<link::IncomingFrame>,
        finished: CancellationToken,
        stop: CancellationToken,
        unread_limit: usize,
    ) -> Self {
        Self {
            to_engine,
            pending: Mutex::default(),
            unread_bytes: AtomicUsize::new(0),
            unread_limit,
            reader_wake: Notify::new(),
            initialize_response: None,
            info: OnceCell::new(),
            finished,
            stop,
        }
    }

    /// Opens the session with an `initialize` and returns its id. [`EngineClient::info`] returns the reply.
    pub(crate) fn initialize(&mut self, opening: Initialize) -> Result<String, Error> {
        let id = new_request_id();
        let (sender, receiver) = oneshot::channel();
        self.lock_pending().by_id.insert(id.clone(), sender);
        self.initialize_response = Some(futures::FutureExt::shared(receiver));
        self.send_now(ControlRequest::new(id.clone(), opening))?;
        Ok(id)
    }

    /// Sends a frame without waiting; for a new link, whose channel has room.
    pub(crate) fn send_now(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        self.to_engine.try_send(Ok(frame.into())).map_err(|_| Error::Over)
    }

    /// Sends a frame; waits while the channel is full, but not after a stop.
    pub(crate) async fn send(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        let frame = Ok(frame.into());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::Over),
            sent = self.to_engine.send(frame) => sent.map_err(|_| Error::Over),
        }
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn call<A: TypedRequest>(&self, ask: A) -> Result<A::Reply, Error> {
        let (sender, receiver) = oneshot::channel();
        let waiting = PendingGuard { client: self, id: new_request_id() };
        {
            let mut calls = self.lock_pending();
            if calls.is_closed {
                return Err(Error::Over);
            }
            calls.by_id.insert(waiting.id.clone(), sender);
        }
        self.reader_wake.notify_one();
        self.send(ControlRequest::new(waiting.id.clone(), ask)).await?;
        Ok(receiver.await.map_err(|_| Error::Over)?.parse_reply::<A>()?)
    }

    /// Returns the reply to `initialize`. The engine is asked at most once.
    pub(crate) async fn info(&self) -> Result<&InitializeReply, Error> {
        let asking = async {
            let reply = match &self.initialize_response {
                Some(opening) => {
                    opening.clone().await.map_err(|_| Error::Over)?.parse_reply::<Initialize>()?
                }
                None => self.call(Initialize::default()).await?,
            };
            Ok(Box::new(reply))
        };
        self.info.get_or_try_init(|| asking).await.map(|info| &**info)
    }

    /// Passes a response to the caller that waits for it, if there still is one.
    pub(crate) fn handle_response(&self, response: Response) {
        let waiting = self.lock_pending().by_id.remove(response.request_id());
        if let Some(waiting) = waiting {
            let _ = waiting.send(response);
        }
    }

    /// Adds to the unread bytes.
    pub(crate) fn add_unread(&self, bytes: usize) {
        self.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts from the unread bytes; wakes the router if the limit was exceeded.
    pub(crate) fn remove_unread(&self, bytes: usize) {
        if self.unread_bytes.fetch_sub(bytes, Ordering::Relaxed) > self.unread_limit {
            self.reader_wake.notify_one();
        }
    }

    /// Waits while too many bytes are unread, but not while a request is pending, whose response may stand behind more
    /// frames, and not after a stop.
    pub(crate) async fn wait_for_capacity(&self) {
        while self.unread_bytes.load(Ordering::Relaxed) > self.unread_limit
            && self.lock_pending().by_id.is_empty()
        {
            tokio::select! {
                () = self.reader_wake.notified() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Fails all pending requests and stops what still runs for the session; called when the engine has ended.
    pub(crate) fn close(&self) {
        let mut calls = self.lock_pending();
        calls.is_closed = true;
        calls.by_id.clear();
        drop(calls);
        self.stop.cancel();
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the input when the last handle that could send is dropped.
pub(crate) struct InputGuard {
    pub(crate) client: Arc<EngineClient>,
}

impl Drop for InputGuard {
    fn drop(&mut self) {
        self.client.finished.cancel();
    }
}

#[expect(clippy::disallowed_methods, reason = "the SDK names its own questions")]
fn new_request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
