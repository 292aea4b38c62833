//! The host's side of the wire: sorts what the engine says, answers its questions, and asks it things.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::{Ask, ControlRequest, ControlResponse, Request, Response};
use whimbrel_wire::{Frame, WireError};

use crate::agent::Agent;
use crate::callback::{Callbacks, complete};
use crate::error::Error;
use crate::transport::{Connection, Host, Incoming};

/// How many frames may wait for the caller before the engine is slowed down.
const DEPTH: usize = 1024;

/// The speaking half: sends prompts and questions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    sender: mpsc::Sender<Result<Frame, WireError>>,
    waiting: Waiting,
    finished: CancellationToken,
    stop: CancellationToken,
}

/// Questions to the engine that have no answer yet.
type Waiting = Arc<Mutex<Pending>>;

#[derive(Default)]
struct Pending {
    questions: HashMap<String, oneshot::Sender<Response>>,
    /// The engine has ended: nobody will answer.
    over: bool,
}

impl Client {
    /// Connects to an engine. Frames for the caller come out of the returned receiver.
    pub(crate) fn connect(agent: &Agent) -> Result<(Self, mpsc::Receiver<Result<Frame, Error>>), Error> {
        let host = if agent.callbacks.can_use_tool.is_some() { Host::Answers } else { Host::IsSilent };
        let connection = agent.transport.connect(&agent.options, host)?;
        let Connection { sender, incoming, finished, stop, wants_initialize } = connection;
        let client = Self { sender, waiting: Waiting::default(), finished, stop };
        let (frames, receiver) = mpsc::channel(DEPTH);
        let desk = Desk {
            answers: client.sender.downgrade(),
            waiting: Arc::clone(&client.waiting),
            callbacks: agent.callbacks.clone(),
            stop: client.stop.clone(),
        };
        if wants_initialize {
            let opening = ControlRequest::new(new_id(), agent.options.to_initialize());
            // The channel has just been made: there is room.
            client.sender.try_send(Ok(opening.into())).map_err(|_| Error::Over)?;
        }
        tokio::spawn(sort(incoming, frames, desk));
        Ok((client, receiver))
    }

    /// Sends a frame.
    pub(crate) async fn send(&self, frame: impl Into<Frame>) -> Result<(), Error> {
        if self.finished.is_cancelled() {
            return Err(Error::Over);
        }
        self.sender.send(Ok(frame.into())).await.map_err(|_| Error::Over)
    }

    /// Asks the engine and waits for its answer.
    pub(crate) async fn call<A: Ask>(&self, ask: A) -> Result<A::Reply, Error> {
        let request_id = new_id();
        let (sender, receiver) = oneshot::channel();
        {
            let mut pending = open(&self.waiting);
            if pending.over {
                return Err(Error::Over);
            }
            pending.questions.insert(request_id.clone(), sender);
        }
        let request = ControlRequest::new(request_id.clone(), ask);
        if self.sender.send(Ok(request.into())).await.is_err() {
            open(&self.waiting).questions.remove(&request_id);
            return Err(Error::Over);
        }
        Ok(receiver.await.map_err(|_| Error::Over)?.reply::<A>()?)
    }

    /// No further prompt will come. Work goes on until nothing is left to do; callbacks are still answered.
    pub(crate) fn finish_input(&self) {
        self.finished.cancel();
    }

    /// Stops everything now.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

/// What sorting needs. It must not keep the engine's input open by itself.
struct Desk {
    answers: mpsc::WeakSender<Result<Frame, WireError>>,
    waiting: Waiting,
    callbacks: Callbacks,
    stop: CancellationToken,
}

/// Sorts what the engine says: answers to whoever waits, questions to the callbacks, everything else to the caller.
async fn sort(mut incoming: Incoming, frames: mpsc::Sender<Result<Frame, Error>>, desk: Desk) {
    while let Some(frame) = incoming.next().await {
        match frame {
            Ok(Frame::ControlResponse(answer)) => {
                let response = answer.response;
                if let Some(waiting) = open(&desk.waiting).questions.remove(response.request_id()) {
                    // Whoever asked may have gone away.
                    let _ = waiting.send(response);
                }
            }
            Ok(Frame::ControlRequest(asked)) => desk.answer(asked.request_id, asked.request),
            Ok(Frame::ControlCancel(_) | Frame::KeepAlive(_)) => {}
            other => {
                if frames.send(other).await.is_err() {
                    desk.stop.cancel();
                    break;
                }
            }
        }
    }
    let mut pending = open(&desk.waiting);
    pending.over = true;
    pending.questions.clear();
}

impl Desk {
    /// Answers a question of the engine, beside everything else.
    fn answer(&self, id: String, request: Request) {
        let Some(answers) = self.answers.upgrade() else { return };
        let can_use_tool = self.callbacks.can_use_tool.clone();
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let response = match (request, can_use_tool) {
                (Request::CanUseTool(asked), Some(callback)) => {
                    let input = asked.input.clone();
                    let answering = tokio::select! {
                        answer = AssertUnwindSafe(callback(asked)).catch_unwind() => answer,
                        () = stop.cancelled() => return,
                    };
                    match answering {
                        Ok(answer) => ControlResponse::success(id, &complete(answer, &input)),
                        Err(_) => ControlResponse::error(id, "the permission callback panicked"),
                    }
                }
                (Request::CanUseTool(_), None) => {
                    ControlResponse::error(id, "there is no permission callback")
                }
                (other, _) => ControlResponse::unsupported(id, other.subtype()),
            };
            // An engine that has ended needs no answer.
            let _ = answers.send(Ok(response.into())).await;
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "the SDK names its own questions")]
fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
