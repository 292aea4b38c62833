//! Routes frames from the engine: responses to pending requests, requests to the callbacks, everything else to the
//! reader. Never waits for a callback; waits for the reader only as [`Frames`] describes.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use whimbrel_wire::control::{Initialize, Request, Response};
use whimbrel_wire::message::{TerminalReason, TurnResult};
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Frame, RawJson};

use crate::agent::{Agent, ReplayRequest};
use crate::callback::{CallbackTask, Callbacks};
use crate::client::{EngineClient, InputGuard};
use crate::controls::Controls;
use crate::error::Error;
use crate::error::OpenError;
use crate::frames::{FrameQueue, Frames, Replays, frame_queue};
use crate::transport::{Connection, FrameSource, Opening};
use crate::warning;

/// Connects to the engine of an agent and starts the router. Does not wait until the options are accepted.
pub(crate) fn connect(agent: &Agent, replays: ReplayRequest) -> Result<RoutedSession, Error> {
    tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
    start_router(agent, agent.connect(replays)?)
}

/// A session whose frames are being routed.
pub(crate) struct RoutedSession {
    pub(crate) controls: Controls,
    pub(crate) frames: Frames,
    opening: Opening,
}

impl RoutedSession {
    /// Waits until the engine has accepted the options.
    pub(crate) async fn wait_until_open(self) -> Result<(Controls, Frames), OpenError> {
        let Self { controls, mut frames, opening } = self;
        #[cfg(feature = "in-process")]
        if let Opening::Resolving(accepted) = opening
            && accepted.await.is_err()
        {
            return Err(frames.take_open_error().await);
        }
        #[cfg(not(feature = "in-process"))]
        let Opening::Initialize = opening;
        match controls.client().wait_for_initialize().await {
            Ok(()) => Ok((controls, frames)),
            Err(Error::SessionEnded) => Err(frames.take_open_error().await),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens the session over a connection and starts the router task.
fn start_router(agent: &Agent, connection: Connection) -> Result<RoutedSession, Error> {
    let Connection { sender, incoming, finished, stop, opening, prompt_spans } = connection;
    let mut client = EngineClient::new(sender, finished, stop, agent.unread_limit);
    client.prompt_spans = prompt_spans;
    let request = initialize_request(agent, &opening);
    let initialize_id = request.map(|request| client.initialize(request)).transpose()?;
    let client = Arc::new(client);
    let replays = if agent.options.replay_user_messages { Replays::Shown } else { Replays::Hidden };
    let (queue, frames) = frame_queue(&client, replays);
    let callbacks = agent.callbacks.clone();
    let router = FrameRouter {
        client: Arc::clone(&client),
        queue,
        callbacks,
        callback_tasks: HashMap::new(),
        initialize_id,
        reported: ReportedEnd::Nothing,
        is_process: matches!(opening, Opening::Initialize),
    };
    tokio::spawn(router.run(incoming));
    Ok(RoutedSession { controls: Controls::new(InputGuard { client }), frames, opening })
}

/// Returns the `initialize` that opens the session. An engine in this process has the options already and needs it only
/// for hooks.
fn initialize_request(agent: &Agent, opening: &Opening) -> Option<Initialize> {
    let hooks = &agent.callbacks.hooks;
    let hooks = (!hooks.is_empty()).then(|| hooks.to_matchers());
    match opening {
        Opening::Initialize => Some(Initialize { hooks, ..agent.options.to_initialize() }),
        #[cfg(feature = "in-process")]
        Opening::Resolving(_) => {
            hooks.map(|hooks| Initialize { hooks: Some(hooks), ..Initialize::default() })
        }
    }
}

struct FrameRouter {
    client: Arc<EngineClient>,
    queue: FrameQueue,
    callbacks: Callbacks,
    /// Requests that a callback is answering. Removing an entry aborts its task.
    callback_tasks: HashMap<String, CallbackTask>,
    /// Id of the `initialize` that has no response yet.
    initialize_id: Option<String>,
    reported: ReportedEnd,
    is_process: bool,
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
            Ok(Frame::ControlCancel(cancel)) => {
                if let Some(task) = self.callback_tasks.remove(&cancel.request_id) {
                    task.withdraw(cancel.reason);
                }
            }
            Ok(Frame::KeepAlive(_)) => {}
            Ok(frame) if is_sdk_only(&frame) => {}
            _ if self.reported == ReportedEnd::InitializeRejected => {}
            Ok(Frame::Result(result)) if result.terminal_reason == Some(TerminalReason::TurnSetupFailed) => {
                self.report_rejection(&result);
            }
            other => {
                if let Ok(Frame::Result(_)) = other {
                    self.reported = ReportedEnd::Result;
                }
                if let Ok(frame) = &other {
                    warning::report(frame, self.callbacks.on_warning.as_ref());
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

    /// Reports that the engine rejected the session. An engine in this process gives the reason as the last item.
    fn report_rejection(&mut self, result: &TurnResult) {
        if !self.is_process {
            return;
        }
        let text = result.errors.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ");
        self.queue.push(Err(OpenError::from_rejection(text).into()));
        self.reported = ReportedEnd::InitializeRejected;
    }

    /// Answers a request of the engine in a task of its own.
    fn handle_request(&mut self, id: String, request: Request) {
        self.callback_tasks.retain(|_, task| !task.is_finished());
        let task = CallbackTask::spawn(id.clone(), request, self.callbacks.clone(), Arc::clone(&self.client));
        self.callback_tasks.insert(id, task);
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
