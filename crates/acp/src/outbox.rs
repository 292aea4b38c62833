//! Updates on their way to the editor. The connection queues them without limit, so that a session whose editor does not
//! read has to wait here; its engine then waits for the session.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionId, SessionNotification, SessionUpdate};
use agent_client_protocol::{Client, JsonRpcNotification, JsonRpcRequest};
use tokio::sync::Notify;

/// Updates that may wait to be written.
const MAX_UNWRITTEN: usize = 512;

/// Counts the updates that are queued and not yet written. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog(Arc<BacklogState>);

#[derive(Debug, Default)]
struct BacklogState {
    unwritten: AtomicUsize,
    written: Notify,
}

impl Backlog {
    /// Counts an update, then queues it: it may be written before `queue` returns. One that is not queued does not count.
    fn count_queued<E>(&self, queue: impl FnOnce() -> Result<(), E>) {
        self.0.unwritten.fetch_add(1, Ordering::Relaxed);
        if queue().is_err() {
            self.subtract_one();
        }
    }

    /// Records that a line was written.
    pub(crate) fn record_written(&self, line: &str) {
        // Answers and requests are not counted.
        if is_update(line) {
            self.subtract_one();
        }
    }

    fn subtract_one(&self) {
        // Never below zero: an answer whose id is the name of the method looks like an update.
        let subtract = |count: usize| count.checked_sub(1);
        let _ = self.0.unwritten.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        self.0.written.notify_waiters();
    }

    /// Waits until the editor has read enough.
    async fn wait_for_room(&self) {
        loop {
            let mut written = pin!(self.0.written.notified());
            written.as_mut().enable();
            if self.0.unwritten.load(Ordering::Relaxed) < MAX_UNWRITTEN {
                return;
            }
            written.await;
        }
    }
}

/// The method is at the beginning of a line or right behind its id.
fn is_update(line: &str) -> bool {
    let head = &line[..line.floor_char_boundary(80)];
    head.contains("\"session/update\"")
}

/// Sends updates and requests of one session to the editor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Outbox {
    connection: ConnectionTo<Client>,
    session: SessionId,
    backlog: Backlog,
}

impl Outbox {
    pub(crate) fn new(connection: ConnectionTo<Client>, session: &str, backlog: Backlog) -> Self {
        Self { connection, session: SessionId::new(session), backlog }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Queues an update. An editor that is gone needs none.
    pub(crate) fn send(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        self.backlog.count_queued(|| self.connection.send_notification(notification));
    }

    /// Queues several updates.
    pub(crate) fn send_all(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        updates.into_iter().for_each(|update| self.send(update));
    }

    /// Queues another notification.
    pub(crate) fn notify(&self, notification: impl JsonRpcNotification) {
        // An editor that is gone needs none.
        let _ = self.connection.send_notification(notification);
    }

    /// Asks the editor. Dropping the future withdraws the request.
    pub(crate) fn request<R: JsonRpcRequest>(
        &self,
        request: R,
    ) -> impl Future<Output = Result<R::Response, agent_client_protocol::Error>> + Send + use<R> {
        self.connection.send_request(request).block_task()
    }

    /// Waits until the editor has read enough.
    pub(crate) async fn wait_for_room(&self) {
        self.backlog.wait_for_room().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn full_backlog_has_room_again_when_lines_are_written() {
        let backlog = Backlog::default();
        let queued = || Ok::<(), ()>(());
        (0..MAX_UNWRITTEN).for_each(|_| backlog.count_queued(queued));
        let mut room = pin!(backlog.wait_for_room());
        assert_eq!(room.as_mut().now_or_never(), None);
        backlog.record_written(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(room.as_mut().now_or_never(), None, "an answer is not counted");
        backlog.record_written(r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#);
        assert_eq!(room.now_or_never(), Some(()));
    }

    #[test]
    fn update_that_is_written_at_once_is_counted_before() {
        let backlog = Backlog::default();
        backlog.count_queued(|| {
            backlog.record_written(r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#);
            Ok::<(), ()>(())
        });
        backlog.count_queued(|| Err(()));
        backlog.record_written(r#"{"jsonrpc":"2.0","id":"session/update","result":{}}"#);
        assert_eq!(backlog.0.unwritten.load(Ordering::Relaxed), 0);
    }
}
