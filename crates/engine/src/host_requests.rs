//! Control requests to the host (permissions, hooks, MCP messages), each matched to its response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use whimbrel_os::ids;
use whimbrel_wire::control::{
    CanUseTool, Cancel, ControlError, ControlRequest, Response, TypedRequest as Question,
};
use whimbrel_wire::{Frame, RawJson};

use crate::frame_sender::FrameSender;

/// Pending requests of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostRequests {
    frame_sender: FrameSender,
    pending: Arc<Mutex<PendingRequests>>,
}

#[derive(Debug, Default)]
struct PendingRequests {
    by_id: HashMap<String, PendingRequest>,
    /// Number of requests sent so far.
    sent_count: u64,
    /// Set once the host can no longer respond.
    closed: bool,
}

/// A request without a response.
#[derive(Debug)]
struct PendingRequest {
    /// Order in which it was sent.
    sequence: u64,
    responder: oneshot::Sender<Response>,
    /// The request frame, kept for permission requests so that a reconnecting host can get it again.
    permission_frame: Option<RawJson>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRequestError {
    /// The host responded with an error or an invalid reply.
    #[error(transparent)]
    Failed(#[from] ControlError),
    /// The host has closed its side and can no longer respond.
    #[error("the host has closed its input and can no longer answer")]
    Closed,
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

/// Cancels a request when its caller is dropped.
struct CancelRequestOnDrop<'a> {
    requests: &'a HostRequests,
    request_id: String,
}

impl Drop for CancelRequestOnDrop<'_> {
    fn drop(&mut self) {
        if self.requests.lock().by_id.remove(&self.request_id).is_some() {
            let cancel = Cancel { request_id: std::mem::take(&mut self.request_id) };
            self.requests.frame_sender.send_detached(cancel);
        }
    }
}

impl HostRequests {
    pub fn new(frame_sender: FrameSender) -> Self {
        Self { frame_sender, pending: Arc::default() }
    }

    /// Sends a request and waits for its response, without a timeout.
    pub async fn request<Q: Question>(&self, question: Q) -> Result<Q::Reply, HostRequestError> {
        let request_id = ids::new_uuid();
        let (sender, receiver) = oneshot::channel();
        let request = Frame::from(ControlRequest::new(request_id.clone(), question));
        let is_permission = Q::SUBTYPE == CanUseTool::SUBTYPE;
        let permission = is_permission.then(|| RawJson::from_value(&request).ok()).flatten();
        {
            let mut open = self.lock();
            if open.closed {
                return Err(HostRequestError::Closed);
            }
            open.sent_count += 1;
            let waiting =
                PendingRequest { sequence: open.sent_count, responder: sender, permission_frame: permission };
            open.by_id.insert(request_id.clone(), waiting);
        }
        let _guard = CancelRequestOnDrop { requests: self, request_id };
        self.frame_sender.send(request).await;
        match receiver.await {
            Ok(response) => Ok(response.parse_reply::<Q>()?),
            Err(_) if self.lock().closed => Err(HostRequestError::Closed),
            Err(_) => Err(HostRequestError::Cancelled),
        }
    }

    /// Delivers a response. Late or unknown responses are dropped.
    pub fn handle_response(&self, response: Response) {
        if let Some(waiting) = self.lock().by_id.remove(response.request_id()) {
            // The caller may have been interrupted meanwhile.
            let _ = waiting.responder.send(response);
        }
    }

    /// The frames of pending permission requests, in the order in which they were sent.
    pub fn pending_permission_requests(&self) -> Vec<RawJson> {
        let open = self.lock();
        let mut waiting: Vec<_> = open.by_id.values().collect();
        waiting.sort_by_key(|waiting| waiting.sequence);
        waiting.into_iter().filter_map(|waiting| waiting.permission_frame.clone()).collect()
    }

    pub fn pending_count(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Called when the host's input has ended: pending requests fail, and later ones fail at once.
    pub fn close(&self) {
        let mut open = self.lock();
        open.closed = true;
        open.by_id.clear();
    }

    fn lock(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
