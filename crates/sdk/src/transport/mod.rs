//! Location of the engine: in this process, or in one of its own. Both end in the same pair of channels.

mod activity;
#[cfg(feature = "in-process")]
pub(crate) mod in_process;
pub(crate) mod process;

use std::borrow::Borrow;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use tokio::sync::mpsc;
#[cfg(feature = "in-process")]
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link;
use whimbrel_wire::Frame;

use crate::error::Error;

/// Location of the engine. By default it is this process; without the feature `in-process` the program `whimbrel`.
#[derive(Clone)]
pub struct Transport(pub(crate) TransportKind);

#[derive(Clone)]
pub(crate) enum TransportKind {
    /// In this process. Without an engine, an agent and its clones share one that is created for them.
    #[cfg(feature = "in-process")]
    InProcess(Option<whimbrel_engine::Engine>),
    Process(EngineCommand),
}

impl Transport {
    /// The engine in this process. An agent and its clones share one that is created for them.
    #[cfg(feature = "in-process")]
    pub fn in_process() -> Self {
        Self(TransportKind::InProcess(None))
    }

    /// This engine in this process, shared with others.
    #[cfg(feature = "in-process")]
    pub fn engine(engine: whimbrel_engine::Engine) -> Self {
        Self(TransportKind::InProcess(Some(engine)))
    }

    /// A process of this program: ours, or any other one that implements the protocol. One is started per session.
    pub fn process(program: impl Into<PathBuf>) -> Self {
        let program = program.into().into_os_string();
        Self(TransportKind::Process(EngineCommand { program, ..EngineCommand::default() }))
    }

    /// A process of this command, whose arguments come before those of the engine: for an engine that a script, a
    /// container or another machine runs.
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use whimbrel::{Agent, Transport};
    ///
    /// let script = Transport::command(Command::new("node").arg("cli.js"));
    /// let container = Transport::command(
    ///     Command::new("docker").args(["run", "--rm", "-i", "agents"]).env("DOCKER_HOST", "unix:///run/docker.sock"),
    /// );
    /// let agent = Agent::new().transport(container);
    /// ```
    ///
    /// Program, arguments, variables and directory of the command are copied, and nothing else. Its variables are set on
    /// top of [`Agent::environment`](crate::Agent::environment) and below [`Agent::env`](crate::Agent::env);
    /// `env_clear` has no effect. Without a directory the process starts in that of the agent.
    pub fn command(command: impl Borrow<Command>) -> Self {
        Self(TransportKind::Process(EngineCommand::from_command(command.borrow())))
    }
}

impl Default for Transport {
    #[cfg(feature = "in-process")]
    fn default() -> Self {
        Self::in_process()
    }

    #[cfg(not(feature = "in-process"))]
    fn default() -> Self {
        Self::process("whimbrel")
    }
}

/// Command line of an engine process, without the arguments of the engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct EngineCommand {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Variables to set or, without a value, to remove.
    pub(crate) variables: Vec<(OsString, Option<OsString>)>,
    pub(crate) dir: Option<PathBuf>,
}

impl EngineCommand {
    fn from_command(command: &Command) -> Self {
        let variables = command.get_envs();
        Self {
            program: command.get_program().to_owned(),
            args: command.get_args().map(ToOwned::to_owned).collect(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
                .collect(),
            dir: command.get_current_dir().map(ToOwned::to_owned),
        }
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
    pub(crate) opening: Opening,
    pub(crate) prompt_spans: PromptSpans,
}

#[cfg(feature = "in-process")]
pub(crate) use whimbrel_engine::PromptSpans;

/// Nothing: an engine process has no spans of this one.
#[cfg(not(feature = "in-process"))]
#[derive(Debug, Clone, Default)]
pub(crate) struct PromptSpans;

#[cfg(not(feature = "in-process"))]
impl PromptSpans {
    pub(crate) fn insert_current(&self, _: &str) {}

    pub(crate) fn remove(&self, _: &str) {}
}

/// How the engine judges the options of a session.
pub(crate) enum Opening {
    /// It has the options. The channel fires when they are accepted; if not, it closes and an error ends the frames.
    #[cfg(feature = "in-process")]
    Resolving(oneshot::Receiver<()>),
    /// It gets them with an `initialize`.
    Initialize,
}

/// Frames from the engine.
pub(crate) enum FrameSource {
    /// Channel from the engine's task in this process, and the task until it was awaited.
    #[cfg(feature = "in-process")]
    Frames(mpsc::Receiver<Frame>, Option<in_process::Serving>),
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
        match &self.0 {
            #[cfg(feature = "in-process")]
            TransportKind::InProcess(engine) => {
                f.debug_struct("InProcess").field("shared", &engine.is_some()).finish_non_exhaustive()
            }
            // Variables may be secrets.
            TransportKind::Process(command) => {
                f.debug_list().entry(&command.program).entries(&command.args).finish()
            }
        }
    }
}
