//! Requests that wait for a response from the other end, by request id.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Pending requests of one connection. `R` is the response; `D` is what the sender wants to know about a request while
/// it is pending, such as the frame to send again.
#[derive(Debug)]
pub struct PendingRequests<R, D = ()> {
    state: Mutex<State<R, D>>,
}

#[derive(Debug)]
struct State<R, D> {
    by_id: HashMap<String, Entry<R, D>>,
    /// Number of requests registered so far.
    count: u64,
    /// Set once the other end can no longer respond.
    closed: bool,
}

#[derive(Debug)]
struct Entry<R, D> {
    /// Order of registration.
    sequence: u64,
    responder: oneshot::Sender<R>,
    details: D,
}

/// The other end can no longer respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct ClosedError;

impl<R, D> Default for PendingRequests<R, D> {
    fn default() -> Self {
        Self { state: Mutex::new(State { by_id: HashMap::new(), count: 0, closed: false }) }
    }
}

impl<R, D> PendingRequests<R, D> {
    /// Registers a request; to be called before the request is sent, so that its response finds it.
    pub fn register(
        &self,
        id: impl Into<String>,
        details: D,
    ) -> Result<PendingResponse<'_, R, D>, ClosedError> {
        let id = id.into();
        let (responder, receiver) = oneshot::channel();
        let mut state = self.lock();
        if state.closed {
            return Err(ClosedError);
        }
        state.count += 1;
        let entry = Entry { sequence: state.count, responder, details };
        state.by_id.insert(id.clone(), entry);
        Ok(PendingResponse { requests: self, id, receiver: Some(receiver) })
    }

    /// Delivers a response. A late or unknown one is dropped.
    pub fn complete(&self, id: &str, response: R) {
        let entry = self.lock().by_id.remove(id);
        if let Some(entry) = entry {
            // The waiting future may have been dropped meanwhile.
            let _ = entry.responder.send(response);
        }
    }

    /// Fails all pending requests, and later ones at once; to be called when the other end can no longer respond.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.by_id.clear();
    }

    /// Number of pending requests.
    pub fn count(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Details of the pending requests, in the order of registration.
    pub fn details(&self) -> Vec<D>
    where
        D: Clone,
    {
        let state = self.lock();
        let mut entries: Vec<_> = state.by_id.values().collect();
        entries.sort_by_key(|entry| entry.sequence);
        entries.into_iter().map(|entry| entry.details.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<R, D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for one response. Dropping it removes the request.
#[derive(Debug)]
#[must_use = "dropping it removes the request"]
pub struct PendingResponse<'a, R, D = ()> {
    requests: &'a PendingRequests<R, D>,
    id: String,
    /// `None` after [`Self::into_receiver`].
    receiver: Option<oneshot::Receiver<R>>,
}

impl<R, D> PendingResponse<'_, R, D> {
    /// Id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the response, without a timeout. Cancel safe.
    pub async fn wait(&mut self) -> Result<R, ClosedError> {
        let receiver = self.receiver.as_mut().ok_or(ClosedError)?;
        receiver.await.map_err(|_| ClosedError)
    }

    /// Removes the request; true if it was still pending, so that a cancellation can be sent to the other end.
    pub fn abandon(&mut self) -> bool {
        self.requests.lock().by_id.remove(&self.id).is_some()
    }

    /// Keeps the request pending until its response or the end of the connection, and returns the receiver.
    pub fn into_receiver(mut self) -> oneshot::Receiver<R> {
        self.receiver.take().unwrap_or_else(|| oneshot::channel().1)
    }
}

impl<R, D> Drop for PendingResponse<'_, R, D> {
    fn drop(&mut self) {
        if self.receiver.is_some() {
            self.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn response_reaches_its_request() {
        let requests = PendingRequests::<u32>::default();
        let (mut first, mut second) =
            (requests.register("a", ()).unwrap(), requests.register("b", ()).unwrap());
        requests.complete("b", 2);
        requests.complete("a", 1);
        requests.complete("c", 3);
        assert_eq!((first.wait().await, second.wait().await), (Ok(1), Ok(2)));
        assert_eq!(requests.count(), 0);
    }

    #[tokio::test]
    async fn close_fails_pending_and_later_requests() {
        let requests = PendingRequests::<u32>::default();
        let mut pending = requests.register("a", ()).unwrap();
        requests.close();
        assert_eq!(pending.wait().await, Err(ClosedError));
        assert_eq!(requests.register("b", ()).err(), Some(ClosedError));
    }

    #[test]
    fn dropped_request_is_removed() {
        let requests = PendingRequests::<u32>::default();
        drop(requests.register("a", ()).unwrap());
        assert_eq!(requests.count(), 0);
        let mut answered = requests.register("b", ()).unwrap();
        requests.complete("b", 1);
        assert!(!answered.abandon());
        assert!(requests.register("c", ()).unwrap().abandon());
    }

    #[tokio::test]
    async fn detached_request_stays_pending() {
        let requests = PendingRequests::<u32>::default();
        let receiver = requests.register("a", ()).unwrap().into_receiver();
        assert_eq!(requests.count(), 1);
        requests.complete("a", 1);
        assert_eq!(receiver.await, Ok(1));
    }

    #[test]
    fn details_are_in_order_of_registration() {
        let requests = PendingRequests::<u32, u32>::default();
        let pending: Vec<_> =
            (0..20).map(|number| requests.register(number.to_string(), number).unwrap()).collect();
        requests.complete("3", 0);
        assert_eq!(requests.details(), (0..20).filter(|number| *number != 3).collect::<Vec<_>>());
        drop(pending);
    }
}
