//! Client side of the link to an engine: state that the caller's handles and the frame router share.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link;
use whimbrel_transport::pending::PendingRequests;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlRequest, Initialize, InitializeReply, Request, Response, TypedRequest};

use crate::error::Error;
use crate::transport::PromptSpans;
use crate::unread_limit::UnreadLimit;

/// Sends frames and requests to one engine. Shared by every handle of a session and by the router task.
pub(crate) struct EngineClient {
    to_engine: mpsc::Sender<link::IncomingFrame>,
    /// Requests to the engine that have no response yet.
    pending: PendingRequests<Response>,
    pub(crate) unread_limit: UnreadLimit,
    /// Response to the `initialize` that opened the session, if there was one.
    initialize_response: Option<Shared<oneshot::Receiver<Response>>>,
    info: OnceCell<Box<InitializeReply>>,
    pub(crate) finished: CancellationToken,
    pub(crate) stop: CancellationToken,
    /// Spans in which prompts are sent, for an engine in this process.
    pub(crate) prompt_spans: PromptSpans,
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
            pending: PendingRequests::default(),
            unread_limit: UnreadLimit::new(unread_limit),
            initialize_response: None,
            info: OnceCell::new(),
            finished,
            stop,
            prompt_spans: PromptSpans::default(),
        }
    }

    /// Opens the session with an `initialize` and returns its id. [`EngineClient::info`] returns the reply.
    pub(crate) fn initialize(&mut self, request: Initialize) -> Result<String, Error> {
        let id = new_uuid();
        let response =
            self.pending.register(id.clone(), ()).map_err(|_| Error::SessionEnded)?.into_receiver();
        self.initialize_response = Some(response.shared());
        self.send_now(ControlRequest::new(id.clone(), request))?;
        Ok(id)
    }

    /// Sends a frame without waiting; for a new link, whose channel has room.
    pub(crate) fn send_now(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        let frame = frame.into();
        self.keep_span(&frame);
        self.to_engine.try_send(Ok(frame)).map_err(|_| Error::SessionEnded)
    }

    /// Sends a frame; waits while the channel is full, but not after a stop.
    pub(crate) async fn send(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        let frame = frame.into();
        self.keep_span(&frame);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::SessionEnded),
            sent = self.to_engine.send(Ok(frame)) => sent.map_err(|_| Error::SessionEnded),
        }
    }

    /// Keeps the current span as the parent of the turn that answers a prompt.
    fn keep_span(&self, frame: &Frame) {
        if let Frame::User(user) = frame
            && let Some(prompt) = &user.uuid
        {
            self.prompt_spans.insert_current(prompt);
        }
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn call<A: TypedRequest>(&self, request: A) -> Result<A::Reply, Error> {
        Ok(self.call_any(request).await?.parse_reply::<A>()?)
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn call_any(&self, request: impl Into<Request>) -> Result<Response, Error> {
        let mut response = self.pending.register(new_uuid(), ()).map_err(|_| Error::SessionEnded)?;
        self.unread_limit.wake_reader();
        self.send(ControlRequest::new(response.id(), request)).await?;
        response.wait().await.map_err(|_| Error::SessionEnded)
    }

    /// Sends a request without waiting, and returns the receiver of its response; `None` if the session has ended.
    pub(crate) fn call_detached(
        self: &Arc<Self>,
        request: impl Into<Request>,
    ) -> Option<oneshot::Receiver<Response>> {
        let pending = self.pending.register(new_uuid(), ()).ok()?;
        let frame = ControlRequest::new(pending.id(), request);
        let response = pending.into_receiver();
        match self.to_engine.try_send(Ok(frame.into())) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(frame)) => {
                let client = Arc::clone(self);
                tokio::runtime::Handle::try_current().ok()?.spawn(async move {
                    // After a stop there is nothing left to send to.
                    let _ = client.stop.run_until_cancelled(client.to_engine.send(frame)).await;
                });
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return None,
        }
        Some(response)
    }

    /// Waits until the engine has accepted the `initialize` that opened the session, if there was one.
    pub(crate) async fn wait_for_initialize(&self) -> Result<(), Error> {
        let Some(response) = &self.initialize_response else { return Ok(()) };
        let response = response.clone().await.map_err(|_| Error::SessionEnded)?;
        response.parse_reply::<Initialize>().map(drop).map_err(Error::from)
    }

    /// Returns the reply to `initialize`. The engine is asked at most once.
    pub(crate) async fn info(&self) -> Result<&InitializeReply, Error> {
        let request = async {
            let reply = match &self.initialize_response {
                Some(response) => {
                    response.clone().await.map_err(|_| Error::SessionEnded)?.parse_reply::<Initialize>()?
                }
                None => self.call(Initialize::default()).await?,
            };
            Ok(Box::new(reply))
        };
        self.info.get_or_try_init(|| request).await.map(|info| &**info)
    }

    /// Passes a response to the caller that waits for it, if there still is one.
    pub(crate) fn handle_response(&self, response: Response) {
        let id = response.request_id().to_owned();
        self.pending.complete(&id, response);
    }

    /// Waits while too many bytes are unread; see [`UnreadLimit::wait_for_capacity`].
    pub(crate) async fn wait_for_capacity(&self) {
        self.unread_limit.wait_for_capacity(|| self.pending.count(), &self.stop).await;
    }

    /// Fails all pending requests and stops what still runs for the session; called when the engine has ended.
    pub(crate) fn close(&self) {
        self.pending.close();
        self.stop.cancel();
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

#[expect(clippy::disallowed_methods, reason = "the SDK generates the ids of its requests and prompts")]
pub(crate) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
