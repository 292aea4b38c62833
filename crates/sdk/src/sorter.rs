//! Sorts what the engine says: answers to whoever waits, questions to the callbacks, everything else to the reader.
//! It never waits for a callback, and for the reader only as [`Frames`] says.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::control::{ControlResponse, Initialize, McpMessageReply, Request, Response};
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Frame, RawJson};

use crate::agent::Agent;
use crate::callback::{Callbacks, complete};
use crate::controls::Controls;
use crate::error::Error;
use crate::frames::{Frames, Shelf, shelf};
use crate::line::{Handle, Line};
use crate::transport::{Connection, Incoming};

/// Connects to an engine: what can be said to it, and what it says.
pub(crate) fn connect(agent: &Agent) -> Result<(Controls, Frames), Error> {
    tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
    attach(agent, agent.connect()?)
}

/// Makes a connection one that can be used: opens it and starts to sort.
fn attach(agent: &Agent, connection: Connection) -> Result<(Controls, Frames), Error> {
    let Connection { sender, incoming, finished, stop, wants_initialize } = connection;
    let mut line = Line::new(sender, finished, stop, agent.unread_limit);
    let opening = opening(agent, wants_initialize).map(|opening| line.initialize(opening)).transpose()?;
    let line = Arc::new(line);
    let (shelf, frames) = shelf(&line);
    let callbacks = agent.callbacks.clone();
    let sorter = Sorter {
        line: Arc::clone(&line),
        shelf,
        callbacks,
        questions: HashMap::new(),
        opening,
        told: Told::Nothing,
    };
    tokio::spawn(sorter.run(incoming));
    Ok((Controls::new(Handle { line }), frames))
}

/// What the session is opened with, if anything: an engine in this process has the options already.
fn opening(agent: &Agent, wants_initialize: bool) -> Option<Initialize> {
    let hooks = &agent.callbacks.hooks;
    let hooks = (!hooks.is_empty()).then(|| hooks.list());
    match wants_initialize {
        true => Some(Initialize { hooks, ..agent.options.to_initialize() }),
        false => hooks.map(|hooks| Initialize { hooks: Some(hooks), ..Initialize::default() }),
    }
}

struct Sorter {
    line: Arc<Line>,
    shelf: Shelf,
    callbacks: Callbacks,
    /// Questions that a callback is answering. A task ends when its entry goes.
    questions: HashMap<String, AbortOnDropHandle<()>>,
    /// The `initialize` that has no answer yet.
    opening: Option<String>,
    told: Told,
}

/// What the reader knows about the end of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// It has seen a result.
    Result,
    /// It has been told that the session cannot begin. Nothing else matters.
    Refusal,
}

impl Sorter {
    async fn run(mut self, mut incoming: Incoming) {
        while let Some(frame) = incoming.next().await {
            self.sort(frame);
            self.line.room().await;
        }
        self.line.over();
    }

    fn sort(&mut self, frame: Result<Frame, Error>) {
        match frame {
            Ok(Frame::ControlResponse(answer)) => self.answered(answer.response),
            Ok(Frame::ControlRequest(asked)) => self.ask(asked.request_id, asked.request),
            Ok(Frame::ControlCancel(cancel)) => drop(self.questions.remove(&cancel.request_id)),
            Ok(Frame::KeepAlive(_)) => {}
            Ok(frame) if is_for_the_sdk_only(&frame) => {}
            _ if self.told == Told::Refusal => {}
            other => {
                if let Ok(Frame::Result(_)) = other {
                    self.told = Told::Result;
                }
                self.shelf.put(other);
            }
        }
    }

    /// Takes an answer in. If it refuses the opening, the session must not go on without what was asked for.
    fn answered(&mut self, response: Response) {
        if self.opening.as_deref() == Some(response.request_id()) {
            self.opening = None;
            if let Response::Error { error, .. } = &response {
                // An engine that ends with a result has said it there.
                if self.told == Told::Nothing {
                    self.shelf.put(Err(Error::Refused(error.clone())));
                }
                self.told = Told::Refusal;
                self.line.stop.cancel();
            }
        }
        self.line.answered(response);
    }

    /// Has a question of the engine answered, beside everything else.
    fn ask(&mut self, id: String, request: Request) {
        self.questions.retain(|_, task| !task.is_finished());
        let (line, callbacks) = (Arc::clone(&self.line), self.callbacks.clone());
        let question = id.clone();
        let answering = tokio::spawn(async move {
            let answer = tokio::select! {
                answer = answer(id, request, callbacks) => answer,
                () = line.stop.cancelled() => return,
            };
            // An engine that has ended needs no answer.
            let _ = line.send(answer).await;
        });
        self.questions.insert(question, AbortOnDropHandle::new(answering));
    }
}

/// The host's answer. A callback that panics gives an error, wherever it does.
async fn answer(id: String, request: Request, callbacks: Callbacks) -> ControlResponse {
    match request {
        Request::CanUseTool(asked) => match callbacks.can_use_tool {
            Some(callback) => {
                let input = asked.input.clone();
                match AssertUnwindSafe(async { callback(asked).await }).catch_unwind().await {
                    Ok(answer) => ControlResponse::success(id, &complete(answer, input)),
                    Err(_) => ControlResponse::error(id, "the permission callback panicked"),
                }
            }
            None => ControlResponse::error(id, "there is no permission callback"),
        },
        Request::HookCallback(asked) => match callbacks.hooks.find(&asked.callback_id) {
            Some(callback) => {
                match AssertUnwindSafe(async { callback(asked.input).await }).catch_unwind().await {
                    Ok(answer) => ControlResponse::success(id, &answer),
                    Err(_) => ControlResponse::error(id, "the hook panicked"),
                }
            }
            None => ControlResponse::error(id, format!("there is no hook {}", asked.callback_id)),
        },
        Request::McpMessage(asked) => {
            let answering = callbacks.tool_servers.answer(&asked.server_name, &asked.message);
            match AssertUnwindSafe(answering).catch_unwind().await {
                Ok(Ok(mcp_response)) => ControlResponse::success(id, &McpMessageReply { mcp_response }),
                Ok(Err(error)) => ControlResponse::error(id, error),
                Err(_) => ControlResponse::error(id, "the tool panicked"),
            }
        }
        Request::Elicitation(asked) if let Some(callback) = callbacks.elicitation => {
            match AssertUnwindSafe(async { callback(asked).await }).catch_unwind().await {
                Ok(answer) => ControlResponse::success(id, &answer),
                Err(_) => ControlResponse::error(id, "the elicitation callback panicked"),
            }
        }
        other => ControlResponse::unsupported(id, other.subtype()),
    }
}

/// Whether a frame is marked as one that an SDK reads and does not show.
fn is_for_the_sdk_only(frame: &Frame) -> bool {
    let raw = match frame {
        Frame::System(system) => match &system.event {
            SystemEvent::SessionStateChanged(changed) => return changed.sdk_host_only == Some(true),
            SystemEvent::Other(raw) => raw,
            _ => return false,
        },
        Frame::Unknown(raw) => raw,
        _ => return false,
    };
    is_marked(raw)
}

fn is_marked(raw: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Mark {
        #[serde(default)]
        sdk_host_only: bool,
    }
    raw.as_str().contains("\"sdk_host_only\"") && raw.read::<Mark>().is_ok_and(|mark| mark.sdk_host_only)
}

#[cfg(test)]
#[cfg(feature = "in-process")]
mod tests;
