//! Control requests to the host (permissions, hooks, MCP messages), each matched to its response.

use std::sync::Arc;

use whimbrel_os::ids;
use whimbrel_wire::control::{CanUseTool, Cancel, ControlError, ControlRequest, Response, TypedRequest};
use whimbrel_wire::{Frame, RawJson};

use crate::frame_sender::FrameSender;
use crate::pending::{PendingRequests, PendingResponse};

/// Pending requests of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostRequests {
    frame_sender: FrameSender,
    /// With the frame of each permission request, so that a reconnecting host can get it again.
    pending: Arc<PendingRequests<Response, Option<RawJson>>>,
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

/// Cancels a request when its caller is dropped.
struct CancelOnDrop<'a> {
    response: PendingResponse<'a, Response, Option<RawJson>>,
    frame_sender: &'a FrameSender,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.response.abandon() {
            self.frame_sender.send_detached(Cancel { request_id: self.response.id().to_owned() });
        }
    }
}

impl HostRequests {
    pub fn new(frame_sender: FrameSender) -> Self {
        Self { frame_sender, pending: Arc::default() }
    }

    /// Sends a request and waits for its response, without a timeout.
    pub async fn request<R: TypedRequest>(&self, request: R) -> Result<R::Reply, HostRequestError> {
        let request_id = ids::new_uuid();
        let frame = Frame::from(ControlRequest::new(request_id.clone(), request));
        let is_permission = R::SUBTYPE == CanUseTool::SUBTYPE;
        let permission_frame = is_permission.then(|| RawJson::from_value(&frame).ok()).flatten();
        let response = self.pending.register(request_id, permission_frame);
        let response = response.map_err(|_| HostRequestError::Closed)?;
        let mut call = CancelOnDrop { response, frame_sender: &self.frame_sender };
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
