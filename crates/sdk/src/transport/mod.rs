//! Location of the engine. Both variants end in the same pair of channels.

mod activity;
#[cfg(feature = "in-process")]
pub(crate) mod in_process;
pub(crate) mod process;

use std::fmt;
use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link;
use whimbrel_wire::Frame;

use crate::error::Error;

/// Location of the engine.
#[derive(Clone)]
pub enum Transport {
    /// In this process. Without an engine, an agent and its clones share one that is created for them.
    #[cfg(feature = "in-process")]
    InProcess(Option<whimbrel_engine::Engine>),
    /// A separate process: ours, or any other program that implements the protocol.
    Process(PathBuf),
}

impl Default for Transport {
    #[cfg(feature = "in-process")]
    fn default() -> Self {
        Self::InProcess(None)
    }

    #[cfg(not(feature = "in-process"))]
    fn default() -> Self {
        Self::Process("whimbrel".into())
    }
}

/// A connection to an engine.
pub(crate) struct Connection {
    /// To the engine.
    pub(crate) sender: mpsc::Sender<link::IncomingFrame>,
    /// From the engine. It ends when the run has ended.
    pub(crate) incoming: FrameSource,
    /// To be cancelled when no further prompt will come.
    pub(crate) finished: CancellationToken,
    /// To be cancelled to stop everything now.
    pub(crate) stop: CancellationToken,
    /// True if the session must be opened with an `initialize`.
    pub(crate) needs_initialize: bool,
}

/// Frames from the engine.
pub(crate) enum FrameSource {
    /// Channel from the engine's task in this process, and the task until it was awaited.
    #[cfg(feature = "in-process")]
    Frames(mpsc::Receiver<Frame>, Option<tokio::task::JoinHandle<()>>),
    /// Lines of a process, which may be malformed.
    Process(Box<process::EngineOutput>),
    /// Channel from a fake engine.
    #[cfg(test)]
    Fake(mpsc::Receiver<Frame>),
}

impl FrameSource {
    pub(crate) async fn next(&mut self) -> Option<Result<Frame, Error>> {
        match self {
            #[cfg(feature = "in-process")]
            Self::Frames(frames, serving) => match frames.recv().await {
                Some(frame) => Some(Ok(frame)),
                None => in_process::wait_for_exit(serving.take()?).await.map(Err),
            },
            Self::Process(output) => output.next().await,
            #[cfg(test)]
            Self::Fake(frames) => frames.recv().await.map(Ok),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "in-process")]
            Self::InProcess(engine) => {
                f.debug_struct("InProcess").field("shared", &engine.is_some()).finish_non_exhaustive()
            }
            Self::Process(program) => f.debug_tuple("Process").field(program).finish(),
        }
    }
}
