//! Questions to the host: may I use this tool, what does your hook say. Each waits for its own answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use whimbrel_wire::control::{Ask as Question, AskError, CanUseTool, Cancel, ControlRequest, Response};
use whimbrel_wire::{Frame, RawJson};

use crate::ids;
use crate::outbox::Outbox;

/// The open questions of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ask {
    outbox: Outbox,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<String, Waiting>,
    /// How many questions there were.
    asked: u64,
    /// Set once the host can no longer answer.
    deaf: bool,
}

/// A question that has no answer yet.
#[derive(Debug)]
struct Waiting {
    /// Its place among all questions.
    place: u64,
    /// Who waits for the answer.
    sender: oneshot::Sender<Response>,
    /// The question as it was sent, if a host that comes back should hear it again.
    permission: Option<RawJson>,
}

/// Why a question has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The host answered with an error, or with something else than was asked.
    #[error(transparent)]
    Failed(#[from] AskError),
    /// The host has closed its side, so nobody can be asked any more.
    #[error("the host has closed its input and can no longer be asked")]
    Deaf,
    /// The question was taken back.
    #[error("the question was taken back")]
    Withdrawn,
}

/// Takes a question back when whoever asked no longer waits.
struct Guard<'a> {
    ask: &'a Ask,
    request_id: String,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.ask.open().waiting.remove(&self.request_id).is_some() {
            let cancel = Cancel { request_id: std::mem::take(&mut self.request_id) };
            self.ask.outbox.post(cancel);
        }
    }
}

impl Ask {
    /// No questions yet.
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox, open: Arc::default() }
    }

    /// Asks, and waits as long as it takes.
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Reply, NoAnswer> {
        let request_id = ids::uuid();
        let (sender, receiver) = oneshot::channel();
        let request = Frame::from(ControlRequest::new(request_id.clone(), question));
        let is_permission = Q::SUBTYPE == CanUseTool::SUBTYPE;
        let permission = is_permission.then(|| RawJson::of(&request).ok()).flatten();
        {
            let mut open = self.open();
            if open.deaf {
                return Err(NoAnswer::Deaf);
            }
            open.asked += 1;
            let waiting = Waiting { place: open.asked, sender, permission };
            open.waiting.insert(request_id.clone(), waiting);
        }
        let _guard = Guard { ask: self, request_id };
        self.outbox.send(request).await;
        match receiver.await {
            Ok(response) => Ok(response.reply::<Q>()?),
            Err(_) if self.open().deaf => Err(NoAnswer::Deaf),
            Err(_) => Err(NoAnswer::Withdrawn),
        }
    }

    /// Takes an answer in. One that nobody waits for, because it is late or unknown, is dropped.
    pub fn answered(&self, response: Response) {
        if let Some(waiting) = self.open().waiting.remove(response.request_id()) {
            // Whoever asked may have been interrupted meanwhile.
            let _ = waiting.sender.send(response);
        }
    }

    /// The questions about permissions that are open, as they were sent, in order.
    pub fn open_permissions(&self) -> Vec<RawJson> {
        let open = self.open();
        let mut waiting: Vec<_> = open.waiting.values().collect();
        waiting.sort_by_key(|waiting| waiting.place);
        waiting.into_iter().filter_map(|waiting| waiting.permission.clone()).collect()
    }

    /// How many questions are open.
    pub fn pending(&self) -> usize {
        self.open().waiting.len()
    }

    /// The host's input has ended: open questions fail, new ones fail at once.
    pub fn close(&self) {
        let mut open = self.open();
        open.deaf = true;
        open.waiting.clear();
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
