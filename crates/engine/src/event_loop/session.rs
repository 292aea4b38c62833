//! State of a running session and its parts.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;
use whimbrel_os::clock;
use whimbrel_tools::hooks::HookDispatcher;
use whimbrel_tools::internal_events::EventSender;
use whimbrel_tools::live_output::LiveOutput;
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_transport::link::Link;

use super::TurnSummary;
use super::build_parts::build_hooks;
use super::control::AgentHandles;
use super::mcp::SessionMcp;
use super::turns::RunningTurn;
use super::withdrawable_requests::WithdrawableRequests;
use crate::agent::Agent;
use crate::agents::team::SessionTeam;
use crate::context::usage::ContextMeter;
use crate::engine::Engine;
use crate::fifo_lock::FifoLock;
use crate::input_queue::InputQueue;
use crate::key_helper::KeyHelper;
use crate::runtime_settings::RuntimeSettingsWriter;
use crate::sandbox_questions::SandboxQuestions;
use crate::setup::{Setup, SetupError};
use crate::state_notifier::StateNotifier;

/// State of a running session, owned by the event loop.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) setup: Box<Setup>,
    pub(crate) host: HostConnection,
    pub(crate) settings: SettingsState,
    pub(crate) tasks: TaskRegistry,
    pub(crate) mcp: SessionMcp,
    pub(crate) hooks: HookDispatcher,
    pub(super) team: SessionTeam,
    pub(super) event_sender: EventSender,
    pub(crate) main_agent: MainAgentState,
    pub(crate) input_queue: InputQueue,
    pub(crate) progress: SessionProgress,
    pub(crate) withdrawable_requests: WithdrawableRequests,
    /// Set if `initialize` or `--agent` asked for something unavailable: the session must not continue without it.
    pub(crate) setup_error: Option<SetupError>,
    /// Set if the last `initialize` was refused, until another one is accepted. No turn may start meanwhile.
    pub(crate) refused_initialize: Option<SetupError>,
    /// Asks the host about hosts that confined commands want to reach.
    pub(super) sandbox_questions: Option<Arc<SandboxQuestions>>,
}

/// Frames, requests and state changes to the host.
pub(crate) struct HostConnection {
    pub(crate) frame_sender: FrameSender,
    pub(crate) requests: HostRequests,
    pub(super) state_notifier: StateNotifier,
}

/// Settings that change while the session runs.
pub(crate) struct SettingsState {
    pub(crate) runtime: RuntimeSettingsWriter,
    /// Serializes writes of settings files.
    pub(crate) file_writes: FifoLock,
    /// Serializes model switches.
    pub(crate) model_switches: FifoLock,
}

/// The main agent and its turn.
#[derive(Default)]
pub(crate) struct MainAgentState {
    /// The agent while no turn owns it. Created with the first turn, so that `initialize` can still change its
    /// configuration.
    pub(super) idle: Option<Box<Agent>>,
    pub(super) running_turn: Option<RunningTurn>,
    /// Uuids that the host gave the prompts of the running turn.
    pub(super) prompt_ids: Vec<String>,
    /// Handles to the agent that work while a turn owns it.
    pub(crate) handles: Option<AgentHandles>,
    pub(super) context_meter: ContextMeter,
}

/// What has happened in the session so far.
pub(crate) struct SessionProgress {
    pub(crate) started_at: std::time::Instant,
    pub(super) first_turn_started: bool,
    pub(super) result_count: u32,
    pub(super) last_turn: Option<TurnSummary>,
    /// Tasks that dropped messages started: the model no longer knows of them.
    pub(super) dropped_tasks: HashSet<String>,
}

impl Session {
    pub(super) fn new(engine: Engine, mut setup: Box<Setup>, link: &Link, event_sender: EventSender) -> Self {
        let frame_sender =
            FrameSender::new(setup.session.id.as_str().into(), link.outgoing.clone(), link.stop.clone())
                .with_log(engine.log().clone());
        let requests = HostRequests::new(frame_sender.clone()).with_details(setup.host.sends_details);
        let live_output = LiveOutput::new(frame_sender.clone());
        let tasks =
            TaskRegistry::for_session(event_sender.clone(), setup.host.background_policy, live_output);
        let hooks = build_hooks(&setup, &requests, &tasks, &frame_sender);
        let state_notifier = StateNotifier::new(frame_sender.clone(), setup.host.state_subscription);
        let engine = engine.with_key_source(KeyHelper::from_setup(&setup, &tasks));
        let user_dir = setup.config_locations.user_dir.clone().filter(|_| !setup.session.is_ephemeral);
        let (id, max_messages) = (setup.session.id.clone(), setup.agents.max_team_messages);
        let mut session = Self {
            mcp: SessionMcp::start(&mut setup, (&requests, &frame_sender), &state_notifier, &hooks),
            hooks,
            tasks,
            team: SessionTeam::new(event_sender.clone(), user_dir, id, max_messages),
            event_sender,
            host: HostConnection { frame_sender, requests, state_notifier },
            settings: SettingsState {
                runtime: watch::Sender::new(setup.models.runtime_settings.clone()),
                file_writes: FifoLock::default(),
                model_switches: FifoLock::default(),
            },
            main_agent: MainAgentState::default(),
            input_queue: InputQueue::default(),
            progress: SessionProgress {
                started_at: clock::monotonic(),
                first_turn_started: false,
                result_count: 0,
                last_turn: None,
                dropped_tasks: HashSet::new(),
            },
            withdrawable_requests: WithdrawableRequests::default(),
            setup_error: None,
            refused_initialize: None,
            sandbox_questions: None,
            setup,
            engine,
        };
        session.answer_sandbox_questions();
        session
    }
}
