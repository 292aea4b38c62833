//! Questions to the host: may I use this tool, what does your hook say. Each waits for its own answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use whimbrel_wire::control::{TypedRequest as Question, ControlError, CanUseTool, Cancel, ControlRequest, Response};
use whimbrel_wire::{Frame, RawJson};

use crate::ids;
use crate::frame_sender::FrameSender;

/// The open questions of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostRequests {
    frame_sender: FrameSender,
    pending: Arc<Mutex<PendingRequests>>,
}

#[derive(Debug, Default)]
struct PendingRequests {
    by_id: HashMap<String, PendingRequest>,
    /// How many questions there were.
    sent_count: u64,
    /// Set once the host can no longer answer.
    closed: bool,
}

/// A question that has no answer yet.
#[derive(Debug)]
struct PendingRequest {
    /// Its place among all questions.
    sequence: u64,
    /// Who waits for the answer.
    responder: oneshot::Sender<Response>,
    /// The question as it was sent, if a host that comes back should hear it again.
    permission_frame: Option<RawJson>,
}

/// Why a question has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRequestError {
    /// The host answered with an error, or with something else than was asked.
    #[error(transparent)]
    Failed(#[from] ControlError),
    /// The host has closed its side, so nobody can be asked any more.
    #[error("the host has closed its input and can no longer be asked")]
    Closed,
    /// The question was taken back.
    #[error("the question was taken back")]
    Cancelled,
}

/// Takes a question back when whoever asked no longer waits.
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
    /// No questions yet.
    pub fn new(frame_sender: FrameSender) -> Self {
        Self { frame_sender, pending: Arc::default() }
    }

    /// Asks, and waits as long as it takes.
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
            let waiting = PendingRequest { sequence: open.sent_count, responder: sender, permission_frame: permission };
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

    /// Takes an answer in. One that nobody waits for, because it is late or unknown, is dropped.
    pub fn handle_response(&self, response: Response) {
        if let Some(waiting) = self.lock().by_id.remove(response.request_id()) {
            // Whoever asked may have been interrupted meanwhile.
            let _ = waiting.responder.send(response);
        }
    }

    /// The questions about permissions that are open, as they were sent, in order.
    pub fn pending_permission_requests(&self) -> Vec<RawJson> {
        let open = self.lock();
        let mut waiting: Vec<_> = open.by_id.values().collect();
        waiting.sort_by_key(|waiting| waiting.sequence);
        waiting.into_iter().filter_map(|waiting| waiting.permission_frame.clone()).collect()
    }

    /// How many questions are open.
    pub fn pending_count(&self) -> usize {
        self.lock().by_id.len()
    }

    /// The host's input has ended: open questions fail, new ones fail at once.
    pub fn close(&self) {
        let mut open = self.lock();
        open.closed = true;
        open.by_id.clear();
    }

    fn lock(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
