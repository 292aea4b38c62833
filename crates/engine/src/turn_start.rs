//! Start of a turn: SessionStart hooks on the first one, the `init` frame, then prompts and notifications, which
//! hooks may extend or block.

pub(crate) mod mentioned_files;

use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_tools::hooks::{HookInputBuilder, MergedOutput, join_reasons};
use whimbrel_tools::internal_events::Notification;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational, Init};

use crate::agent::Agent;
use crate::agents::AgentSpawner;
use crate::context::invalid_blocks::sanitize;
use crate::input_queue::QueuedInput;
use crate::next_step::TurnEnd;
use crate::rewind;
use crate::turn::{self, TurnOutcome};

pub(crate) struct TurnInput {
    /// Start source (`startup`, `resume`, ...) if this is the session's first turn.
    pub(crate) session_start: Option<&'static str>,
    /// The frame that begins every turn.
    pub(crate) init: Init,
    /// A warning for the host, if there is one.
    pub(crate) warning: Option<String>,
    /// The queued prompts and notifications.
    pub(crate) inputs: Vec<QueuedInput>,
    pub(crate) prompt_replay: PromptReplay,
}

/// Whether the host gets its prompts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptReplay {
    Enabled,
    Disabled,
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
            Err(outcome) => rejection = Some(outcome),
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
    if stopped {
        return Some(TurnOutcome::new(TurnEnd::HookStopped));
    }
    rejection.filter(|_| !accepted)
}

/// Runs the SessionStart hooks on the first turn and adds their context; true if a hook stops the turn.
pub(crate) async fn run_session_start_hooks(
    agent: &mut Agent,
    session_start: Option<&str>,
    cancel: &CancellationToken,
) -> bool {
    let Some(source) = session_start else { return false };
    let model = agent.runtime_settings.current().model;
    let title = agent.conversation.transcript_writer().title();
    let build_input = |input: &HookInputBuilder| input.session_start(source, Some(&model), title);
    let output = agent.tool_env.checker.hooks.dispatch(HookEvent::SessionStart, build_input, cancel).await;
    agent.inject_hook_context(&output.contexts);
    if let Some(title) = &output.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
    if let Some(text) = output.event_specific.initial_user_message {
        record_prompt(agent, &User { uuid: Some(ids::new_uuid()), ..User::prompt(text) });
    }
    output.stop.is_some()
}

/// Submits a notification. One that starts a turn runs the prompt hooks; others are only recorded.
async fn submit_notification(
    agent: &mut Agent,
    notification: &Notification,
    cancel: &CancellationToken,
) -> Result<(), TurnOutcome> {
    if !notification.starts_turn {
        record_notification(agent, notification).await;
        return Ok(());
    }
    let output = run_prompt_hooks(agent, PromptSource::Engine, &notification.text, cancel).await?;
    if !output.event_specific.suppress_original_prompt || output.contexts.is_empty() {
        record_notification(agent, notification).await;
    }
    apply_hook_output(agent, &output).map_or(Ok(()), Err)
}

async fn record_notification(agent: &mut Agent, notification: &Notification) {
    agent.conversation.push_synthetic(&notification.text).await;
    let spawner = AgentSpawner::from_context(&agent.tool_env.context);
    if let (Some(agent_id), Some(spawner)) = (&notification.reporting_agent, spawner) {
        spawner.mark_reported(agent_id, agent.conversation.transcript_writer()).await;
    }
}

/// Submits a prompt to the hooks and records it; the error is the outcome of a blocked turn.
async fn submit_prompt(
    agent: &mut Agent,
    mut user: User,
    prompt_replay: PromptReplay,
    cancel: &CancellationToken,
) -> Result<(), TurnOutcome> {
    user.uuid.get_or_insert_with(ids::new_uuid);
    let result = accept_prompt(agent, &user, cancel).await;
    // Write the transcript first, so that everything the host has seen can be resumed.
    agent.conversation.flush().await;
    if prompt_replay == PromptReplay::Enabled {
        replay_prompt(&agent.frame_sender, user).await;
    }
    result
}

/// Records a prompt with the files it mentions, unless hooks block it.
pub(crate) async fn accept_prompt(
    agent: &mut Agent,
    user: &User,
    cancel: &CancellationToken,
) -> Result<(), TurnOutcome> {
    rewind::begin_checkpoint(&agent.tool_env.context.workspace, user.uuid.as_deref()).await;
    agent.conversation.begin_uncommitted();
    let text = user.message.content.joined_text();
    let output = run_host_prompt_hooks(agent, user.uuid.as_deref(), &text, cancel).await?;
    if user.client_composed != Some(true) {
        mentioned_files::attach_mentioned_files(agent, &text).await;
    }
    if !output.event_specific.suppress_original_prompt || output.contexts.is_empty() {
        let (content, warnings) = sanitize(&user.message.content);
        for warning in warnings {
            agent.frame_sender.warn(warning).await;
        }
        record_prompt_as(agent, user, &content);
    }
    apply_hook_output(agent, &output).map_or(Ok(()), Err)
}

/// Applies the output of the prompt hooks; returns an outcome if they stop the turn.
fn apply_hook_output(agent: &mut Agent, output: &MergedOutput) -> Option<TurnOutcome> {
    if let Some(title) = &output.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
    agent.inject_hook_context(&output.contexts);
    output.stop.as_ref().map(|_| TurnOutcome::new(TurnEnd::HookStopped))
}

/// Source of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptSource {
    Host,
    /// The engine: background work ended, a message arrived, or a timer fired.
    Engine,
}

impl PromptSource {
    /// The `source` field of the hook input.
    fn hook_source(self) -> &'static str {
        match self {
            Self::Host => "sdk",
            Self::Engine => "system",
        }
    }

    /// The notice shown when a hook blocks it.
    fn blocked_text(self, reason: &str) -> String {
        match self {
            Self::Host => format!("A hook blocked the prompt: {reason}"),
            Self::Engine => format!("A hook blocked a notification: {reason}"),
        }
    }
}

/// Runs the prompt hooks for a prompt of the host; the error is the outcome if they block it.
pub(crate) async fn run_host_prompt_hooks(
    agent: &mut Agent,
    uuid: Option<&str>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<MergedOutput, TurnOutcome> {
    agent.tool_env.checker.hooks.set_prompt(uuid);
    run_prompt_hooks(agent, PromptSource::Host, text, cancel).await
}

async fn run_prompt_hooks(
    agent: &mut Agent,
    source: PromptSource,
    text: &str,
    cancel: &CancellationToken,
) -> Result<MergedOutput, TurnOutcome> {
    let build_input = |input: &HookInputBuilder| input.user_prompt_submit(text, Some(source.hook_source()));
    let output =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptSubmit, build_input, cancel).await;
    // Interrupted hooks have not approved the prompt.
    if output.interrupted {
        return Err(TurnOutcome::new(TurnEnd::AbortedStreaming));
    }
    if output.blocked.is_empty() {
        return Ok(output);
    }
    let text = source.blocked_text(&join_reasons(&output.blocked));
    let notice = Informational {
        content: text.clone(),
        level: InformationLevel::Warning,
        prevent_continuation: Some(true),
        ..Informational::default()
    };
    agent.frame_sender.notify(notice).await;
    Err(TurnOutcome { text, ..TurnOutcome::new(TurnEnd::Done) })
}

pub(crate) fn record_prompt(agent: &mut Agent, user: &User) {
    record_prompt_as(agent, user, &user.message.content);
}

fn record_prompt_as(agent: &mut Agent, user: &User, content: &Content) {
    let mode = agent.tool_env.checker.permissions.mode().to_string();
    agent.conversation.push_prompt(user.uuid.as_deref().unwrap_or_default(), content, &mode);
}

/// Sends a prompt back to the host.
pub(crate) async fn replay_prompt(frame_sender: &FrameSender, user: User) {
    let session_id = frame_sender.session_id().to_string();
    frame_sender.send(User { is_replay: Some(true), session_id, ..user }).await;
}
