//! The engine in this process: a task that passes its frames on without serialization.

use futures::future::OptionFuture;
use futures::{FutureExt, TryFutureExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use whimbrel_engine::setup::SetupError;
use whimbrel_engine::{Engine, PreparedSession, SessionExit, SessionRequest};
use whimbrel_transport::link;

use crate::error::Error;
use crate::error::OpenError;
use crate::transport::{Connection, FrameSource, Opening};

/// The task of a session; its error says why the session was rejected.
pub(crate) type Serving = JoinHandle<Result<(), Box<SetupError>>>;

/// Starts a session of an engine.
pub(crate) fn connect(engine: Engine, request: SessionRequest) -> Connection {
    let prompt_spans = request.prompt_spans.clone();
    let (engine_end, host_end) = link::pair();
    let (ready_sender, ready) = oneshot::channel();
    let stop = engine_end.stop.clone();
    let resolve = async move {
        let resolve = Box::pin(PreparedSession::resolve(engine, request));
        stop.run_until_cancelled(resolve).await.transpose().map_err(Box::new)
    };
    // Composed from futures, because an async block that awaits one would store it twice.
    let serving = resolve.and_then(move |session: Option<PreparedSession>| {
        // The caller may not wait for it.
        let _ = ready_sender.send(());
        OptionFuture::from(session.map(|session| session.serve(engine_end))).map(session_result)
    });
    let serving = tokio::spawn(serving);
    Connection {
        opening: Opening::Resolving(ready),
        sender: host_end.sender,
        incoming: FrameSource::Frames(host_end.receiver, Some(serving)),
        finished: host_end.finished,
        stop: host_end.stop,
        prompt_spans,
    }
}

/// The error of a session that was rejected after it was resolved.
fn session_result(exit: Option<SessionExit>) -> Result<(), Box<SetupError>> {
    exit.and_then(|exit| exit.setup_error).map_or(Ok(()), |error| Err(Box::new(error)))
}

/// Waits for the engine's task. A panic becomes an error, so that it does not look like a normal end.
pub(super) async fn wait_for_exit(serving: Serving) -> Option<Error> {
    let panic = match serving.await {
        Ok(served) => return served.err().map(|error| OpenError::from(*error).into()),
        Err(error) => error.try_into_panic().ok()?,
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Some(Error::Panicked(text.unwrap_or_else(|| "no panic message".to_owned())))
}
