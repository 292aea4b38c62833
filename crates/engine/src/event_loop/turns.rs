//! Starts and ends the turns of a session. Queued input becomes a turn or the work of a command, runs concurrently
//! with the event loop, and ends with a result frame.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_os::{clock, files, ids};
use whimbrel_session_store::ResumedSession;
use whimbrel_wire::message::Origin;

use super::mcp::startup_wait::{StartupBarrier, wait_for_servers};
use super::{STOP_GRACE, Session, TurnSummary};
use crate::agent::Agent;
use crate::command_runner::{self, CommandJob};
use crate::context::stale_files;
use crate::conversation::{self, FirstMessage};
use crate::event_loop::control::AgentHandles;
use crate::file_checkpoints;
use crate::input_queue::{PromptReplay, QueuedInput, TurnBatch};
use crate::next_step::TurnEnd;
use crate::prompt_submission;
use crate::setup::session_selection;
use crate::steering::{SteeringRequest, SteeringSource};
use crate::turn::{self, TurnOutcome};
use crate::turn_result::{ResultInput, build_result};
use crate::turn_start::{self, PendingCallsInput, SessionStart, TurnInput, TurnNotices};
use crate::turn_telemetry::TurnTelemetry;

pub(super) struct RunningTurn {
    future: BoxFuture<'static, (Box<Agent>, Box<TurnOutcome>)>,
    pub(super) cancel: CancellationToken,
    steering: mpsc::Receiver<SteeringRequest>,
    started_at: std::time::Instant,
    origin: Option<Origin>,
    /// Whether it answers a prompt.
    has_prompt: bool,
    first_message: FirstMessage,
}

/// What the running turn tells the event loop.
pub(super) enum TurnSignal {
    Ended((Box<Agent>, Box<TurnOutcome>)),
    /// It waits for prompts that may come in now.
    PromptsRequested(SteeringRequest),
}

/// The work of a turn.
pub(super) enum TurnWork {
    /// A model turn.
    Turn(Box<TurnInput>),
    /// Calls of the last reply that never started, and the rest of their turn.
    PendingCalls(Box<PendingCallsInput>),
    /// A slash command.
    Command {
        job: CommandJob,
        /// Frames to send first.
        notices: Box<TurnNotices>,
        /// Set on the session's first turn.
        session_start: Option<SessionStart>,
    },
}

/// Waits for a signal of the running turn; never returns if there is none.
pub(super) async fn wait_for_turn(running: &mut Option<RunningTurn>) -> TurnSignal {
    let Some(running) = running else { return std::future::pending().await };
    tokio::select! {
        biased;
        Some(request) = running.steering.recv() => TurnSignal::PromptsRequested(request),
        ended = &mut running.future => TurnSignal::Ended(ended),
    }
}

/// Waits for the end of the running turn; no prompt comes in any more.
pub(super) async fn wait_for_turn_end(running: &mut Option<RunningTurn>) -> (Box<Agent>, Box<TurnOutcome>) {
    loop {
        match wait_for_turn(running).await {
            TurnSignal::Ended(ended) => return ended,
            TurnSignal::PromptsRequested(request) => request.reply(Vec::new()),
        }
    }
}

impl TurnWork {
    fn has_prompt(&self) -> bool {
        match self {
            Self::Turn(input) => input.inputs.iter().any(|input| matches!(input, QueuedInput::Prompt(_))),
            Self::Command { .. } => true,
            Self::PendingCalls(_) => false,
        }
    }
}

/// The origin of a turn: as the host stated it with the first prompt that has one, or that of the notification which
/// started a turn without prompts.
fn turn_origin(inputs: &[QueuedInput]) -> Option<Origin> {
    let prompts = inputs.iter().filter_map(|input| match input {
        QueuedInput::Prompt(user) => Some(user.origin.clone()),
        QueuedInput::Notification(_) => None,
    });
    let prompt_origins: Vec<Option<Origin>> = prompts.collect();
    if !prompt_origins.is_empty() {
        return prompt_origins.into_iter().flatten().next();
    }
    inputs.iter().find_map(|input| match input {
        QueuedInput::Notification(notification) if notification.starts_turn => {
            Some(notification.origin.clone())
        }
        QueuedInput::Notification(_) | QueuedInput::Prompt(_) => None,
    })
}

impl Session {
    /// Returns whether input waits and no turn runs.
    pub(super) fn is_turn_due(&self) -> bool {
        self.main_agent.running_turn.is_none() && self.input_queue.has_turn_input()
    }

    /// Starts a turn with everything that is queued before the next command.
    pub(super) async fn start_next_turn(&mut self) {
        self.complete_setup();
        if self.setup_error.is_some() {
            return;
        }
        let Some(mut batch) = self.input_queue.take_batch(&self.setup.commands) else { return };
        let mut agent = self.take_main_agent().await;
        let prompts = batch.prompts_mut();
        self.main_agent.prompt_ids = prompts.iter().filter_map(|user| user.uuid.clone()).collect();
        let warnings = prompts.into_iter().filter_map(|user| agent.conversation.assign_prompt_uuid(user));
        self.add_warnings(warnings.map(str::to_owned).collect());
        if let Some(title) = self.setup.session.title.take() {
            agent.conversation.transcript_writer().set_title(&title);
        }
        self.attach_main_agent(&mut agent);
        if let Some(changed) = stale_files::render_changes(&self.setup.session.workspace) {
            agent.conversation.push_hidden(&changed);
        }
        match batch {
            TurnBatch::Inputs(inputs) => self.start_turn(agent, inputs).await,
            TurnBatch::Command { invocation, prompt } => {
                self.start_command(agent, invocation, *prompt).await;
            }
        }
    }

    /// Takes the main agent while no turn runs. The first time, it is built.
    pub(super) async fn take_main_agent(&mut self) -> Box<Agent> {
        if let Some(agent) = self.main_agent.idle.take() {
            return agent;
        }
        let resumed = self.setup.session.resumed.take().map(|resumed| *resumed);
        let mut agent = self.build_main_agent(resumed);
        if self.setup.session.origin != session_selection::SessionOrigin::New
            && let Some(reminder) = self.team.previous_team_reminder().await
        {
            agent.conversation.push_hidden(&reminder);
        }
        agent
    }

    /// Makes the conversation as it is now available to a question beside it. While a turn runs, the turn does that. A
    /// resumed session gets its agent for it.
    pub(super) async fn prepare_side_question(&mut self) {
        if self.main_agent.idle.is_none() && self.setup.session.resumed.is_some() {
            self.complete_setup();
            if self.setup_error.is_some() {
                return;
            }
            let mut agent = self.take_main_agent().await;
            self.attach_main_agent(&mut agent);
            self.main_agent.idle = Some(agent);
        }
        if let Some(agent) = &self.main_agent.idle {
            agent.record_view();
        }
    }

    pub(super) fn build_main_agent(&self, resumed: Option<ResumedSession>) -> Box<Agent> {
        Box::new(self.build_agent_spawner().build_main(self.system_prompt(), resumed))
    }

    /// Makes the agent's state available to control requests, and its skills up to date.
    pub(super) fn attach_main_agent(&mut self, agent: &mut Agent) {
        self.main_agent.context_meter = agent.conversation.context_meter().clone();
        self.main_agent.handles = Some(AgentHandles::for_agent(agent));
        self.refresh_skills(agent);
        agent.inject_nested_instructions();
        self.refresh_output_schema(agent);
    }

    pub(super) async fn start_turn(&mut self, mut agent: Box<Agent>, inputs: Vec<QueuedInput>) {
        let prompt_replay = self.prompt_replay();
        if !inputs.iter().any(QueuedInput::needs_reply) {
            self.main_agent.prompt_ids.clear();
            let (prompts, notification): (Vec<QueuedInput>, Vec<QueuedInput>) =
                inputs.into_iter().partition(|input| matches!(input, QueuedInput::Prompt(_)));
            for input in prompts {
                if let QueuedInput::Prompt(user) = input {
                    let user = *user;
                    file_checkpoints::begin_checkpoint(&self.setup.session.workspace, user.uuid.as_deref())
                        .await;
                    prompt_submission::record_prompt(&mut agent, &user);
                    if prompt_replay == PromptReplay::Enabled {
                        conversation::replay_prompt(&self.host.frame_sender, user).await;
                    }
                }
            }
            // Notifications that were not delivered to the model stay queued.
            notification.into_iter().rev().for_each(|input| self.input_queue.push_front(input));
            self.main_agent.idle = Some(agent);
            return;
        }
        self.publish_turn_start().await;
        let origin = turn_origin(&inputs);
        let session_start = self.session_start();
        let (init, warning) = (self.build_init(), self.setup.host.warning.take());
        let turn_input = TurnInput { session_start, init, warning, inputs, prompt_replay };
        self.start_work(agent, TurnWork::Turn(Box::new(turn_input)), origin);
    }

    /// Starts a turn, or the work of a command, as a future that the event loop polls.
    pub(super) fn start_work(&mut self, mut agent: Box<Agent>, work: TurnWork, origin: Option<Origin>) {
        agent.record_view();
        agent.ledger.begin_turn();
        agent.tool_env.checker.hooks.begin_turn();
        let first_message = agent.conversation.begin_turn(self.main_agent.prompt_ids.clone());
        let cancel = CancellationToken::new();
        Arc::make_mut(&mut agent.tool_env).context.cancel = cancel.clone();
        let (source, steering) = SteeringSource::new(self.prompt_replay());
        agent.steering = Some(source);
        let has_prompt = work.has_prompt();
        let token = cancel.clone();
        let barrier = self.mcp.startup_barrier(&self.setup.commands, &work);
        let telemetry =
            TurnTelemetry::for_prompts(&agent, &self.setup.host.prompt_spans, &self.main_agent.prompt_ids);
        // The outcome is boxed so that the future does not reserve space for it.
        let turn = async move {
            let work = wait_for_servers(barrier.as_ref(), &mut agent, work, &token).await;
            let outcome = match work {
                TurnWork::Turn(input) => {
                    let ended =
                        Box::pin(turn_start::start_turn(&mut agent, *input, &token)).await.map(Box::new);
                    barrier.iter().for_each(StartupBarrier::mark_announced);
                    match ended {
                        Some(outcome) => {
                            agent.conversation.end_turn().await;
                            outcome
                        }
                        None => {
                            let outcome = Box::new(turn::run(&mut agent, &token).await);
                            // The cost of agents that were stopped with the turn belongs in its result.
                            agent.tool_env.context.tasks.wait_for_stopped(STOP_GRACE).await;
                            outcome
                        }
                    }
                }
                TurnWork::PendingCalls(input) => {
                    let outcome = Box::pin(turn_start::run_pending_calls(&mut agent, *input, &token)).await;
                    agent.tool_env.context.tasks.wait_for_stopped(STOP_GRACE).await;
                    Box::new(outcome)
                }
                TurnWork::Command { job, notices, session_start } => {
                    match turn_start::run_session_start_hooks(&mut agent, session_start, &token).await {
                        true => {
                            Box::pin(notices.send(&agent.frame_sender)).await;
                            Box::new(TurnOutcome::new(TurnEnd::HookStopped))
                        }
                        false => {
                            Box::new(Box::pin(command_runner::run(&mut agent, job, *notices, &token)).await)
                        }
                    }
                }
            };
            barrier.iter().for_each(StartupBarrier::mark_announced);
            (agent, outcome)
        };
        let turn = Box::pin(async move {
            let (agent, outcome) = telemetry.run(turn).await;
            telemetry.record_end(&agent, &outcome);
            (agent, outcome)
        });
        let started_at = clock::monotonic();
        self.main_agent.running_turn = Some(RunningTurn {
            future: turn,
            cancel,
            steering,
            started_at,
            origin,
            has_prompt,
            first_message,
        });
    }

    /// Gives the running turn the prompts that may come in now. Its result answers them, too.
    pub(super) fn give_prompts(&mut self, request: SteeringRequest) {
        let Some(running) = &mut self.main_agent.running_turn else { return };
        // Prompts that arrive with an interrupt start the next turn.
        if running.cancel.is_cancelled() {
            return request.reply(Vec::new());
        }
        let prompts = self.input_queue.take_for_running_turn(&self.setup.commands, request.point);
        if !prompts.is_empty() && !running.has_prompt {
            (running.has_prompt, running.origin) = (true, None);
        }
        let stated_origin = || prompts.iter().find_map(|user| user.origin.clone());
        running.origin = running.origin.take().or_else(stated_origin);
        self.main_agent.prompt_ids.extend(prompts.iter().filter_map(|user| user.uuid.clone()));
        request.reply(prompts);
    }

    /// Interrupts the running turn, if there is one.
    pub(super) fn interrupt_running_turn(&self) {
        if let Some(running) = &self.main_agent.running_turn {
            running.cancel.cancel();
        }
    }

    /// The prompts that the running turn answers, as long as the host has seen nothing of it.
    pub(super) fn unseen_prompts(&self) -> Vec<String> {
        match &self.main_agent.running_turn {
            Some(running) if !running.first_message.was_sent() => self.main_agent.prompt_ids.clone(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Start of the session on the first call; `None` later.
    pub(super) fn session_start(&mut self) -> Option<SessionStart> {
        (!std::mem::replace(&mut self.progress.first_turn_started, true)).then(|| SessionStart {
            source: self.setup.session.origin.name(),
            setup_hooks: self.setup.hooks.setup_hooks,
        })
    }

    /// Returns whether prompts are replayed to the host.
    pub(super) fn prompt_replay(&self) -> PromptReplay {
        if self.setup.host.replay_user_messages { PromptReplay::Enabled } else { PromptReplay::Disabled }
    }

    /// Ends a turn: sends its result and takes the agent back.
    pub(super) async fn end_turn(&mut self, (mut agent, outcome): (Box<Agent>, Box<TurnOutcome>)) {
        let Some(running) = self.main_agent.running_turn.take() else { return };
        agent.steering = None;
        let spend = agent.ledger.snapshot();
        if spend.turn_api_time > Duration::ZERO {
            let lines = self.setup.session.workspace.changed_lines();
            let cost = spend.to_cost_state(&self.setup.session.id, lines);
            agent.conversation.record_cost(&cost).await;
        }
        let result = build_result(ResultInput {
            outcome: *outcome,
            spend: &spend,
            denials: agent.denials.take_all(),
            duration: clock::monotonic() - running.started_at,
            origin: running.origin,
            prompt_ids: std::mem::take(&mut self.main_agent.prompt_ids),
            limits: &agent.limits,
            index: self.progress.result_count,
            queued: self.input_queue.prompt_count(),
            session_id: self.host.frame_sender.session_id().to_string(),
            uuid: ids::new_uuid(),
        });
        self.progress.result_count += 1;
        // Overrides by skills and commands last for one turn.
        self.setup.permissions.state.clear_turn_rules();
        agent.runtime_settings.clear_overrides();
        file_checkpoints::warn_about_losses(&self.setup.session.workspace, &self.host.frame_sender).await;
        self.team.flush().await;
        // The user works in the folder now.
        let sandbox = Arc::clone(self.setup.session.workspace.sandbox());
        let _ = files::run_blocking(move || sandbox.uncover()).await;
        self.main_agent.idle = Some(agent);
        self.progress.last_turn = Some(TurnSummary::from(&result));
        if self.is_over_budget() {
            self.input_queue.defer_notifications();
        }
        // The result is sent even if the session is being stopped; `stop` limits how long that may take.
        self.host.frame_sender.send_final(result).await;
    }
}
