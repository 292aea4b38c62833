//! Streams one model reply: builds the request, forwards the events to the host and records the blocks as they
//! complete.

use tokio_util::sync::CancellationToken;
use whimbrel_models::assemble::{FinishedBlock, ReplyAssembler};
use whimbrel_models::model_call::{CallStep, ModelCall, ScheduledRetry};
use whimbrel_models::{ModelError, ModelErrorKind, ReplyEvent, ReplyItem, Request, TaskBudget};
use whimbrel_os::{clock, ids};
use whimbrel_tools::cost::MeteredCall;
use whimbrel_tools::model_access;
use whimbrel_wire::message::StreamEvent;
use whimbrel_wire::system::{Status, StatusKind};
use whimbrel_wire::{Block, RawJson, StopReason};

use crate::agent::Agent;
use crate::conversation::{Attribution, ReplyHead};
use crate::fallback;
use crate::next_step::TurnEvent;
use crate::side_question::RecordedConversation;
use crate::tool_scheduler::{ToolCall, ToolScheduler};

/// Outcome of one model call.
#[derive(Default)]
pub(super) struct ReplyOutcome {
    pub(super) stop_reason: Option<StopReason>,
    pub(super) error: Option<ModelError>,
    /// Whether the stream broke off after at least one complete block.
    is_cut: bool,
    pub(super) text: Option<String>,
    /// Whether the model replied with a block, complete or not.
    pub(super) has_content: bool,
    pub(super) first_event_at: Option<std::time::Instant>,
}

impl ReplyOutcome {
    pub(super) fn to_turn_event(&self, calls: usize) -> TurnEvent {
        match &self.error {
            Some(error) if !self.is_cut => match error.kind {
                ModelErrorKind::PromptTooLong | ModelErrorKind::TooLarge => TurnEvent::ContextTooLong,
                _ if fallback::classify_unavailable(error).is_some() => TurnEvent::Unavailable,
                _ => TurnEvent::Failed,
            },
            _ => TurnEvent::Replied {
                stop_reason: if self.is_cut { None } else { self.stop_reason.clone() },
                tool_calls: calls,
            },
        }
    }
}

/// Records a request and tells the host; fails if an agent's share of the task budget is used up.
async fn announce_request(agent: &mut Agent, request: &Request, full_name: &str) -> Result<(), ModelError> {
    if agent.conversation.is_main() {
        let (prefix, history) = (request.prefix.clone(), request.history.clone());
        agent.view.record(RecordedConversation { model: full_name.to_owned(), prefix, history });
    } else if let Some(TaskBudget { total, remaining: Some(0) }) = request.task_budget {
        let text = format!("The task budget of {total} tokens is used up.");
        return Err(ModelError::new(ModelErrorKind::SpendLimit, text));
    }
    if request.raw_events && agent.conversation.attribution().parent_tool_use_id().is_none() {
        agent.frame_sender.notify(Status { status: Some(StatusKind::Requesting), ..Status::default() }).await;
    }
    Ok(())
}

/// Calls the model once and records the reply as it streams. Parallel-safe tool calls start meanwhile.
pub(super) async fn stream_reply(
    agent: &mut Agent,
    scheduler: &mut ToolScheduler,
    cancel: &CancellationToken,
) -> ReplyOutcome {
    let mut reply = ReplyOutcome::default();
    let full_name = agent.model();
    let (model, name) = match agent.models.resolve(&full_name) {
        Ok(found) => found,
        Err(cause) => return ReplyOutcome { error: Some(cause), ..reply },
    };
    agent.conversation.prepare_for_model(&full_name, agent.models.providers().dialect(&full_name));
    agent.conversation.flush().await;
    let request = build_request(agent, &full_name, name);
    if let Err(cause) = announce_request(agent, &request, &full_name).await {
        return ReplyOutcome { error: Some(cause), ..reply };
    }
    let call = ModelCall::new(model, request, agent.retry_policy(), agent.limits.timing);
    let start = MeteredCall::start(call, agent.models.clone(), agent.ledger.clone(), full_name);
    // Boxed so that the future reserves no space for it while it waits for events.
    let mut call = match Box::pin(cancel.run_until_cancelled(start)).await {
        Some(Ok(call)) => call,
        Some(Err(cause)) => return ReplyOutcome { error: Some(cause), ..reply },
        None => return reply,
    };
    let mut assembly = ReplyAssembler::default();
    let mut hidden = HiddenBlocks::default();
    loop {
        let step = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            () = agent.conversation.held_lines_due() => {
                agent.conversation.release_held_lines().await;
                continue;
            }
            () = scheduler.drive(), if scheduler.is_running() => continue,
            step = call.next() => step,
        };
        match step {
            None => break,
            Some(Ok(CallStep::Item(mut delta))) => {
                if !delta.event.is_keepalive() && reply.first_event_at.is_none() {
                    reply.first_event_at = Some(clock::monotonic());
                    agent.conversation.publish_replays().await;
                }
                match handle_delta(agent, &mut assembly, scheduler, &mut hidden, &mut delta).await {
                    Ok(Some(text)) => reply.text = Some(text),
                    Ok(None) => {}
                    Err(cause) => {
                        reply.error = Some(cause);
                        break;
                    }
                }
            }
            Some(Ok(CallStep::Retry(retry))) => {
                assembly = ReplyAssembler::default();
                hidden = HiddenBlocks::default();
                agent.conversation.drop_pending_thinking();
                notify_retry(agent, &retry).await;
            }
            Some(Ok(CallStep::Truncated(cause)) | Err(cause))
                if cause.kind == ModelErrorKind::Interrupted =>
            {
                cancel.cancel();
                break;
            }
            Some(Ok(CallStep::Truncated(cause))) => {
                if let Some(finished) = assembly.take_pending_call() {
                    Box::pin(record_block(agent, &assembly, scheduler, finished)).await;
                }
                reply.is_cut = true;
                reply.error = Some(cause);
            }
            Some(Err(cause)) => reply.error = Some(cause),
        }
    }
    reply.stop_reason = assembly.stop_reason.clone();
    reply.has_content = assembly.has_content();
    if cancel.is_cancelled()
        && let Some(text) = assembly.open_text()
    {
        Box::pin(agent.conversation.push_reply_block(&reply_head(&assembly), Block::text(text), true)).await;
    }
    agent.conversation.drop_pending_thinking();
    if !assembly.id.is_empty() {
        agent.conversation.finish_reply(assembly.stop_reason.clone(), &assembly.usage);
    }
    reply
}

/// Blocks of a reply that are hidden from the host. For a subagent, text is sent with its result only.
#[derive(Default)]
struct HiddenBlocks(Vec<usize>);

impl HiddenBlocks {
    /// Returns whether the host gets this event; remembers the index of a block that is hidden.
    fn should_forward(&mut self, event: &ReplyEvent, attribution: &Attribution) -> bool {
        match event {
            ReplyEvent::Ping => false,
            ReplyEvent::BlockStart { index, block } => {
                let is_visible = attribution.is_visible(block);
                if !is_visible {
                    self.0.push(*index);
                }
                is_visible
            }
            ReplyEvent::BlockDelta { index, .. } | ReplyEvent::BlockStop { index } => !self.0.contains(index),
            _ => true,
        }
    }
}

/// Handles one stream event: forwards it to the host if requested, and records each completed block.
async fn handle_delta(
    agent: &mut Agent,
    assembly: &mut ReplyAssembler,
    scheduler: &mut ToolScheduler,
    hidden: &mut HiddenBlocks,
    delta: &mut ReplyItem,
) -> Result<Option<String>, ModelError> {
    let finished = assembly.push_event(&delta.event)?;
    let text = match finished.map(|finished| Box::pin(record_block(agent, assembly, scheduler, finished))) {
        Some(recording) => recording.await,
        None => None,
    };
    if let Some(event) = delta.raw.take()
        && hidden.should_forward(&delta.event, agent.conversation.attribution())
    {
        forward_event(agent, event).await;
    }
    Ok(text)
}

/// Records a completed block; a tool call goes to the scheduler. Returns the text of a text block.
async fn record_block(
    agent: &mut Agent,
    assembly: &ReplyAssembler,
    scheduler: &mut ToolScheduler,
    finished: FinishedBlock,
) -> Option<String> {
    let FinishedBlock { mut block, bad_input } = finished;
    let mut text = None;
    let mut tool_call = None;
    match &mut block {
        Block::Text { text: block_text, .. } => {
            agent.progress.record_text(block_text);
            text = Some(block_text.clone());
        }
        Block::ToolUse { id, name, input } => {
            agent.conversation.make_call_id_unique(id);
            let call = ToolCall { id: id.clone(), tool: name.clone(), input: input.clone(), bad_input };
            agent.observe_call(&call);
            tool_call = Some(call);
        }
        _ => {}
    }
    if text.as_deref() != Some("") {
        agent.conversation.push_reply_block(&reply_head(assembly), block, false).await;
    }
    if let Some(tool_call) = tool_call {
        scheduler.submit(tool_call);
    }
    text
}

async fn notify_retry(agent: &Agent, retry: &ScheduledRetry) {
    agent.frame_sender.notify(model_access::retry_notice(retry)).await;
}

async fn forward_event(agent: &Agent, event: RawJson) {
    let session_id = agent.frame_sender.session_id().to_string();
    let parent_tool_use_id = agent.conversation.attribution().parent_tool_use_id().map(Into::into);
    let frame = StreamEvent { event, parent_tool_use_id, session_id, uuid: ids::new_uuid(), ttft_ms: None };
    agent.frame_sender.send(frame).await;
}

fn reply_head(assembly: &ReplyAssembler) -> ReplyHead {
    ReplyHead {
        id: assembly.id.clone(),
        request_id: assembly.request_id.clone(),
        model: assembly.model.clone(),
        usage: assembly.usage.clone(),
    }
}

/// Builds the request; `full_name` is the model's full name, `model` the name its provider uses.
fn build_request(agent: &mut Agent, full_name: &str, model: String) -> Request {
    let runtime_settings = agent.runtime_settings.current();
    let dialect = agent.models.providers().dialect(full_name);
    let catalog = agent.models.catalog();
    let max_tokens = agent.limits.max_output_tokens.unwrap_or_else(|| catalog.max_output_tokens(&model));
    let thinking = match runtime_settings.thinking {
        Some(wanted) => catalog.supported_thinking(&model, wanted, max_tokens),
        None => catalog.default_thinking(&model, max_tokens),
    };
    Request {
        thinking: agent.conversation.effective_thinking(thinking, dialect),
        thinking_display: runtime_settings.thinking_display,
        effort: runtime_settings.effort.filter(|_| catalog.supports_effort(&model)),
        task_budget: agent.limits.task_budget_tokens.map(|total| agent.ledger.task_budget(total)),
        max_tokens,
        model,
        prefix: agent.request_prefix.clone(),
        history: agent.conversation.history.snapshot(),
        betas: agent.limits.betas.clone(),
        session_id: agent.frame_sender.session_id().to_string(),
        raw_events: runtime_settings.partial_messages,
    }
}
