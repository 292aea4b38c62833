//! Callbacks of the session: they post the request and wait for the answer of the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};
use whimbrel::{Agent, PermissionResult};

use super::{EngineEvent, EngineEventKind, SessionNumber};
use crate::prompts::RequestId;

/// Adds the callbacks to an agent.
pub(super) fn install(agent: Agent, session: SessionNumber, events: mpsc::Sender<EngineEvent>) -> Agent {
    let ids = Arc::new(AtomicU64::new(0));
    let poster = Poster { session, events, ids };
    agent.can_use_tool(move |request| {
        let poster = poster.clone();
        async move {
            let posted = poster
                .post(|id, answer| EngineEventKind::Permission {
                    id,
                    request: Box::new(request.into_inner()),
                    answer,
                })
                .await;
            posted.unwrap_or_else(|| PermissionResult::deny("The user has left."))
        }
    })
}

#[derive(Clone)]
struct Poster {
    session: SessionNumber,
    events: mpsc::Sender<EngineEvent>,
    ids: Arc<AtomicU64>,
}

impl Poster {
    /// Posts a request and waits for its answer; `None` if there will be none.
    async fn post<T>(
        &self,
        build: impl FnOnce(RequestId, oneshot::Sender<T>) -> EngineEventKind,
    ) -> Option<T> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        // The engine drops this future when it withdraws the request.
        let guard = WithdrawalGuard { poster: self, id, is_armed: true };
        let event = EngineEvent { session: self.session, kind: build(id, sender) };
        self.events.send(event).await.ok()?;
        let answer = receiver.await.ok();
        guard.disarm();
        answer
    }
}

/// Posts the withdrawal of a request when it is dropped.
struct WithdrawalGuard<'a> {
    poster: &'a Poster,
    id: RequestId,
    is_armed: bool,
}

impl WithdrawalGuard<'_> {
    fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for WithdrawalGuard<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            let kind = EngineEventKind::Withdrawn(self.id);
            // If there is no room, the program does not read any more; it removes the request with the session.
            let _ = self.poster.events.try_send(EngineEvent { session: self.poster.session, kind });
        }
    }
}
