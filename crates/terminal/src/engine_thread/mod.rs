//! The session in a thread of its own, so that a busy engine never delays a key. Sessions are opened and closed by
//! commands; frames and requests come as events. Each session has a number, by which late events are recognized.

mod callbacks;

use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel::{Agent, CanUseTool, Controls, Frame, PermissionResult, Session};

use crate::prompts::RequestId;

/// Frames that may wait for the screen; beyond it the engine is slowed down.
const MAX_WAITING_EVENTS: usize = 4096;
/// Time that a session has to end what it started.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(900);

/// Number of a session of this program.
pub(crate) type SessionNumber = u64;

/// What happens in a session.
pub(crate) struct EngineEvent {
    pub(crate) session: SessionNumber,
    pub(crate) kind: EngineEventKind,
}

pub(crate) enum EngineEventKind {
    Opened(Controls),
    OpenFailed(String),
    Frame(Frame),
    /// A line of an engine process could not be read.
    Malformed(String),
    /// A tool call needs permission.
    Permission {
        id: RequestId,
        request: Box<CanUseTool>,
        answer: oneshot::Sender<PermissionResult>,
    },
    /// A request no longer needs an answer.
    Withdrawn(RequestId),
    /// The session has ended.
    Ended,
}

enum Command {
    Open { session: SessionNumber, agent: Box<Agent> },
    Close { closed: oneshot::Sender<()> },
}

/// The thread.
pub(crate) struct EngineThread {
    commands: mpsc::UnboundedSender<Command>,
}

impl EngineThread {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<(Self, mpsc::Receiver<EngineEvent>)> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let (events, event_receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            // The engine is a task of its own: the runtime polls for I/O each time that its main future is woken.
            runtime.block_on(run_commands(receiver, events));
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("engine".into()).spawn(run)?;
        Ok((Self { commands }, event_receiver))
    }

    /// Opens a session; the one before is closed first.
    pub(crate) fn open(&self, session: SessionNumber, agent: Agent) {
        let _ = self.commands.send(Command::Open { session, agent: Box::new(agent) });
    }

    /// Closes the session, and waits until it has ended what it started or the time is over.
    pub(crate) async fn close(&self) {
        let (closed, receiver) = oneshot::channel();
        if self.commands.send(Command::Close { closed }).is_ok() {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, receiver).await;
        }
    }
}

/// The open session: its task, and the token that ends it.
struct OpenSession {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

async fn run_commands(mut commands: mpsc::UnboundedReceiver<Command>, events: mpsc::Sender<EngineEvent>) {
    let mut open: Option<OpenSession> = None;
    while let Some(command) = commands.recv().await {
        if let Some(before) = open.take() {
            before.stop.cancel();
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, before.task).await;
        }
        match command {
            Command::Open { session, agent } => {
                let stop = CancellationToken::new();
                let task = tokio::spawn(run_session(session, agent, events.clone(), stop.clone()));
                open = Some(OpenSession { stop, task });
            }
            Command::Close { closed } => {
                let _ = closed.send(());
            }
        }
    }
}

/// Runs a session until it ends or is stopped.
async fn run_session(
    session: SessionNumber,
    agent: Box<Agent>,
    events: mpsc::Sender<EngineEvent>,
    stop: CancellationToken,
) {
    // After the program has left there is nothing to tell.
    let send = async |kind| drop(events.send(EngineEvent { session, kind }).await);
    let agent = callbacks::install(*agent, session, events.clone());
    let opened = tokio::select! {
        opened = Session::open(&agent) => opened,
        () = stop.cancelled() => return,
    };
    let (controls, mut frames) = match opened {
        Ok(session) => session.split(),
        Err(error) => return send(EngineEventKind::OpenFailed(error.to_string())).await,
    };
    send(EngineEventKind::Opened(controls.clone())).await;
    let mut is_stopped = false;
    loop {
        let frame = tokio::select! {
            frame = frames.next() => frame,
            () = stop.cancelled(), if !is_stopped => {
                is_stopped = true;
                controls.close();
                continue;
            }
        };
        match frame {
            None => break,
            Some(_) if is_stopped => {}
            Some(Ok(frame)) => send(EngineEventKind::Frame(frame)).await,
            Some(Err(error)) => send(EngineEventKind::Malformed(error.to_string())).await,
        }
    }
    if !is_stopped {
        send(EngineEventKind::Ended).await;
    }
}
