//! The line to an engine: what the caller's handles and the sorter share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::Shared;
use tokio::sync::{Notify, OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_engine::link;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{Ask, ControlRequest, Initialize, InitializeReply, Response};

use crate::error::Error;

/// One open line. It is held by every handle of a session, and by the task that sorts what the engine says.
pub(crate) struct Line {
    to_engine: mpsc::Sender<link::Line>,
    calls: Mutex<Calls>,
    /// How many bytes of frames wait for the caller, and how many may before the engine is slowed down.
    unread: AtomicUsize,
    limit: usize,
    /// Fires when reading on may be due: frames were read, or somebody waits for an answer.
    moved: Notify,
    /// The answer to the `initialize` that opened the line, if one did.
    opening: Option<Shared<oneshot::Receiver<Response>>>,
    info: OnceCell<Box<InitializeReply>>,
    pub(crate) finished: CancellationToken,
    pub(crate) stop: CancellationToken,
}

/// Questions to the engine that have no answer yet.
#[derive(Default)]
struct Calls {
    waiting: HashMap<String, oneshot::Sender<Response>>,
    /// The engine has ended: nobody will answer.
    over: bool,
}

/// A question that is given up when whoever asked no longer waits.
struct Waiting<'a> {
    line: &'a Line,
    id: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.line.calls().waiting.remove(&self.id);
    }
}

impl Line {
    pub(crate) fn new(
        to_engine: mpsc::Sender<link::Line>,
        finished: CancellationToken,
        stop: CancellationToken,
        limit: usize,
    ) -> Self {
        Self {
            to_engine,
            calls: Mutex::default(),
            unread: AtomicUsize::new(0),
            limit,
            moved: Notify::new(),
            opening: None,
            info: OnceCell::new(),
            finished,
            stop,
        }
    }

    /// Opens the session with an `initialize` and gives its id. The answer is kept for [`Line::info`].
    pub(crate) fn initialize(&mut self, opening: Initialize) -> Result<String, Error> {
        let id = new_id();
        let (sender, receiver) = oneshot::channel();
        self.calls().waiting.insert(id.clone(), sender);
        self.opening = Some(futures::FutureExt::shared(receiver));
        self.say(ControlRequest::new(id.clone(), opening))?;
        Ok(id)
    }

    /// Sends a frame at once; for a line that has just been made, so that there is room.
    pub(crate) fn say(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        self.to_engine.try_send(Ok(frame.into())).map_err(|_| Error::Over)
    }

    /// Sends a frame; waits while the engine is slow, but not once everything is to stop.
    pub(crate) async fn send(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        let frame = Ok(frame.into());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::Over),
            sent = self.to_engine.send(frame) => sent.map_err(|_| Error::Over),
        }
    }

    /// Asks the engine and waits for its answer.
    pub(crate) async fn call<A: Ask>(&self, ask: A) -> Result<A::Reply, Error> {
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting { line: self, id: new_id() };
        {
            let mut calls = self.calls();
            if calls.over {
                return Err(Error::Over);
            }
            calls.waiting.insert(waiting.id.clone(), sender);
        }
        self.moved.notify_one();
        self.send(ControlRequest::new(waiting.id.clone(), ask)).await?;
        Ok(receiver.await.map_err(|_| Error::Over)?.reply::<A>()?)
    }

    /// What the engine offers. It is asked at most once.
    pub(crate) async fn info(&self) -> Result<&InitializeReply, Error> {
        let asking = async {
            let reply = match &self.opening {
                Some(opening) => opening.clone().await.map_err(|_| Error::Over)?.reply::<Initialize>()?,
                None => self.call(Initialize::default()).await?,
            };
            Ok(Box::new(reply))
        };
        self.info.get_or_try_init(|| asking).await.map(|info| &**info)
    }

    /// Hands an answer to whoever waits for it; they may have gone away.
    pub(crate) fn answered(&self, response: Response) {
        let waiting = self.calls().waiting.remove(response.request_id());
        if let Some(waiting) = waiting {
            let _ = waiting.send(response);
        }
    }

    /// So many bytes of frames wait more.
    pub(crate) fn shelved(&self, bytes: usize) {
        self.unread.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many have been read.
    pub(crate) fn taken(&self, bytes: usize) {
        if self.unread.fetch_sub(bytes, Ordering::Relaxed) > self.limit {
            self.moved.notify_one();
        }
    }

    /// Waits as long as too much is unread. Not while somebody waits for an answer, which may stand behind more frames,
    /// and not once everything is to stop.
    pub(crate) async fn room(&self) {
        while self.unread.load(Ordering::Relaxed) > self.limit && self.calls().waiting.is_empty() {
            tokio::select! {
                () = self.moved.notified() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// The engine has ended: whoever waits for an answer gets none, and what still runs for the line ends.
    pub(crate) fn over(&self) {
        let mut calls = self.calls();
        calls.over = true;
        calls.waiting.clear();
        drop(calls);
        self.stop.cancel();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finishes the input when the last handle goes that could say something.
pub(crate) struct Handle {
    pub(crate) line: Arc<Line>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.line.finished.cancel();
    }
}

#[expect(clippy::disallowed_methods, reason = "the SDK names its own questions")]
fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
