//! The engine in this process: a task that passes its frames on without serialization.

use futures::FutureExt;
use tokio::task::JoinHandle;
use whimbrel_engine::{Engine, SessionRequest, serve};
use whimbrel_transport::link;

use crate::error::Error;
use crate::transport::{Connection, FrameSource};

/// Starts a session of an engine.
pub(crate) fn connect(engine: Engine, request: SessionRequest) -> Connection {
    let (engine_end, host_end) = link::pair();
    let session = serve(engine, engine_end, request);
    // An async block that awaits the future would store it twice.
    let serving = tokio::spawn(session.map(drop));
    Connection {
        sender: host_end.sender,
        incoming: FrameSource::Frames(host_end.receiver, Some(serving)),
        finished: host_end.finished,
        stop: host_end.stop,
        needs_initialize: false,
    }
}

/// Waits for the engine's task. A panic becomes an error, so that it does not look like a normal end.
pub(super) async fn wait_for_exit(serving: JoinHandle<()>) -> Option<Error> {
    let panic = serving.await.err()?.try_into_panic().ok()?;
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Some(Error::Panicked(text.unwrap_or_else(|| "no panic message".to_owned())))
}
