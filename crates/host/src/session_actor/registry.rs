//! The actors that run: at most one per session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Command, actor};
use crate::error::{ApiError, ApiResult};
use crate::host::Host;

/// Commands that wait for an actor.
const CAPACITY: usize = 256;

/// The way to a session's actor.
#[derive(Clone)]
pub(crate) struct ActorHandle {
    commands: mpsc::Sender<Command>,
    /// Number of the last event.
    pub(crate) head: watch::Receiver<i64>,
}

impl ActorHandle {
    /// Sends a command and waits for its reply.
    pub(crate) async fn call<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<ApiResult<T>>) -> Command,
    ) -> ApiResult<T> {
        let (reply, result) = oneshot::channel();
        let ended = || ApiError::draining("the session is being closed: try again").with_retry_after(1);
        self.commands.send(command(reply)).await.map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }

    /// Sends a command without waiting.
    pub(crate) async fn post(&self, command: Command) {
        // An actor that has ended needs no command.
        let _ = self.commands.send(command).await;
    }
}

#[derive(Default)]
pub(crate) struct ActorRegistry {
    actors: Mutex<HashMap<String, ActorHandle>>,
    starting: tokio::sync::Mutex<()>,
}

impl ActorRegistry {
    /// The actor of a session; it is started if there is none.
    pub(crate) async fn get(self: &Arc<Self>, host: &Arc<Host>, session: &str) -> ApiResult<ActorHandle> {
        if let Some(handle) = self.running(session) {
            return Ok(handle);
        }
        let _starting = self.starting.lock().await;
        if let Some(handle) = self.running(session) {
            return Ok(handle);
        }
        let row = host.store.session(session).await?.ok_or_else(|| ApiError::no_session(session))?;
        let (commands, receiver) = mpsc::channel(CAPACITY);
        let (head_sender, head) = watch::channel(row.head);
        let handle = ActorHandle { commands: commands.clone(), head };
        let actor =
            actor::Actor::start(Arc::clone(host), row, commands.downgrade(), receiver, head_sender).await?;
        self.lock().insert(session.to_owned(), handle.clone());
        let (registry, host, session) = (Arc::clone(self), Arc::clone(host), session.to_owned());
        tokio::spawn(run_actor(registry, host, session, actor));
        Ok(handle)
    }

    /// The actor of a session, if it runs and takes commands.
    pub(crate) fn running(&self, session: &str) -> Option<ActorHandle> {
        self.lock().get(session).filter(|handle| !handle.commands.is_closed()).cloned()
    }

    pub(crate) fn all(&self) -> Vec<ActorHandle> {
        self.lock().values().cloned().collect()
    }

    fn remove_ended(&self, session: &str) {
        let mut actors = self.lock();
        if actors.get(session).is_some_and(|handle| handle.commands.is_closed()) {
            actors.remove(session);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ActorHandle>> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs an actor. Commands that come at its end are given to the next one. The type is named because the future contains
/// itself.
fn run_actor(
    registry: Arc<ActorRegistry>,
    host: Arc<Host>,
    session: String,
    actor: actor::Actor,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let left = actor.run().await;
        registry.remove_ended(&session);
        for command in left {
            // A session that was deleted has no actor; the caller is told to try again.
            if let Ok(handle) = registry.get(&host, &session).await {
                handle.post(command).await;
            }
        }
    })
}
