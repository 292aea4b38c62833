//! Routes frames from the engine: responses to pending requests, requests to the callbacks, everything else to the
//! reader. Never waits for a callback; waits for the reader only as [`Frames`] describes.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::control::{Initialize, Request, Response};
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Frame, RawJson};

use crate::agent::Agent;
use crate::callback::{Callbacks, answer_request};
use crate::client::{EngineClient, InputGuard};
use crate::controls::Controls;
use crate::error::Error;
use crate::frames::{FrameQueue, Frames, frame_queue};
use crate::transport::{Connection, FrameSource};

/// Connects to the engine of an agent and starts the router.
pub(crate) fn open(agent: &Agent) -> Result<(Controls, Frames), Error> {
    tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
    start_router(agent, agent.connect()?)
}

/// Opens the session over a connection and starts the router task.
fn start_router(agent: &Agent, connection: Connection) -> Result<(Controls, Frames), Error> {
    let Connection { sender, incoming, finished, stop, needs_initialize } = connection;
    let mut client = EngineClient::new(sender, finished, stop, agent.unread_limit);
    let request = initialize_request(agent, needs_initialize);
    let initialize_id = request.map(|request| client.initialize(request)).transpose()?;
    let client = Arc::new(client);
    let (queue, frames) = frame_queue(&client);
    let callbacks = agent.callbacks.clone();
    let router = FrameRouter {
        client: Arc::clone(&client),
        queue,
        callbacks,
        callback_tasks: HashMap::new(),
        initialize_id,
        reported: ReportedEnd::Nothing,
    };
    tokio::spawn(router.run(incoming));
    Ok((Controls::new(InputGuard { client }), frames))
}

/// Returns the `initialize` that opens the session. An engine in this process has the options already and needs it only
/// for hooks.
fn initialize_request(agent: &Agent, needs_initialize: bool) -> Option<Initialize> {
    let hooks = &agent.callbacks.hooks;
    let hooks = (!hooks.is_empty()).then(|| hooks.to_matchers());
    match needs_initialize {
        true => Some(Initialize { hooks, ..agent.options.to_initialize() }),
        false => hooks.map(|hooks| Initialize { hooks: Some(hooks), ..Initialize::default() }),
    }
}

struct FrameRouter {
    client: Arc<EngineClient>,
    queue: FrameQueue,
    callbacks: Callbacks,
    /// Requests that a callback is answering. Removing an entry aborts its task.
    callback_tasks: HashMap<String, AbortOnDropHandle<()>>,
    /// Id of the `initialize` that has no response yet.
    initialize_id: Option<String>,
    reported: ReportedEnd,
}

/// Last report to the reader about the end of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportedEnd {
    Nothing,
    /// A result was passed on.
    Result,
    /// The rejected `initialize` was reported; all further frames are dropped.
    InitializeRejected,
}

impl FrameRouter {
    async fn run(mut self, mut incoming: FrameSource) {
        while let Some(frame) = incoming.next().await {
            self.route(frame);
            self.client.wait_for_capacity().await;
        }
        self.client.close();
    }

    fn route(&mut self, frame: Result<Frame, Error>) {
        match frame {
            Ok(Frame::ControlResponse(frame)) => self.handle_response(frame.response),
            Ok(Frame::ControlRequest(frame)) => self.handle_request(frame.request_id, frame.request),
            Ok(Frame::ControlCancel(cancel)) => drop(self.callback_tasks.remove(&cancel.request_id)),
            Ok(Frame::KeepAlive(_)) => {}
            Ok(frame) if is_sdk_only(&frame) => {}
            _ if self.reported == ReportedEnd::InitializeRejected => {}
            other => {
                if let Ok(Frame::Result(_)) = other {
                    self.reported = ReportedEnd::Result;
                }
                self.queue.push(other);
            }
        }
    }

    /// Handles a response. If it rejects the `initialize`, the session must not continue without its options.
    fn handle_response(&mut self, response: Response) {
        if self.initialize_id.as_deref() == Some(response.request_id()) {
            self.initialize_id = None;
            if let Response::Error { error, .. } = &response {
                // An engine that ends with a result has reported the error there.
                if self.reported == ReportedEnd::Nothing {
                    self.queue.push(Err(Error::Rejected(error.clone())));
                }
                self.reported = ReportedEnd::InitializeRejected;
                self.client.stop.cancel();
            }
        }
        self.client.handle_response(response);
    }

    /// Answers a request of the engine in a task of its own.
    fn handle_request(&mut self, id: String, request: Request) {
        self.callback_tasks.retain(|_, task| !task.is_finished());
        let (client, callbacks) = (Arc::clone(&self.client), self.callbacks.clone());
        let request_id = id.clone();
        let task = tokio::spawn(async move {
            let response = tokio::select! {
                response = answer_request(id, request, callbacks) => response,
                () = client.stop.cancelled() => return,
            };
            // An engine that has ended needs no response.
            let _ = client.send(response).await;
        });
        self.callback_tasks.insert(request_id, AbortOnDropHandle::new(task));
    }
}

/// Returns whether a frame is meant for the SDK and hidden from the caller.
fn is_sdk_only(frame: &Frame) -> bool {
    let raw = match frame {
        Frame::System(system) => match &system.event {
            SystemEvent::SessionStateChanged(changed) => return changed.sdk_host_only == Some(true),
            SystemEvent::Other(raw) => raw,
            _ => return false,
        },
        Frame::Unknown(raw) => raw,
        _ => return false,
    };
    has_sdk_only_flag(raw)
}

fn has_sdk_only_flag(raw: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct SdkOnlyFlag {
        #[serde(default)]
        sdk_host_only: bool,
    }
    raw.as_str().contains("\"sdk_host_only\"")
        && raw.decode::<SdkOnlyFlag>().is_ok_and(|flag| flag.sdk_host_only)
}

#[cfg(test)]
mod tests;
