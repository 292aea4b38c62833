//! Start of a turn: Setup and SessionStart hooks on the first one, the `init` frame, then prompts and notifications, which
//! hooks may extend or block (`prompt_submission`).

use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_session_store::load::LoadedConversation;
use whimbrel_tools::hooks::{HookDispatcher, HookInputBuilder, MergedOutput};
use whimbrel_tools::internal_events::Notification;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::hook::{HookEvent, Setup};
use whimbrel_wire::message::User;
use whimbrel_wire::options::SetupHooks;
use whimbrel_wire::system::Init;

use crate::agent::Agent;
use crate::agents::AgentSpawner;
use crate::conversation::replay_prompt;
use crate::input_queue::{PromptReplay, QueuedInput};
use crate::next_step::TurnEnd;
use crate::prompt_submission::{
    PromptSource, SubmissionError, apply_hook_output, record_prompt, run_prompt_hooks, submit_prompt,
};
use crate::turn::{self, TurnOutcome};

/// Start of a session: what its hooks are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionStart {
    /// `startup`, `resume`, `fork` or `clear`.
    pub(crate) source: &'static str,
    /// The `Setup` hooks that run before.
    pub(crate) setup_hooks: Option<SetupHooks>,
}

pub(crate) struct TurnInput {
    /// Set on the session's first turn.
    pub(crate) session_start: Option<SessionStart>,
    /// The frame that begins every turn.
    pub(crate) init: Init,
    /// A warning for the host, if there is one.
    pub(crate) warning: Option<String>,
    /// The queued prompts and notifications.
    pub(crate) inputs: Vec<QueuedInput>,
    pub(crate) prompt_replay: PromptReplay,
}

pub(crate) struct PendingCallsInput {
    /// Set on the session's first turn.
    pub(crate) session_start: Option<SessionStart>,
    pub(crate) init: Init,
    pub(crate) warning: Option<String>,
    /// The conversation with the open calls of its last reply.
    pub(crate) loaded: LoadedConversation,
}

/// Frames sent before the output of a command, in the order of a turn.
pub(crate) struct TurnNotices {
    /// The frame that begins every turn.
    pub(crate) init: Init,
    pub(crate) warnings: Vec<String>,
    /// The prompt that invokes the command, if prompts are replayed.
    pub(crate) replay: Option<User>,
}

impl TurnNotices {
    pub(crate) async fn send(self, frame_sender: &FrameSender) {
        frame_sender.notify(self.init).await;
        for warning in self.warnings {
            frame_sender.warn(warning).await;
        }
        if let Some(user) = self.replay {
            replay_prompt(frame_sender, user).await;
        }
    }
}

/// Starts a turn. Returns an outcome if the model is not to be called.
pub(crate) async fn start_turn(
    agent: &mut Agent,
    turn_input: TurnInput,
    cancel: &CancellationToken,
) -> Option<TurnOutcome> {
    let TurnInput { session_start, init, warning, inputs, prompt_replay } = turn_input;
    let stopped = run_session_start_hooks(agent, session_start, cancel).await;
    agent.frame_sender.notify(init).await;
    if let Some(warning) = warning {
        agent.frame_sender.warn(warning).await;
    }
    let mut rejection = None;
    let mut accepted = false;
    for input in inputs {
        let needs_reply = input.needs_reply();
        let result = match input {
            QueuedInput::Notification(notification) => {
                submit_notification(agent, &notification, cancel).await
            }
            QueuedInput::Prompt(user) => submit_prompt(agent, *user, prompt_replay, cancel).await,
        };
        match result {
            Ok(()) => accepted |= needs_reply,
            Err(error) => rejection = Some(error),
        }
    }
    if accepted && let Some(spawner) = AgentSpawner::from_context(&agent.tool_env.context) {
        // The reminder about lost agents is written with the first message.
        spawner.confirm_lost_reminder(agent.conversation.transcript_writer()).await;
    }
    if cancel.is_cancelled() {
        agent.conversation.push_synthetic(turn::INTERRUPTED_TEXT).await;
        return Some(TurnOutcome::new(TurnEnd::AbortedStreaming));
    }
    if agent.conversation.transcript_writer().has_conflict() {
        return Some(TurnOutcome::new(TurnEnd::Conflict));
    }
    if stopped {
        return Some(TurnOutcome::new(TurnEnd::HookStopped));
    }
    rejection.filter(|_| !accepted).map(TurnOutcome::from)
}

/// Runs the calls of the last reply that never started, and then the rest of their turn.
pub(crate) async fn run_pending_calls(
    agent: &mut Agent,
    input: PendingCallsInput,
    cancel: &CancellationToken,
) -> TurnOutcome {
    let PendingCallsInput { session_start, init, warning, mut loaded } = input;
    let output = dispatch_session_start(agent, session_start, cancel).await;
    agent.frame_sender.notify(init).await;
    if let Some(warning) = warning {
        agent.frame_sender.warn(warning).await;
    }
    if let Some(output) = &output {
        apply_session_start(agent, output);
    }
    let end = match output.is_some_and(|output| output.stop.is_some()) {
        true => Some(TurnEnd::HookStopped),
        false => cancel.is_cancelled().then_some(TurnEnd::AbortedStreaming),
    };
    if let Some(end) = end {
        agent.conversation.end_turn().await;
        return TurnOutcome::new(end);
    }
    let calls = std::mem::take(&mut loaded.open_calls);
    let held = agent.conversation.reopen_calls(loaded);
    turn::run_open_calls(agent, calls, held, cancel).await
}

/// Runs the Setup and SessionStart hooks on the first turn and adds their context; true if a hook stops the turn.
pub(crate) async fn run_session_start_hooks(
    agent: &mut Agent,
    session_start: Option<SessionStart>,
    cancel: &CancellationToken,
) -> bool {
    let Some(output) = dispatch_session_start(agent, session_start, cancel).await else { return false };
    apply_session_start(agent, &output);
    if let Some(text) = output.event_specific.initial_user_message {
        record_prompt(agent, &User { uuid: Some(ids::new_uuid()), ..User::prompt(text) });
    }
    output.stop.is_some()
}

/// Runs the Setup and SessionStart hooks on the first turn.
async fn dispatch_session_start(
    agent: &mut Agent,
    session_start: Option<SessionStart>,
    cancel: &CancellationToken,
) -> Option<MergedOutput> {
    let SessionStart { source, setup_hooks } = session_start?;
    let mut stop = None;
    if let Some(hooks) = setup_hooks {
        let output = run_setup_hooks(&agent.tool_env.checker.hooks, hooks, cancel).await;
        agent.inject_hook_context(&output.contexts);
        stop = output.stop;
    }
    let model = agent.runtime_settings.current().model;
    let title = agent.conversation.transcript_writer().title();
    let build_input = |input: &HookInputBuilder| input.session_start(source, Some(&model), title);
    let mut output =
        agent.tool_env.checker.hooks.dispatch(HookEvent::SessionStart, build_input, cancel).await;
    output.stop = stop.or(output.stop);
    Some(output)
}

/// Runs the Setup hooks.
pub(crate) async fn run_setup_hooks(
    hooks: &HookDispatcher,
    setup_hooks: SetupHooks,
    cancel: &CancellationToken,
) -> MergedOutput {
    let build_input =
        |input: &HookInputBuilder| input.build(Setup { trigger: setup_hooks.trigger().to_owned() });
    hooks.dispatch(HookEvent::Setup, build_input, cancel).await
}

/// Applies context and title of the SessionStart hooks.
fn apply_session_start(agent: &mut Agent, output: &MergedOutput) {
    agent.inject_hook_context(&output.contexts);
    if let Some(title) = &output.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
}

/// Submits a notification. One that starts a turn runs the prompt hooks; others are only recorded.
async fn submit_notification(
    agent: &mut Agent,
    notification: &Notification,
    cancel: &CancellationToken,
) -> Result<(), SubmissionError> {
    if !notification.starts_turn {
        record_notification(agent, notification).await;
        return Ok(());
    }
    let output = run_prompt_hooks(agent, PromptSource::Engine, &notification.text, cancel).await?;
    if !output.event_specific.suppress_original_prompt || output.contexts.is_empty() {
        record_notification(agent, notification).await;
    }
    apply_hook_output(agent, &output)
}

async fn record_notification(agent: &mut Agent, notification: &Notification) {
    agent.conversation.push_synthetic(&notification.text).await;
    let spawner = AgentSpawner::from_context(&agent.tool_env.context);
    if let (Some(agent_id), Some(spawner)) = (&notification.reporting_agent, spawner) {
        spawner.mark_reported(agent_id, agent.conversation.transcript_writer()).await;
    }
}
