//! The way out: stamps ids on what the engine says and hands it to the host.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::Frame;
use whimbrel_wire::system::{System, SystemEvent};

use crate::ids;

/// Sends frames to the host. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbox {
    session: Arc<str>,
    frames: mpsc::Sender<Frame>,
    stop: CancellationToken,
}

impl Outbox {
    /// An outbox of a session. When the host's end is gone, `stop` fires: nobody is left to work for.
    pub fn new(session: Arc<str>, frames: mpsc::Sender<Frame>, stop: CancellationToken) -> Self {
        Self { session, frames, stop }
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Sends a frame; waits while the host is slow, but not once everything is to stop.
    pub async fn send(&self, frame: impl Into<Frame>) {
        tokio::select! {
            biased;
            sent = self.frames.send(frame.into()) => {
                if sent.is_err() {
                    self.stop.cancel();
                }
            }
            () = self.stop.cancelled() => {}
        }
    }

    /// Sends a frame although everything is to stop: waits while the host is slow, as long as it is there.
    pub async fn send_last(&self, frame: impl Into<Frame>) {
        // A host that is gone does not need it.
        let _ = self.frames.send(frame.into()).await;
    }

    /// Sends a frame if there is room for it right now.
    pub fn try_send(&self, frame: impl Into<Frame>) {
        // A host that is so far behind will not miss it.
        let _ = self.frames.try_send(frame.into());
    }

    /// Sends a frame without waiting for it: at once if there is room, otherwise as soon as there is.
    pub fn send_later(&self, frame: impl Into<Frame>) {
        use mpsc::error::TrySendError::{Closed, Full};
        match self.frames.try_send(frame.into()) {
            Ok(()) | Err(Closed(_)) => {}
            Err(Full(frame)) => {
                let outbox = self.clone();
                // Without a runtime nobody would read it either.
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move { outbox.send(frame).await });
                }
            }
        }
    }

    /// Sends a `system` notice.
    pub async fn notify(&self, event: impl Into<SystemEvent>) {
        self.notify_as(ids::uuid(), event).await;
    }

    /// Sends a `system` notice that is known by this id elsewhere too.
    pub async fn notify_as(&self, uuid: String, event: impl Into<SystemEvent>) {
        self.send(System { event: event.into(), uuid, session_id: self.session.to_string() }).await;
    }
}
