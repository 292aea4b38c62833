//! Event loop of a session: one task that owns the session's state, receives all events and starts turns.
//!
//! End of input and stop are different events. After the host has finished its input, the session continues until
//! nothing runs and nothing is queued; only the link's stop token ends it at once. Turns are in `turns`, slash commands
//! in `commands`, control requests in `control`, MCP servers in `mcp`, internal events in `notifications`, agent
//! definitions of the host and of `--agent` in `agent_definitions`, rewinds in `rewind`, calls of an earlier run in
//! `pending_calls`, the `init` frame in `init_frame`, the state in
//! `session`, the parts that a session's agents are built from in `build_parts`, the worktree in which a session starts in
//! `session_worktree`, a session without turns in `init_only`.

mod agent_definitions;
mod build_parts;
mod commands;
mod context_usage;
pub(crate) mod control;
mod extensions;
mod init_frame;
mod init_only;
mod mcp;
mod notifications;
mod pending_calls;
mod rewind;
mod session;
mod session_worktree;
mod turns;
mod withdrawable_requests;

use std::time::Duration;

use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use whimbrel_os::{clock, files, ids};
use whimbrel_tools::hooks::HookDispatcher;
use whimbrel_tools::internal_events::{EventReceiver, InternalEvent, event_channel};
use whimbrel_tools::telemetry::OpenSession;
use whimbrel_transport::frame_log::log_frame;
use whimbrel_transport::link::{IncomingFrame, Link};
use whimbrel_wire::codec::WireError;
use whimbrel_wire::control::ControlResponse;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};
use whimbrel_wire::options::SetupHooks;
use whimbrel_wire::system::WireErrorNotice;
use whimbrel_wire::{Frame, Role};

use crate::engine::Engine;
use crate::input_queue::{self, QueuedInput};
use crate::session_lifetime::{Activity, HostInput, LoopDecision};
use crate::setup::{SessionRequest, Setup, SetupError, session_selection};
use crate::transcript_notices;
use crate::turn_result;
pub(crate) use build_parts::build_hooks;
pub(crate) use session::Session;
use turns::{TurnSignal, wait_for_turn, wait_for_turn_end};

/// Grace period for a cancelled turn to finish when the session is stopped.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// Grace period for `SessionEnd` hooks when the session is stopped.
const SESSION_END_HOOK_GRACE: Duration = Duration::from_millis(500);

/// Time for which frames are still read from a host whose session is rejected.
const REJECT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub struct SessionExit {
    /// Outcome of the last turn, if there was one.
    pub last_turn: Option<TurnSummary>,
    /// Set if the session could not be started.
    pub setup_error: Option<SetupError>,
}

/// Outcome of a turn: the part of its result frame that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSummary {
    pub outcome: Outcome,
    pub is_error: bool,
    pub reason: Option<TerminalReason>,
}

impl From<&TurnResult> for TurnSummary {
    fn from(result: &TurnResult) -> Self {
        Self {
            outcome: result.subtype.clone(),
            is_error: result.is_error,
            reason: result.terminal_reason.clone(),
        }
    }
}

/// A session whose options were accepted; [`PreparedSession::serve`] runs it.
pub struct PreparedSession {
    engine: Engine,
    setup: Box<Setup>,
}

impl PreparedSession {
    /// Resolves options and settings, and loads the session to resume.
    pub async fn resolve(engine: Engine, request: SessionRequest) -> Result<Self, SetupError> {
        let (request, notice) = session_worktree::enter_worktree(&engine, request).await?;
        let mut setup = session_selection::resolve(&engine, request).await?;
        setup.host.add_warnings(notice);
        Ok(Self { engine, setup: Box::new(setup) })
    }

    /// Runs the session until it ends.
    pub fn serve(self, link: Link) -> impl Future<Output = SessionExit> + Send {
        run(self, link)
    }
}

/// Resolves a session and runs it until it ends. The host gets an error of its options as a result frame.
///
/// Thousands of idle sessions may share a process, so this future holds only what an idle session needs; anything
/// larger is boxed while it is in use.
pub fn serve(
    engine: Engine,
    link: Link,
    request: SessionRequest,
) -> impl Future<Output = SessionExit> + Send {
    // The future of an async fn keeps its arguments until it ends, so the large one is boxed.
    resolve_and_run(engine, link, Box::new(request))
}

async fn resolve_and_run(engine: Engine, mut link: Link, request: Box<SessionRequest>) -> SessionExit {
    let resolve = Box::pin(async { PreparedSession::resolve(engine, *request).await });
    match link.stop.run_until_cancelled(resolve).await {
        Some(Ok(session)) => run(session, link).await,
        Some(Err(error)) => Box::pin(reject_session(&mut link, error, ids::new_uuid())).await,
        None => SessionExit::default(),
    }
}

async fn run(PreparedSession { engine, setup }: PreparedSession, mut link: Link) -> SessionExit {
    let (event_sender, mut events) = event_channel();
    let mut session = Box::new(Session::new(engine, setup, &link, event_sender));
    // Stops all background work if this future is dropped.
    let _guard = session.tasks.close_on_drop();
    let _counted = OpenSession::begin();
    if session.setup.hooks.setup_hooks == Some(SetupHooks::InitOnly) {
        let setup_error = Box::pin(session.run_init_only(&link.stop)).await.err();
        let exit = Box::pin(close(session, &link.stop, &mut events)).await;
        return SessionExit { setup_error, ..exit };
    }
    let mut input = HostInput::Open;
    let mut idle_since = None;
    loop {
        if session.is_turn_due() {
            // Events posted so far belong to this turn.
            session.handle_pending_events(&mut events).await;
            Box::pin(session.start_next_turn()).await;
        }
        if let Some(error) = session.setup_error.take() {
            session.mcp.close(&link.stop).await;
            session.tasks.shutdown().await;
            return Box::pin(reject_session(&mut link, error, session.setup.session.id.clone())).await;
        }
        let activity = session.activity(input, &events);
        session.host.state_notifier.publish(activity).await;
        let limit = match activity
            .decide(session.setup.host.background_policy, session.setup.host.background_wait_limit)
        {
            LoopDecision::Exit => break,
            LoopDecision::WaitForEvents => {
                idle_since = None;
                None
            }
            // Measured from when the session became idle; events in between do not extend it.
            LoopDecision::WaitForBackground(limit) => {
                let since = *idle_since.get_or_insert_with(|| Instant::from_std(clock::monotonic()));
                limit.map(|limit| since + limit)
            }
        };
        let event = tokio::select! {
            biased;
            () = link.stop.cancelled() => SessionEvent::Stop,
            line = link.incoming.recv(), if input != HostInput::Closed => line.map_or(SessionEvent::HostClosed, SessionEvent::HostFrame),
            () = link.finished.cancelled(), if input == HostInput::Open => SessionEvent::InputFinished,
            Some(event) = events.recv() => SessionEvent::Internal(event),
            signal = wait_for_turn(&mut session.main_agent.running_turn) => SessionEvent::Turn(signal),
            () = wait_until(limit) => SessionEvent::DeadlineReached,
        };
        match event {
            SessionEvent::HostFrame(line) => {
                Box::pin(session.handle_frame(line)).await;
                // Frames that arrived together belong to the same turn.
                while let Ok(line) = link.incoming.try_recv() {
                    Box::pin(session.handle_frame(line)).await;
                }
            }
            SessionEvent::InputFinished => input = HostInput::Finished,
            SessionEvent::HostClosed => {
                input = HostInput::Closed;
                session.host.requests.close();
            }
            SessionEvent::Internal(event) => session.handle_event(event).await,
            SessionEvent::Turn(TurnSignal::PromptsRequested(request)) => session.give_prompts(request),
            SessionEvent::Turn(TurnSignal::Ended(ended)) => {
                // Send notices about tasks that started in the turn before its result.
                session.handle_pending_events(&mut events).await;
                Box::pin(session.end_turn(ended)).await;
            }
            SessionEvent::DeadlineReached => break,
            SessionEvent::Stop => {
                Box::pin(session.stop()).await;
                break;
            }
        }
    }
    Box::pin(close(session, &link.stop, &mut events)).await
}

/// Runs the `SessionEnd` hooks and closes servers, background work and the store.
async fn close(
    mut session: Box<Session>,
    stop: &CancellationToken,
    events: &mut EventReceiver,
) -> SessionExit {
    if session.progress.first_turn_started {
        Box::pin(run_session_end_hooks(&session.hooks.clone(), stop)).await;
    }
    session.mcp.close(stop).await;
    // A stop ends all background work; a session that ends normally detaches what may outlive it.
    let detached = if stop.is_cancelled() { 0 } else { session.tasks.detach_all().await };
    // No more responses are read: pending requests fail.
    session.host.requests.close();
    session.tasks.shutdown().await;
    let sandbox = Arc::clone(session.setup.session.workspace.sandbox());
    // What a failure leaves behind, the next session removes.
    let _ = files::run_blocking(move || sandbox.end()).await;
    session.handle_pending_events(events).await;
    session.team.flush().await;
    if let Some(text) =
        session.engine.providers().describe_unplayed().filter(|_| session.progress.first_turn_started)
    {
        let _ = tokio::time::timeout(STOP_GRACE, session.host.frame_sender.warn(text)).await;
    }
    transcript_notices::close_store(
        &session.setup.session.persistence,
        STOP_GRACE,
        &session.host.frame_sender,
    )
    .await;
    if session.setup.session.is_ephemeral && detached == 0 {
        // A directory that cannot be removed is left to the cleanup of the temporary directory.
        let _ = files::remove_dir(session.setup.session.workspace.output_dir());
    }
    SessionExit { last_turn: session.progress.last_turn, setup_error: None }
}

/// Runs the `SessionEnd` hooks; after a stop only for `SESSION_END_HOOK_GRACE`.
async fn run_session_end_hooks(hooks: &HookDispatcher, stop: &CancellationToken) {
    let cancel = CancellationToken::new();
    let deadline = async {
        stop.cancelled().await;
        tokio::time::sleep(SESSION_END_HOOK_GRACE).await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        _ = hooks.dispatch(HookEvent::SessionEnd, |input| input.session_end("other"), &cancel) => {}
        () = deadline => {}
    }
}

/// Sleeps until an instant; never returns if there is none.
async fn wait_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Everything that can wake a session.
enum SessionEvent {
    HostFrame(IncomingFrame),
    HostClosed,
    InputFinished,
    Internal(InternalEvent),
    Turn(TurnSignal),
    DeadlineReached,
    Stop,
}

/// Sends the host the reason why there is no session, then reads its frames for a moment: a host that is still
/// writing when the engine exits would see a broken pipe instead of the reason.
async fn reject_session(link: &mut Link, error: SetupError, session: String) -> SessionExit {
    let mut result = turn_result::setup_error_result(error.to_string(), session, ids::new_uuid());
    if matches!(error, SetupError::SandboxUnavailable(_)) {
        result.startup_failure_reason = Some("sandbox_required_unavailable".into());
    }
    let last_turn = TurnSummary::from(&result);
    // A closed link means that the host has disconnected.
    let _ = link.outgoing.send(result.into()).await;
    let drain = async {
        while let Some(line) = link.incoming.recv().await {
            if let Ok(Frame::ControlRequest(request)) = line {
                let answer = ControlResponse::error(request.request_id, error.to_string());
                let _ = link.outgoing.send(answer.into()).await;
            }
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(REJECT_DRAIN_TIMEOUT, drain) => {}
        () = link.stop.cancelled() => {}
        () = link.finished.cancelled() => {}
    }
    SessionExit { last_turn: Some(last_turn), setup_error: Some(error) }
}

impl Session {
    /// Activity of the session, counting internal events that were posted but not handled yet.
    fn activity(&self, input: HostInput, events: &EventReceiver) -> Activity {
        // An agent posts its last event before it stops being counted. The count is therefore read first; in the
        // other order, an event posted in between would be missed and the session could exit early.
        let activity = self.activity_without_events(input);
        Activity { input_pending: activity.input_pending || !events.is_empty(), ..activity }
    }

    /// The same without pending internal events.
    fn activity_without_events(&self, input: HostInput) -> Activity {
        Activity {
            input,
            turn_running: self.main_agent.running_turn.is_some(),
            input_pending: self.input_queue.has_turn_input(),
            pending_requests: self.host.state_notifier.pending_requests(),
            running_agents: self.tasks.running_agents() + self.team.active_count(),
            running_commands: self.tasks.running_commands(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.main_agent.running_turn.is_some() || self.input_queue.has_turn_input()
    }

    async fn publish_turn_start(&mut self) {
        self.host.state_notifier.publish_turn_start(self.activity_without_events(HostInput::Open)).await;
    }

    /// Returns whether the first turn has started. From then on the system prompt and the tools are fixed.
    pub(crate) fn has_begun(&self) -> bool {
        self.main_agent.idle.is_some() || self.main_agent.running_turn.is_some()
    }

    /// Handles one frame from the host.
    async fn handle_frame(&mut self, line: IncomingFrame) {
        if let Ok(frame) = &line {
            log_frame(self.engine.log(), "in", frame);
        }
        match line {
            Ok(Frame::User(user)) if user.message.role == Role::User => {
                if input_queue::is_urgent(&user) {
                    self.interrupt_running_turn();
                }
                self.input_queue.push(QueuedInput::Prompt(user));
            }
            Ok(Frame::User(_)) => self.send_wire_error("a \"user\" line must have the role \"user\"").await,
            Ok(Frame::ControlRequest(request)) => {
                if let Some(response) =
                    control::handle_request(self, request.request_id, request.request).await
                {
                    self.host.frame_sender.send(response).await;
                }
            }
            Ok(Frame::ControlResponse(answer)) => self.host.requests.handle_response(answer.response),
            Ok(Frame::EnvironmentUpdate(update)) => {
                self.setup.session.workspace.set_variables(update.variables);
            }
            Ok(Frame::ControlCancel(cancel)) => self.withdrawable_requests.withdraw(&cancel.request_id),
            Ok(Frame::KeepAlive(_) | Frame::Unknown(_)) => {}
            Ok(other) => {
                let error = WireError::NotForEngine { kind: other.kind().to_owned() };
                self.send_wire_error(&error.to_string()).await;
            }
            Err(error) => self.send_wire_error(&error.to_string()).await,
        }
    }

    async fn send_wire_error(&mut self, message: &str) {
        self.host.frame_sender.notify(WireErrorNotice { message: message.to_owned(), line: None }).await;
    }

    /// Handles all internal events that were posted so far.
    async fn handle_pending_events(&mut self, events: &mut EventReceiver) {
        while let Ok(event) = events.try_recv() {
            self.handle_event(event).await;
        }
    }

    /// Interrupts the running turn, if there is one. Its pending requests are cancelled as it ends; background work
    /// continues and keeps its requests. If a prompt is queued but not started yet, its turn starts first and is then
    /// interrupted, so that the host gets a result for it. Returns the prompts of a turn of which the host has seen
    /// nothing yet.
    pub(crate) async fn interrupt(&mut self) -> Vec<String> {
        if self.is_turn_due() && self.input_queue.prompt_count() > 0 {
            Box::pin(self.start_next_turn()).await;
        }
        self.interrupt_running_turn();
        self.unseen_prompts()
    }

    /// Interrupts the turn that answers a prompt. A prompt that still waits is taken back instead: true.
    pub(crate) fn interrupt_prompt(&mut self, prompt: &str) -> bool {
        if self.input_queue.take_prompt(prompt).is_some() {
            return true;
        }
        if self.main_agent.prompt_ids.iter().any(|id| id == prompt) {
            self.interrupt_running_turn();
        }
        false
    }

    /// Cancels the running turn, waits briefly for it and sends its result if the host still reads.
    async fn stop(&mut self) {
        self.input_queue.clear();
        self.host.requests.close();
        let Some(running) = &self.main_agent.running_turn else { return };
        running.cancel.cancel();
        if let Ok(ended) =
            tokio::time::timeout(STOP_GRACE, wait_for_turn_end(&mut self.main_agent.running_turn)).await
        {
            // The host may have stopped reading.
            let _ = tokio::time::timeout(STOP_GRACE, self.end_turn(ended)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_future_is_send() {
        fn is_send<T: Send>(_: &T) {}
        let _ = |engine, link, request| is_send(&serve(engine, link, request));
    }
}
