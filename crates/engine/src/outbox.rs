//! The way out: stamps ids on what the engine says and hands it to the host.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::Frame;
use whimbrel_wire::system::{InformationLevel, Informational, System, SystemEvent};

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

    /// An outbox that nobody reads: for tests.
    #[cfg(test)]
    pub(crate) fn unheard() -> Self {
        Self::new("session".into(), mpsc::channel(1).0, CancellationToken::new())
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

    /// Sends a frame without waiting; if the host is slow, it goes out as soon as there is room.
    pub fn post(&self, frame: impl Into<Frame>) {
        let Err(TrySendError::Full(frame)) = self.frames.try_send(frame.into()) else { return };
        if let Ok(runtime) = Handle::try_current() {
            let outbox = self.clone();
            runtime.spawn(async move { outbox.send(frame).await });
        }
    }

    /// Sends a `system` notice.
    pub async fn notify(&self, event: impl Into<SystemEvent>) {
        self.notify_as(ids::uuid(), event).await;
    }

    /// Tells the host something that it should look into.
    pub async fn warn(&self, content: impl Into<String>) {
        self.say(content.into(), InformationLevel::Warning).await;
    }

    /// Tells the host something that is good to know.
    pub async fn inform(&self, content: impl Into<String>) {
        self.say(content.into(), InformationLevel::Info).await;
    }

    async fn say(&self, content: String, level: InformationLevel) {
        self.notify(Informational { content, level, ..Informational::default() }).await;
    }

    /// Sends a `system` notice that is known by this id elsewhere too.
    pub async fn notify_as(&self, uuid: String, event: impl Into<SystemEvent>) {
        self.send(System { event: event.into(), uuid, session_id: self.session.to_string() }).await;
    }
}
