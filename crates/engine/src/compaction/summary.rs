//! Compaction: the model summarizes the conversation, and the summary replaces it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::model_call::ModelCall;
use whimbrel_models::providers::ApiDialect;
use whimbrel_models::{History, ModelError, ModelErrorKind, Request, RequestPrefix};
use whimbrel_os::clock;
use whimbrel_tools::cost::MeteredCall;
use whimbrel_tools::hooks::{HookInputBuilder, join_reasons};
use whimbrel_tools::small_model::read_reply_text;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{
    CompactBoundary, CompactMetadata, CompactResult, CompactTrigger, Status, StatusKind,
};
use whimbrel_wire::{Block, Role};

use super::auto_compact;
use super::render_history::render_history;
use crate::agent::Agent;
use crate::fallback;

const MAX_SUMMARY_TOKENS: u64 = 20_000;

/// Assumed context window for an unknown model, in tokens.
const UNKNOWN_WINDOW_TOKENS: u64 = 60_000;

/// Estimate for rendered history; low, so that the excerpt fits.
const EXCERPT_BYTES_PER_TOKEN: u64 = 3;

/// The request for a summary. The reply is all that the model keeps of the conversation.
const SUMMARY_PROMPT: &str = "Write a summary that will replace this conversation. The work continues from the summary alone. Use no tools. \
Cover, in this order and as far as it applies: what the user asked for, verbatim where wording matters; the decisions and their reasons; what was done, with the paths of \
all files that were read, created or changed and what matters in them; what failed and how it was solved; what is still open; what was being done last and the very next step. \
Keep names, numbers, commands and error texts exact. Leave out pleasantries and what no longer matters.";

/// Added if the last prompt is still unanswered.
const UNANSWERED_NOTE: &str =
    " The user's last message is kept verbatim after your summary: do not answer or repeat it here.";

#[derive(Debug, Clone, PartialEq)]
pub enum CompactionError {
    /// There is no conversation yet.
    EmptyConversation,
    Interrupted,
    /// A hook blocked it, with the reason.
    Blocked(String),
    /// The model gave no summary.
    Model(ModelError),
}

/// A summary that can replace the history.
#[derive(Debug)]
pub struct CompactionSummary {
    text: String,
    duration: Duration,
}

/// Input of the summary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryInput {
    /// The history in full; if it is too long, an excerpt.
    FullHistory,
    /// An excerpt rendered as text.
    Excerpt,
}

/// Requests a summary; `keep` is what the user wants preserved. Replaces nothing yet. Status frames are sent for the
/// main conversation only.
pub async fn summarize(
    agent: &mut Agent,
    trigger: CompactTrigger,
    keep: &str,
    source: SummaryInput,
    cancel: &CancellationToken,
) -> Result<CompactionSummary, CompactionError> {
    if !agent.conversation.has_begun() {
        return Err(CompactionError::EmptyConversation);
    }
    let instructions = Some(keep.to_owned()).filter(|keep| !keep.is_empty());
    let build_input = |input: &HookInputBuilder| input.pre_compact(trigger, instructions);
    let output = agent.tool_env.checker.hooks.dispatch(HookEvent::PreCompact, build_input, cancel).await;
    if !output.blocked.is_empty() {
        return Err(CompactionError::Blocked(join_reasons(&output.blocked)));
    }
    if let Some(stop) = output.stop {
        return Err(CompactionError::Blocked(stop.reason.unwrap_or_else(|| "a hook ended the turn".into())));
    }
    let started_at = clock::monotonic();
    notify_status(agent, Status { status: Some(StatusKind::Compacting), ..Status::default() }).await;
    let summary = match cancel.run_until_cancelled(request_summary(agent, keep, source)).await {
        Some(Ok(text)) => Ok(CompactionSummary { text, duration: clock::monotonic() - started_at }),
        // The replayed recording was interrupted here, so the turn is interrupted again.
        Some(Err(error)) if error.kind == ModelErrorKind::Interrupted => {
            cancel.cancel();
            Err(CompactionError::Interrupted)
        }
        Some(Err(error)) => Err(CompactionError::Model(error)),
        None => Err(CompactionError::Interrupted),
    };
    let compact_result = Some(if summary.is_ok() { CompactResult::Success } else { CompactResult::Failed });
    let compact_error = match &summary {
        Err(CompactionError::Model(error)) => Some(error.message.clone()),
        _ => None,
    };
    notify_status(agent, Status { compact_result, compact_error, ..Status::default() }).await;
    summary
}

async fn notify_status(agent: &Agent, status: Status) {
    if agent.conversation.is_main() {
        agent.frame_sender.notify(status).await;
    }
}

/// Replaces the history by a summary. An unanswered prompt is kept unchanged; in the middle of a turn, its text is
/// added to the summary.
pub async fn replace_history(agent: &mut Agent, trigger: CompactTrigger, summary: CompactionSummary) {
    let compact_metadata = CompactMetadata {
        trigger,
        pre_tokens: agent.conversation.token_count(),
        duration_ms: u64::try_from(summary.duration.as_millis()).ok(),
        ..CompactMetadata::default()
    };
    let boundary = CompactBoundary { compact_metadata };
    let unanswered = agent.conversation.take_unanswered();
    let task = match trigger {
        CompactTrigger::Auto if unanswered.is_empty() => Some(agent.conversation.last_prompt().to_owned()),
        CompactTrigger::Auto | CompactTrigger::Manual => None,
    };
    agent.conversation.reset_at_boundary(boundary, &agent.tool_env.context.deferred_tools.loaded()).await;
    agent.ledger.reset_visible_output();
    agent.inject_context();
    let transcript = agent.conversation.transcript_path();
    agent
        .conversation
        .push_summary(&render_summary(&summary.text, task.as_deref(), transcript.as_deref()))
        .await;
    agent.conversation.restore_unanswered(unanswered);
    let hooks = agent.tool_env.checker.hooks.clone();
    let cancel = &agent.tool_env.context.cancel;
    hooks.dispatch(HookEvent::PostCompact, |input| input.post_compact(trigger, summary.text), cancel).await;
    let model = agent.runtime_settings.current().model;
    let title = agent.conversation.transcript_writer().title();
    let build_input = |input: &HookInputBuilder| input.session_start("compact", Some(&model), title);
    let output = hooks.dispatch(HookEvent::SessionStart, build_input, cancel).await;
    agent.inject_hook_context(&output.contexts);
}

/// Requests the summary. The exchange is not recorded.
async fn request_summary(agent: &mut Agent, keep: &str, source: SummaryInput) -> Result<String, ModelError> {
    let instructions = if keep.is_empty() {
        String::new()
    } else {
        format!("\n\nAdditional instructions from the user: {keep}")
    };
    let unanswered_note = if agent.conversation.has_unanswered() { UNANSWERED_NOTE } else { "" };
    let question = format!("{SUMMARY_PROMPT}{unanswered_note}{instructions}");
    if source == SummaryInput::FullHistory {
        let mut history = agent.conversation.history.clone();
        let dialect = agent.models.providers().dialect(&agent.model());
        if history.tool_loop_has_thinking() == Some(true) && dialect != Some(ApiDialect::Chat) {
            // Summaries are requested without thinking. Chat Completions still requires the reasoning before a call.
            history.drop_thinking();
        }
        history.push(Role::User, &Block::text(question.clone()));
        match reply_with_fallback(agent, agent.request_prefix.clone(), history).await {
            Err(error) if matches!(error.kind, ModelErrorKind::PromptTooLong | ModelErrorKind::TooLarge) => {}
            answer => return answer,
        }
    }
    let limit = auto_compact::threshold(agent).unwrap_or(UNKNOWN_WINDOW_TOKENS) / 2 * EXCERPT_BYTES_PER_TOKEN;
    let text =
        render_history(&agent.conversation.history.messages(), usize::try_from(limit).unwrap_or(usize::MAX));
    let mut history = History::new();
    history.push(Role::User, &Block::text(format!("<conversation>\n{text}\n</conversation>\n\n{question}")));
    reply_with_fallback(agent, Arc::new(RequestPrefix::new(Vec::new(), Vec::new())), history).await
}

/// Calls the model; uses fallback models if it is unavailable, as a turn does.
async fn reply_with_fallback(
    agent: &mut Agent,
    prefix: Arc<RequestPrefix>,
    mut history: History,
) -> Result<String, ModelError> {
    loop {
        let answer = request_reply(agent, Arc::clone(&prefix), &mut history).await;
        let primary = agent.runtime_settings.current().model;
        match answer {
            Err(error)
                if fallback::classify_unavailable(&error).is_some()
                    && agent.fallback_models.has_next(&primary) =>
            {
                agent.switch_to_fallback(Some(&error)).await;
                // Thinking is signed for the model that produced it.
                history.drop_thinking();
            }
            answer => return answer,
        }
    }
}

async fn request_reply(
    agent: &Agent,
    prefix: Arc<RequestPrefix>,
    history: &mut History,
) -> Result<String, ModelError> {
    let model = agent.model();
    let (provider, name) = agent.models.resolve(&model)?;
    let request = Request {
        max_tokens: MAX_SUMMARY_TOKENS.min(agent.models.catalog().max_output_tokens(&model)),
        betas: agent.limits.betas.clone(),
        session_id: agent.frame_sender.session_id().to_string(),
        ..Request::new(name, prefix, history.snapshot())
    };
    let call = ModelCall::new(provider, request, agent.retry_policy(), agent.limits.timing);
    let call = MeteredCall::start(call, agent.models.clone(), agent.ledger.clone(), model).await?;
    read_reply_text(call, Some(&agent.frame_sender)).await
}

/// Renders the summary message; in the middle of a turn with the current task.
fn render_summary(summary: &str, task: Option<&str>, transcript: Option<&Path>) -> String {
    let transcript_note = transcript.map_or_else(String::new, |path| {
        let path = path.display();
        format!("\n\nThe full conversation is in {path}, one JSON object per line: search there if you need details.")
    });
    let text = format!(
        "This summary replaces the conversation before this point, to free context:\n\n{}{transcript_note}",
        summary.trim()
    );
    match task {
        None => text,
        Some(task) => format!(
            "{text}\n\nThe user's last message was:\n\n{task}\n\nYou are in the middle of working on it. Continue where the summary ends."
        ),
    }
}
