//! The owner of a session: one task that takes everything off the inbox and starts turns.
//!
//! "Input finished" and "stop" are different facts. When the host finishes its input the session goes on until nothing
//! runs and nothing is queued; only the link's stop token ends it at once. How turns begin and end is in `turns`, what
//! slash commands start in `command`, what a session's agents are made from in `outfit`.

mod commands;
mod mcp;
mod extensions;
mod main_agent;
mod assemble;
mod turns;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::codec::WireError;
use whimbrel_wire::control::ControlResponse;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};
use whimbrel_wire::system::WireErrorNotice;
use whimbrel_wire::{Frame, Role};

use crate::agent::Agent;
use crate::agents::notices;
use crate::agents::team::SessionTeam;
use crate::host_requests::HostRequests;
use crate::context::usage::ContextMeter;
use crate::engine::Engine;
use crate::hooks::HookDispatcher;
use crate::frame_log::log_frame;
use crate::internal_events::{EventSender, Notification, InternalEvent, EventReceiver, event_channel};
use crate::key_helper::KeyHelper;
use crate::runtime_settings::RuntimeSettingsWriter;
use crate::activity::{LoopDecision, HostInput, Activity};
use crate::link::{IncomingFrame, Link};
use crate::fifo_lock::FifoLock;
use crate::frame_sender::FrameSender;
use crate::input_queue::{QueuedInput, InputQueue};
use crate::turn_result;
use crate::session::notices as transcript_notices;
use crate::setup::{Setup, SetupError, Start, resume};
use crate::state_notifier::StateNotifier;
use crate::tasks::TaskRegistry;
use crate::turn::TurnOutcome;
use crate::{clock, control, files, ids, task_notifications};
use control::AgentHandles;
use mcp::SessionMcp;
pub(crate) use assemble::build_hooks;
use turns::{RunningTurn, wait_for_turn};

/// How long an interrupted turn may take to wind up when the session is stopped.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// How long hooks may go on that hear of the end of a session that is stopped.
const SESSION_END_HOOK_GRACE: Duration = Duration::from_millis(500);

/// How long a host is heard whose session cannot begin.
const REJECT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Debug, Clone, Default)]
pub struct SessionExit {
    /// How the last turn ended, if there was one.
    pub last_turn: Option<TurnSummary>,
    /// Why the session never began, if it did not.
    pub setup_error: Option<SetupError>,
}

/// How a turn ended: what is kept of a result that the host has.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSummary {
    /// The kind of end.
    pub outcome: Outcome,
    /// Whether it failed.
    pub is_error: bool,
    /// A finer reason.
    pub reason: Option<TerminalReason>,
}

impl From<&TurnResult> for TurnSummary {
    fn from(result: &TurnResult) -> Self {
        Self { outcome: result.subtype, is_error: result.is_error, reason: result.terminal_reason.clone() }
    }
}

/// Serves a session until it is over.
///
/// Thousands of sessions may be at rest in one process, so this future holds what a resting session needs: whatever takes
/// more room than that is on the heap while it lasts.
pub fn serve(engine: Engine, link: Link, start: Start) -> impl Future<Output = SessionExit> + Send {
    // A future has room for its arguments to the end.
    run(engine, link, Box::new(start))
}

async fn run(engine: Engine, mut link: Link, start: Box<Start>) -> SessionExit {
    let setup = Box::pin(async { resume::resolve(&engine, *start).await.map(Box::new) });
    let setup = match link.stop.run_until_cancelled(setup).await {
        Some(Ok(setup)) => setup,
        Some(Err(error)) => return Box::pin(reject_session(&mut link, error, ids::new_uuid())).await,
        None => return SessionExit::default(),
    };
    let (inbox, mut posts) = event_channel();
    let mut session = Box::new(Session::new(engine, setup, &link, inbox));
    // Whoever drops this run drops everything that it has started.
    let _guard = session.tasks.close_on_drop();
    let mut input = HostInput::Open;
    let mut quiet_since = None;
    loop {
        if session.is_turn_due() {
            // What was posted by now is told with it.
            session.handle_pending_events(&mut posts).await;
            Box::pin(session.start_next_turn()).await;
        }
        if let Some(error) = session.setup_error.take() {
            session.mcp.close(&link.stop).await;
            session.tasks.shutdown().await;
            return Box::pin(reject_session(&mut link, error, session.setup.session.clone())).await;
        }
        let moment = session.activity(input, &posts);
        session.state_notifier.publish(moment).await;
        let limit = match moment.decide(session.setup.background_policy, session.setup.background_wait_limit) {
            LoopDecision::Exit => break,
            LoopDecision::Run => {
                quiet_since = None;
                None
            }
            // It is counted from when nothing else was due; what wakes us meanwhile does not prolong it.
            LoopDecision::WaitFor(limit) => {
                let since = *quiet_since.get_or_insert_with(|| Instant::from_std(clock::monotonic()));
                limit.map(|limit| since + limit)
            }
        };
        let wake = tokio::select! {
            biased;
            () = link.stop.cancelled() => SessionEvent::Stop,
            line = link.incoming.recv(), if input != HostInput::Closed => line.map_or(SessionEvent::HostClosed, SessionEvent::HostFrame),
            () = link.finished.cancelled(), if input == HostInput::Open => SessionEvent::InputFinished,
            Some(post) = posts.recv() => SessionEvent::Internal(post),
            ended = wait_for_turn(&mut session.running_turn) => SessionEvent::TurnEnded(ended),
            () = wait_until(limit) => SessionEvent::DeadlineReached,
        };
        match wake {
            SessionEvent::HostFrame(line) => {
                Box::pin(session.handle_frame(line)).await;
                // What has come along with it belongs to the same turn.
                while let Ok(line) = link.incoming.try_recv() {
                    Box::pin(session.handle_frame(line)).await;
                }
            }
            SessionEvent::InputFinished => input = HostInput::Finished,
            SessionEvent::HostClosed => {
                input = HostInput::Closed;
                session.host_requests.close();
            }
            SessionEvent::Internal(post) => session.handle_event(post).await,
            SessionEvent::TurnEnded(ended) => {
                // What began in the turn is told before its result.
                session.handle_pending_events(&mut posts).await;
                Box::pin(session.end_turn(ended)).await;
            }
            SessionEvent::DeadlineReached => break,
            SessionEvent::Stop => {
                Box::pin(session.stop()).await;
                break;
            }
        }
    }
    if session.first_turn_started {
        Box::pin(run_session_end_hooks(&session.hooks.clone(), &link.stop)).await;
    }
    session.mcp.close(&link.stop).await;
    // Whoever stops a session stops everything; one that ends by itself lets go what may outlive it.
    let outlived = if link.stop.is_cancelled() { 0 } else { session.tasks.detach_all().await };
    // Nobody reads answers any more: whoever waits for one goes on without.
    session.host_requests.close();
    session.tasks.shutdown().await;
    session.handle_pending_events(&mut posts).await;
    session.team.flush().await;
    if let Some(text) = session.engine.providers().describe_unplayed().filter(|_| session.first_turn_started) {
        let _ = tokio::time::timeout(STOP_GRACE, session.frame_sender.warn(text)).await;
    }
    transcript_notices::close_store(&session.setup.persistence, STOP_GRACE, &session.frame_sender).await;
    if session.setup.is_ephemeral && outlived == 0 {
        // What cannot be removed is the temporary folder's business.
        let _ = files::remove_dir(session.setup.workspace.output_dir());
    }
    SessionExit { last_turn: session.last_turn, setup_error: None }
}

/// Tells the hooks that the session ends. Whoever wants everything to stop does not wait for them long.
async fn run_session_end_hooks(lookout: &HookDispatcher, stop: &CancellationToken) {
    let cancel = CancellationToken::new();
    let hurry = async {
        stop.cancelled().await;
        tokio::time::sleep(SESSION_END_HOOK_GRACE).await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        _ = lookout.dispatch(HookEvent::SessionEnd, |scene| scene.session_end("other"), &cancel) => {}
        () = hurry => {}
    }
}

/// Ends at an instant; never, if there is none.
async fn wait_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Whatever can wake a session.
enum SessionEvent {
    HostFrame(IncomingFrame),
    HostClosed,
    InputFinished,
    Internal(InternalEvent),
    TurnEnded((Box<Agent>, Box<TurnOutcome>)),
    DeadlineReached,
    Stop,
}

/// A session that is being served.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) setup: Box<Setup>,
    pub(crate) frame_sender: FrameSender,
    pub(crate) host_requests: HostRequests,
    pub(crate) runtime_settings: RuntimeSettingsWriter,
    pub(crate) tasks: TaskRegistry,
    pub(crate) mcp: SessionMcp,
    event_sender: EventSender,
    team: SessionTeam,
    pub(crate) hooks: HookDispatcher,
    /// Changes of settings files that are under way.
    pub(crate) settings_writes: FifoLock,
    /// Switches of the model that are under way.
    pub(crate) model_switches: FifoLock,
    state_notifier: StateNotifier,
    /// The agent, while no turn owns it. Made with the first turn, so that `initialize` can still shape it.
    agent: Option<Box<Agent>>,
    running_turn: Option<RunningTurn>,
    /// How full the context of the agent is.
    context_meter: ContextMeter,
    /// What can be asked about the agent while a turn owns it.
    pub(crate) agent_handles: Option<AgentHandles>,
    pub(crate) input_queue: InputQueue,
    /// Whether the first turn has begun.
    first_turn_started: bool,
    /// Whether the host knows that an id of its own was not fit.
    warned_about_uuid: bool,
    /// When it was opened.
    pub(crate) started_at: std::time::Instant,
    result_count: u32,
    last_turn: Option<TurnSummary>,
    /// Set when `initialize` asked for something that cannot be had: the session must not go on without it.
    pub(crate) setup_error: Option<SetupError>,
}

/// Tells the host why there is no session, and hears it out for a moment: a host that is still writing when its engine
/// goes would see a broken pipe instead of the reason.
async fn reject_session(link: &mut Link, error: SetupError, session: String) -> SessionExit {
    let result = turn_result::setup_error_result(error.to_string(), session, ids::new_uuid());
    let last_turn = TurnSummary::from(&result);
    // A host that is gone does not need the reason.
    let _ = link.outgoing.send(result.into()).await;
    let hear_out = async {
        while let Some(line) = link.incoming.recv().await {
            if let Ok(Frame::ControlRequest(request)) = line {
                let answer = ControlResponse::error(request.request_id, error.to_string());
                let _ = link.outgoing.send(answer.into()).await;
            }
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(REJECT_DRAIN_TIMEOUT, hear_out) => {}
        () = link.stop.cancelled() => {}
        () = link.finished.cancelled() => {}
    }
    SessionExit { last_turn: Some(last_turn), setup_error: Some(error) }
}

impl Session {
    fn new(engine: Engine, mut setup: Box<Setup>, link: &Link, event_sender: EventSender) -> Self {
        let frame_sender = FrameSender::new(setup.session.as_str().into(), link.outgoing.clone(), link.stop.clone())
            .with_log(engine.log().clone());
        let (host_requests, tasks) = (HostRequests::new(frame_sender.clone()), TaskRegistry::for_session(event_sender.clone(), setup.background_policy));
        let hooks = build_hooks(&setup, &host_requests, &tasks, &frame_sender);
        let state_notifier = StateNotifier::new(frame_sender.clone(), setup.state_subscription);
        let engine = engine.with_key_source(KeyHelper::from_setup(&setup, &tasks));
        let config = setup.config_locations.user_dir.clone().filter(|_| !setup.is_ephemeral);
        Self {
            mcp: SessionMcp::start(&mut setup, (&host_requests, &frame_sender), &state_notifier, &hooks),
            hooks,
            runtime_settings: watch::Sender::new(setup.runtime_settings.clone()),
            host_requests,
            tasks,
            team: SessionTeam::new(event_sender.clone(), config, setup.session.clone(), setup.max_team_messages),
            event_sender,
            settings_writes: FifoLock::default(),
            model_switches: FifoLock::default(),
            state_notifier,
            agent: None,
            running_turn: None,
            context_meter: ContextMeter::default(),
            agent_handles: None,
            input_queue: InputQueue::default(),
            first_turn_started: false,
            warned_about_uuid: false,
            started_at: clock::monotonic(),
            result_count: 0,
            last_turn: None,
            setup_error: None,
            frame_sender,
            setup,
            engine,
        }
    }

    /// How the run stands, with what was posted and has not been taken in.
    fn activity(&self, input: HostInput, posts: &EventReceiver) -> Activity {
        // Who ends posts its news first and is counted no more afterwards. Looked at in the other order, news that comes
        // in between would be missed, and with it the reason to go on.
        let at_work = self.activity_without_events(input);
        Activity { input_pending: at_work.input_pending || !posts.is_empty(), ..at_work }
    }

    /// The same without what was posted.
    fn activity_without_events(&self, input: HostInput) -> Activity {
        Activity {
            input,
            turn_running: self.running_turn.is_some(),
            input_pending: self.input_queue.has_turn_input(),
            pending_requests: self.state_notifier.pending_requests(),
            running_agents: self.tasks.running_agents() + self.team.active_count(),
            running_commands: self.tasks.running_commands(),
        }
    }

    /// Whether a turn runs or waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.running_turn.is_some() || self.input_queue.has_turn_input()
    }

    /// Shows the host that a turn runs.
    async fn publish_turn_start(&mut self) {
        self.state_notifier.publish_turn_start(self.activity_without_events(HostInput::Open)).await;
    }

    /// Whether the session has begun: from then on its prompt and tools are fixed.
    pub(crate) fn has_begun(&self) -> bool {
        self.agent.is_some() || self.running_turn.is_some()
    }

    /// Takes in one line of the host.
    async fn handle_frame(&mut self, line: IncomingFrame) {
        if let Ok(frame) = &line {
            log_frame(self.engine.log(), "in", frame);
        }
        match line {
            Ok(Frame::User(user)) if user.message.role == Role::User => {
                self.input_queue.push(QueuedInput::Prompt(user));
            }
            Ok(Frame::User(_)) => self.send_wire_error("a \"user\" line must have the role \"user\"").await,
            Ok(Frame::ControlRequest(asked)) => {
                if let Some(response) = control::handle_request(self, asked.request_id, asked.request).await {
                    self.frame_sender.send(response).await;
                }
            }
            Ok(Frame::ControlResponse(answer)) => self.host_requests.handle_response(answer.response),
            Ok(Frame::EnvironmentUpdate(update)) => self.setup.workspace.set_variables(update.variables),
            Ok(Frame::KeepAlive(_) | Frame::ControlCancel(_) | Frame::Unknown(_)) => {}
            Ok(other) => {
                let error = WireError::NotForEngine { kind: other.kind().to_owned() };
                self.send_wire_error(&error.to_string()).await;
            }
            Err(error) => self.send_wire_error(&error.to_string()).await,
        }
    }

    async fn send_wire_error(&mut self, message: &str) {
        self.frame_sender.notify(WireErrorNotice { message: message.to_owned(), line: None }).await;
    }

    /// Takes in all that was posted by now.
    async fn handle_pending_events(&mut self, posts: &mut EventReceiver) {
        while let Ok(post) = posts.try_recv() {
            self.handle_event(post).await;
        }
    }

    /// Takes in what was posted from within.
    async fn handle_event(&mut self, post: InternalEvent) {
        match post {
            InternalEvent::Notification(news) => self.enqueue_notification(*news),
            InternalEvent::RecheckIdle => {}
            InternalEvent::Task(event) => {
                for notice in task_notifications::system_events(&event) {
                    self.frame_sender.notify(notice).await;
                }
                self.frame_sender.notify(notices::background_tasks(&self.tasks.running_in_background())).await;
                if let Some(news) = task_notifications::model_notification(&event) {
                    self.notify_task_owner(event.task_id(), news);
                }
            }
        }
    }

    /// Tells whoever started background work of it: a teammate that is there, or else the main agent.
    fn notify_task_owner(&mut self, task_id: &str, news: Notification) {
        let owner = self.tasks.owner(task_id);
        if let Some(text) = self.team.deliver_notification(owner.as_deref(), news.text) {
            self.enqueue_notification(Notification { text, ..news });
        }
    }

    /// Tells the model something, in a turn of its own if it is worth that. Once the host has been told that the budget is
    /// used up, news that nobody can answer do not tell it again and again.
    fn enqueue_notification(&mut self, news: Notification) {
        let wakes = news.starts_turn && !self.is_over_budget();
        self.input_queue.push(QueuedInput::Notification(Notification { starts_turn: wakes, ..news }));
    }

    /// Whether the host has been told that the budget is used up.
    fn is_over_budget(&self) -> bool {
        self.last_turn.as_ref().is_some_and(|turn| turn.outcome == Outcome::ErrorMaxBudgetUsd)
    }

    /// Interrupts the turn under way, if there is one. Its questions are taken back as it ends; what works beside it goes
    /// on, and its questions stay. A prompt that came just before is under way for whoever sent it: its turn begins, and
    /// ends like any that is interrupted.
    pub(crate) async fn interrupt(&mut self) {
        if self.is_turn_due() && self.input_queue.prompt_count() > 0 {
            Box::pin(self.start_next_turn()).await;
        }
        if let Some(running) = &self.running_turn {
            running.cancel.cancel();
        }
    }

    /// Stops at once: the turn winds up, its result goes out if the host still listens.
    async fn stop(&mut self) {
        self.input_queue.clear();
        self.host_requests.close();
        let Some(running) = &self.running_turn else { return };
        running.cancel.cancel();
        if let Ok(ended) = tokio::time::timeout(STOP_GRACE, wait_for_turn(&mut self.running_turn)).await {
            // The host may have stopped reading.
            let _ = tokio::time::timeout(STOP_GRACE, self.end_turn(ended)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_can_be_served_on_any_thread() {
        fn is_send<T: Send>(_: &T) {}
        let _ = |engine, link, start| is_send(&serve(engine, link, start));
    }
}
