//! Sends frames to the host and adds session id and uuid to notices.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_os::log::Log;
use whimbrel_wire::Frame;
use whimbrel_wire::system::{InformationLevel, Informational, System, SystemEvent};

use crate::frame_log::log_frame;

/// Sends frames to the host. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FrameSender {
    /// Shared by all clones, because a session that is cleared gets another id.
    session_id: Arc<RwLock<Arc<str>>>,
    frames: mpsc::Sender<Frame>,
    stop: CancellationToken,
    log: Log,
}

impl FrameSender {
    /// Creates the sender of a session. When the host's end is closed, it fires `stop`.
    pub fn new(session_id: Arc<str>, frames: mpsc::Sender<Frame>, stop: CancellationToken) -> Self {
        Self { session_id: Arc::new(RwLock::new(session_id)), frames, stop, log: Log::default() }
    }

    /// Writes debug output to this log.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns whether the session is being stopped.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the session is being stopped.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// A sender without a receiver: frames are dropped. For tests.
    pub fn disconnected() -> Self {
        Self::new("session".into(), mpsc::channel(1).0, CancellationToken::new())
    }

    pub fn session_id(&self) -> Arc<str> {
        Arc::clone(&self.session_id.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets another session id for all later frames, of all clones.
    pub fn set_session_id(&self, session_id: &str) {
        *self.session_id.write().unwrap_or_else(PoisonError::into_inner) = session_id.into();
    }

    /// Sends a frame; waits while the channel is full, but not once the session is stopped.
    pub fn send(&self, frame: impl Into<Frame>) -> PendingSend<'_> {
        PendingSend(self.try_deliver(frame.into()).map(|frame| {
            let sent = async {
                tokio::select! {
                    biased;
                    sent = self.frames.send(frame) => {
                        if sent.is_err() {
                            self.stop.cancel();
                        }
                    }
                    () = self.stop.cancelled() => {}
                }
            };
            sent.boxed()
        }))
    }

    /// Sends a frame even if the session is stopped; waits while the channel is full and the host is there.
    pub fn send_final(&self, frame: impl Into<Frame>) -> PendingSend<'_> {
        // A host that is gone does not need it.
        PendingSend(self.try_deliver(frame.into()).map(|frame| self.frames.send(frame).map(drop).boxed()))
    }

    /// Sends a frame without waiting; returns it if the channel is full.
    fn try_deliver(&self, frame: Frame) -> Option<Frame> {
        log_frame(&self.log, "out", &frame);
        match self.frames.try_send(frame) {
            Ok(()) => None,
            Err(TrySendError::Full(frame)) => Some(frame),
            Err(TrySendError::Closed(_)) => {
                self.stop.cancel();
                None
            }
        }
    }

    /// Sends a frame if the channel has room; drops it otherwise.
    pub fn try_send(&self, frame: impl Into<Frame>) {
        // A host that far behind does not need it.
        let _ = self.frames.try_send(frame.into());
    }

    /// Sends a frame without waiting, unless the host has more than `max_unread` frames to read; then the frame is not
    /// made. Returns whether it was sent.
    pub fn send_if_read(&self, max_unread: usize, make: impl FnOnce() -> Frame) -> bool {
        if self.frames.max_capacity() - self.frames.capacity() > max_unread {
            return false;
        }
        let Ok(permit) = self.frames.try_reserve() else { return false };
        let frame = make();
        log_frame(&self.log, "out", &frame);
        permit.send(frame);
        true
    }

    /// Sends a frame without waiting; if the channel is full, a spawned task sends it.
    pub fn send_detached(&self, frame: impl Into<Frame>) {
        let Some(frame) = self.try_deliver(frame.into()) else { return };
        if let Ok(runtime) = Handle::try_current() {
            let frame_sender = self.clone();
            runtime.spawn(async move { frame_sender.send(frame).await });
        }
    }

    /// Sends a `system` notice.
    pub fn notify(&self, event: impl Into<SystemEvent>) -> PendingSend<'_> {
        self.notify_as(ids::new_uuid(), event)
    }

    /// Sends a warning to the host.
    pub fn warn(&self, content: impl Into<String>) -> PendingSend<'_> {
        self.send_information(content.into(), InformationLevel::Warning)
    }

    /// Sends information to the host.
    pub fn info(&self, content: impl Into<String>) -> PendingSend<'_> {
        self.send_information(content.into(), InformationLevel::Info)
    }

    fn send_information(&self, content: String, level: InformationLevel) -> PendingSend<'_> {
        self.notify(Informational { content, level, ..Informational::default() })
    }

    /// Sends a `system` notice with a given uuid, which the transcript also uses.
    pub fn notify_as(&self, uuid: String, event: impl Into<SystemEvent>) -> PendingSend<'_> {
        self.send(System { event: event.into(), uuid, session_id: self.session_id().to_string() })
    }
}

/// Future of [`FrameSender::send`]. It allocates only if the channel is full, so that callers reserve no space for
/// waiting.
#[must_use = "the frame is sent only if this is awaited"]
pub struct PendingSend<'a>(Option<BoxFuture<'a, ()>>);

impl Future for PendingSend<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |waiting| waiting.as_mut().poll(context))
    }
}
