//! Where the engine is. Both ways end in the same pair of channels.

#[cfg(feature = "in-process")]
pub(crate) mod in_process;
pub(crate) mod process;
mod activity;

use std::fmt;
use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::link;
use whimbrel_wire::Frame;

use crate::error::Error;

/// Where the engine is.
#[derive(Clone)]
pub enum Transport {
    /// In this process. Without an engine, sessions of one agent and its clones share one that is made for them.
    #[cfg(feature = "in-process")]
    InProcess(Option<whimbrel_engine::Engine>),
    /// A process of its own: ours, or any other that speaks the same language.
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

/// A connected engine.
pub(crate) struct Connection {
    /// To the engine.
    pub(crate) sender: mpsc::Sender<link::IncomingFrame>,
    /// From the engine. It ends when the run has ended.
    pub(crate) incoming: FrameSource,
    /// Fire it when no further prompt will come.
    pub(crate) finished: CancellationToken,
    /// Fire it to stop everything now.
    pub(crate) stop: CancellationToken,
    /// Whether the session must be opened with an `initialize`.
    pub(crate) needs_initialize: bool,
}

/// What comes from the engine.
pub(crate) enum FrameSource {
    /// Frames as they are, and the task that they come from until it has been seen off.
    #[cfg(feature = "in-process")]
    Frames(mpsc::Receiver<Frame>, Option<tokio::task::JoinHandle<()>>),
    /// Lines of a process, which may be wrong.
    Process(Box<process::EngineOutput>),
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
