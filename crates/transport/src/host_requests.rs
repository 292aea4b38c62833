//! Control requests to the host (permissions, hooks, MCP messages), each matched to its response.

use std::sync::{Arc, OnceLock};

use whimbrel_os::ids;
use whimbrel_wire::control::{
    CanUseTool, Cancel, CancelReason, ControlError, ControlRequest, Response, TypedRequest,
};
use whimbrel_wire::{Frame, RawJson};

use crate::frame_sender::FrameSender;
use crate::pending::{PendingRequests, PendingResponse};

/// Pending requests of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostRequests {
    frame_sender: FrameSender,
    /// With the frame of each permission request, so that a reconnecting host can get it again.
    pending: Arc<PendingRequests<Response, Option<RawJson>>>,
    /// Frames to this host have fields that the official protocol does not have.
    sends_details: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRequestError {
    /// The host responded with an error or an invalid reply.
    #[error(transparent)]
    Failed(#[from] ControlError),
    /// The host has closed its side and can no longer respond.
    #[error("the host has closed its input and can no longer answer")]
    Closed,
}

/// Why a pending request is withdrawn: set by the caller before it drops the request. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct WithdrawalReason(Arc<OnceLock<CancelReason>>);

impl WithdrawalReason {
    /// Sets the reason, unless there is one.
    pub fn set(&self, reason: CancelReason) {
        let _ = self.0.set(reason);
    }
}

/// Cancels a request when its caller is dropped.
struct CancelOnDrop<'a> {
    response: PendingResponse<'a, Response, Option<RawJson>>,
    requests: &'a HostRequests,
    reason: WithdrawalReason,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.response.abandon() {
            let (request_id, reason) = (self.response.id().to_owned(), self.cancel_reason());
            self.requests.frame_sender.send_detached(Cancel { request_id, reason });
        }
    }
}

impl CancelOnDrop<'_> {
    fn cancel_reason(&self) -> CancelReason {
        if !self.requests.sends_details {
            return CancelReason::Unspecified;
        }
        let is_stopped = self.requests.frame_sender.is_stopped();
        let default = if is_stopped { CancelReason::SessionEnded } else { CancelReason::Interrupted };
        self.reason.0.get().cloned().unwrap_or(default)
    }
}

impl HostRequests {
    pub fn new(frame_sender: FrameSender) -> Self {
        Self { frame_sender, pending: Arc::default(), sends_details: false }
    }

    /// Sets whether frames to this host have fields that the official protocol does not have.
    #[must_use]
    pub fn with_details(self, sends_details: bool) -> Self {
        Self { sends_details, ..self }
    }

    /// Returns whether frames to this host have fields that the official protocol does not have.
    pub fn sends_details(&self) -> bool {
        self.sends_details
    }

    pub fn session_id(&self) -> Arc<str> {
        self.frame_sender.session_id()
    }

    /// Sends a request and waits for its response, without a timeout.
    pub async fn request<R: TypedRequest>(&self, request: R) -> Result<R::Reply, HostRequestError> {
        self.withdrawable_request(request, WithdrawalReason::default()).await
    }

    /// Like [`Self::request`]. If the future is dropped before the response, the host is told the reason that is set then;
    /// without one, that the turn was interrupted or the session has ended.
    pub async fn withdrawable_request<R: TypedRequest>(
        &self,
        request: R,
        reason: WithdrawalReason,
    ) -> Result<R::Reply, HostRequestError> {
        let request_id = ids::new_uuid();
        let frame = Frame::from(ControlRequest::new(request_id.clone(), request));
        let is_permission = R::SUBTYPE == CanUseTool::SUBTYPE;
        let permission_frame = is_permission.then(|| RawJson::from_value(&frame).ok()).flatten();
        let response = self.pending.register(request_id, permission_frame);
        let response = response.map_err(|_| HostRequestError::Closed)?;
        let mut call = CancelOnDrop { response, requests: self, reason };
        self.frame_sender.send(frame).await;
        let response = call.response.wait().await.map_err(|_| HostRequestError::Closed)?;
        Ok(response.parse_reply::<R>()?)
    }

    /// Delivers a response. Late or unknown responses are dropped.
    pub fn handle_response(&self, response: Response) {
        let request_id = response.request_id().to_owned();
        self.pending.complete(&request_id, response);
    }

    /// The frames of pending permission requests, in the order in which they were sent.
    pub fn pending_permission_requests(&self) -> Vec<RawJson> {
        self.pending.details().into_iter().flatten().collect()
    }

    pub fn pending_count(&self) -> usize {
        self.pending.count()
    }

    /// Called when the host's input has ended: pending requests fail, and later ones fail at once.
    pub fn close(&self) {
        self.pending.close();
    }
}
