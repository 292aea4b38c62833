//! Submits prompts to the hooks, which may extend or block them, and records them in the conversation: at the start of
//! a turn, while it runs, or for a command.

pub(crate) mod mentioned_files;

use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_tools::hooks::{HookInputBuilder, MergedOutput, join_reasons};
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational};

use crate::agent::Agent;
use crate::context::prompt_sanitizer::sanitize;
use crate::file_checkpoints;
use crate::input_queue::PromptReplay;

/// Reason why a prompt does not lead to a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubmissionError {
    /// Interrupted hooks have not approved the prompt.
    Interrupted,
    /// A hook blocked it; the notice that the host got.
    Blocked(String),
    /// A hook ends the turn.
    Stopped,
}

/// Source of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptSource {
    Host,
    /// The engine: background work ended, a message arrived, or a timer fired.
    Engine,
}

/// Submits a prompt to the hooks and records it; sends it back to the host if it wants that.
pub(crate) async fn submit_prompt(
    agent: &mut Agent,
    mut user: User,
    prompt_replay: PromptReplay,
    cancel: &CancellationToken,
) -> Result<(), SubmissionError> {
    user.uuid.get_or_insert_with(ids::new_uuid);
    let result = accept_prompt(agent, &user, cancel).await;
    // Write the transcript first, so that everything the host has seen can be resumed.
    agent.conversation.flush().await;
    if prompt_replay == PromptReplay::Enabled {
        agent.conversation.queue_replay(user);
    }
    result
}

/// Records a prompt with the files it mentions, unless hooks block it.
pub(crate) async fn accept_prompt(
    agent: &mut Agent,
    user: &User,
    cancel: &CancellationToken,
) -> Result<(), SubmissionError> {
    file_checkpoints::begin_checkpoint(&agent.tool_env.context.workspace, user.uuid.as_deref()).await;
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
    apply_hook_output(agent, &output)
}

/// Applies the output of the prompt hooks after the prompt was recorded.
pub(crate) fn apply_hook_output(agent: &mut Agent, output: &MergedOutput) -> Result<(), SubmissionError> {
    if let Some(title) = &output.event_specific.session_title {
        agent.conversation.transcript_writer().set_title(title);
    }
    agent.inject_hook_context(&output.contexts);
    output.stop.as_ref().map_or(Ok(()), |_| Err(SubmissionError::Stopped))
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

/// Runs the prompt hooks for a prompt of the host.
pub(crate) async fn run_host_prompt_hooks(
    agent: &mut Agent,
    uuid: Option<&str>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<MergedOutput, SubmissionError> {
    agent.tool_env.checker.hooks.set_prompt(uuid);
    run_prompt_hooks(agent, PromptSource::Host, text, cancel).await
}

/// Runs the prompt hooks.
pub(crate) async fn run_prompt_hooks(
    agent: &mut Agent,
    source: PromptSource,
    text: &str,
    cancel: &CancellationToken,
) -> Result<MergedOutput, SubmissionError> {
    let build_input = |input: &HookInputBuilder| input.user_prompt_submit(text, Some(source.hook_source()));
    let output =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptSubmit, build_input, cancel).await;
    if output.interrupted {
        return Err(SubmissionError::Interrupted);
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
    Err(SubmissionError::Blocked(text))
}

pub(crate) fn record_prompt(agent: &mut Agent, user: &User) {
    record_prompt_as(agent, user, &user.message.content);
}

fn record_prompt_as(agent: &mut Agent, user: &User, content: &Content) {
    let mode = agent.tool_env.checker.permissions.mode().to_string();
    agent.conversation.push_prompt(user.uuid.as_deref().unwrap_or_default(), content, &mode);
}
