//! How a turn begins: the session's first one with its hooks, then what the host is told, then the prompts, which hooks
//! may add to or stop.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational, Init};

use crate::agent::Agent;
use crate::context::mentioned_files;
use crate::context::sanitize::sanitize;
use crate::hooks::{MergedOutput, HookInputBuilder, join_reasons};
use crate::ids;
use crate::internal_events::Notification;
use crate::frame_sender::FrameSender;
use crate::input_queue::QueuedInput;
use crate::rewind;
use crate::turn::{self, TurnOutcome};
use crate::next_step::TurnEnd;

/// What a turn begins with.
pub(crate) struct TurnInput {
    /// How the session begins, if this is its first turn: `startup`, `resume`, ...
    pub(crate) session_start: Option<&'static str>,
    /// The notice that begins every turn.
    pub(crate) init: Init,
    /// What the host should know, if anything.
    pub(crate) warning: Option<String>,
    /// What is due.
    pub(crate) inputs: Vec<QueuedInput>,
    /// Whether the host sees its prompts again.
    pub(crate) prompt_replay: PromptReplay,
}

/// Whether a host sees its prompts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptReplay {
    /// It wants to.
    Enabled,
    /// It does not.
    Disabled,
}

/// What the host is told before the words of a command: in the order of a turn.
pub(crate) struct TurnNotices {
    /// The notice that begins every turn.
    pub(crate) init: Init,
    /// What the host should know.
    pub(crate) warnings: Vec<String>,
    /// The prompt that calls the command, if the host wants to see it again.
    pub(crate) replay: Option<User>,
}

impl TurnNotices {
    /// Tells the host.
    pub(crate) async fn send(self, outbox: &FrameSender) {
        outbox.notify(self.init).await;
        for warning in self.warnings {
            outbox.warn(warning).await;
        }
        if let Some(user) = self.replay {
            replay_prompt(outbox, user).await;
        }
    }
}

/// Opens a turn. An ending says that the model is not to be asked.
pub(crate) async fn start_turn(agent: &mut Agent, opening: TurnInput, cancel: &CancellationToken) -> Option<TurnOutcome> {
    let TurnInput { session_start: first, init, warning, inputs: dues, prompt_replay: echo } = opening;
    let stopped = run_session_start_hooks(agent, first, cancel).await;
    agent.frame_sender.notify(init).await;
    if let Some(warning) = warning {
        agent.frame_sender.warn(warning).await;
    }
    let mut refused = None;
    let mut heard = false;
    for due in dues {
        let asks = due.needs_reply();
        let taken = match due {
            QueuedInput::Notification(news) => submit_notification(agent, &news, cancel).await,
            QueuedInput::Prompt(user) => submit_prompt(agent, *user, echo, cancel).await,
        };
        match taken {
            Ok(()) => heard |= asks,
            Err(ending) => refused = Some(ending),
        }
    }
    if cancel.is_cancelled() {
        agent.conversation.push_synthetic(turn::INTERRUPTED_TEXT).await;
        return Some(TurnOutcome::new(TurnEnd::AbortedStreaming));
    }
    if stopped {
        return Some(TurnOutcome::new(TurnEnd::HookStopped));
    }
    refused.filter(|_| !heard)
}

/// Tells the hooks that the session begins, if it does, and the model what they say; true if a hook wants to stop there.
pub(crate) async fn run_session_start_hooks(agent: &mut Agent, first: Option<&str>, cancel: &CancellationToken) -> bool {
    let Some(source) = first else { return false };
    let model = agent.runtime_settings.current().model;
    let title = agent.conversation.transcript_writer().title();
    let told = |scene: &HookInputBuilder| scene.session_start(source, Some(&model), title);
    let said = agent.tool_env.checker.hooks.dispatch(HookEvent::SessionStart, told, cancel).await;
    turn::inject_hook_context(agent, &said.contexts);
    if let Some(title) = &said.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
    if let Some(text) = said.event_specific.initial_user_message {
        record_prompt(agent, &User { uuid: Some(ids::new_uuid()), ..User::prompt(text) });
    }
    said.stop.is_some()
}

/// Takes news in. What is worth a turn of its own is a prompt to hooks; what merely comes along with one is none.
async fn submit_notification(agent: &mut Agent, news: &Notification, cancel: &CancellationToken) -> Result<(), TurnOutcome> {
    if !news.starts_turn {
        agent.conversation.push_synthetic(&news.text).await;
        return Ok(());
    }
    let said = run_prompt_hooks(agent, PromptSource::Engine, &news.text, cancel).await?;
    if !said.event_specific.suppress_original_prompt || said.contexts.is_empty() {
        agent.conversation.push_synthetic(&news.text).await;
    }
    apply_hook_output(agent, &said).map_or(Ok(()), Err)
}

/// Takes a prompt in, if the hooks agree; if not, says how the turn ends.
async fn submit_prompt(
    agent: &mut Agent,
    mut user: User,
    echo: PromptReplay,
    cancel: &CancellationToken,
) -> Result<(), TurnOutcome> {
    user.uuid.get_or_insert_with(ids::new_uuid);
    let taken = accept_prompt(agent, &user, cancel).await;
    // First the transcript: what the host has seen can be resumed.
    agent.conversation.flush().await;
    if echo == PromptReplay::Enabled {
        replay_prompt(&agent.frame_sender, user).await;
    }
    taken
}

/// Puts a prompt into the conversation, with what it mentions, if the hooks agree.
pub(crate) async fn accept_prompt(agent: &mut Agent, user: &User, cancel: &CancellationToken) -> Result<(), TurnOutcome> {
    rewind::begin_checkpoint(&agent.tool_env.context.workspace, user.uuid.as_deref()).await;
    agent.conversation.begin_uncommitted();
    let text = user.message.content.joined_text();
    let said = run_host_prompt_hooks(agent, user.uuid.as_deref(), &text, cancel).await?;
    if user.client_composed != Some(true) {
        mentioned_files::attach_mentioned_files(agent, &text).await;
    }
    if !said.event_specific.suppress_original_prompt || said.contexts.is_empty() {
        let (content, warnings) = sanitize(&user.message.content);
        for warning in warnings {
            agent.frame_sender.warn(warning).await;
        }
        record_prompt_as(agent, user, &content);
    }
    apply_hook_output(agent, &said).map_or(Ok(()), Err)
}

/// Does what the hooks want that have heard of a prompt; an ending if they want to stop there.
fn apply_hook_output(agent: &mut Agent, said: &MergedOutput) -> Option<TurnOutcome> {
    if let Some(title) = &said.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
    turn::inject_hook_context(agent, &said.contexts);
    said.stop.as_ref().map(|_| TurnOutcome::new(TurnEnd::HookStopped))
}

/// Who says something that the model is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptSource {
    /// The host.
    Host,
    /// The engine: background work has ended, somebody has written, it is time for something.
    Engine,
}

impl PromptSource {
    /// The `source` that hooks are told.
    fn hook_source(self) -> &'static str {
        match self {
            Self::Host => "sdk",
            Self::Engine => "system",
        }
    }

    /// What the person reads if a hook objects.
    fn blocked_text(self, why: &str) -> String {
        match self {
            Self::Host => format!("A hook has stopped the prompt: {why}"),
            Self::Engine => format!("A hook has kept news from the model: {why}"),
        }
    }
}

/// Tells the hooks of a prompt of the host; an ending if they stop it.
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
    sender: PromptSource,
    text: &str,
    cancel: &CancellationToken,
) -> Result<MergedOutput, TurnOutcome> {
    let told = |scene: &HookInputBuilder| scene.user_prompt_submit(text, Some(sender.hook_source()));
    let said = agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptSubmit, told, cancel).await;
    // Nobody has agreed to a prompt whose hooks were stopped half way.
    if said.interrupted {
        return Err(TurnOutcome::new(TurnEnd::AbortedStreaming));
    }
    if said.blocked.is_empty() {
        return Ok(said);
    }
    let text = sender.blocked_text(&join_reasons(&said.blocked));
    let notice = Informational {
        content: text.clone(),
        level: InformationLevel::Warning,
        prevent_continuation: Some(true),
        ..Informational::default()
    };
    agent.frame_sender.notify(notice).await;
    Err(TurnOutcome { text, ..TurnOutcome::new(TurnEnd::Done) })
}

/// Puts a prompt into the conversation.
pub(crate) fn record_prompt(agent: &mut Agent, user: &User) {
    record_prompt_as(agent, user, &user.message.content);
}

fn record_prompt_as(agent: &mut Agent, user: &User, content: &Content) {
    let mode = agent.tool_env.checker.permissions.mode().to_string();
    agent.conversation.push_prompt(user.uuid.as_deref().unwrap_or_default(), content, &mode);
}

/// Shows a prompt to the host that sent it.
pub(crate) async fn replay_prompt(outbox: &FrameSender, user: User) {
    let session_id = outbox.session_id().to_owned();
    outbox.send(User { is_replay: Some(true), session_id, ..user }).await;
}
