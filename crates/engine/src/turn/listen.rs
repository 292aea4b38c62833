//! Listening to the model: one call, and what it says recorded as it says it.

use tokio_util::sync::CancellationToken;
use whimbrel_models::assemble::{Assembly, Finished};
use whimbrel_models::call::{Call, Retry, Step};
use whimbrel_models::{Delta, Event, Fault, FaultKind, Request, TaskBudget};
use whimbrel_wire::message::StreamEvent;
use whimbrel_wire::system::{ApiRetry, Status, StatusKind};
use whimbrel_wire::{Block, RawJson, StopReason};

use crate::agent::Agent;
use crate::conversation::{ReplyHead, Speaker};
use crate::cost::Metered;
use crate::verdict::Happened;
use crate::workshop::{Wanted, Workshop};
use crate::{clock, ids, understudy};

/// What came of one model call.
pub(super) struct Heard {
    pub(super) stop: Option<StopReason>,
    pub(super) fault: Option<Fault>,
    /// Whether the fault left whole blocks behind.
    cut: bool,
    pub(super) text: Option<String>,
    pub(super) first_event: Option<std::time::Instant>,
}

impl Heard {
    pub(super) fn happened(&self, calls: usize) -> Happened {
        match &self.fault {
            Some(fault) if !self.cut => match fault.kind {
                FaultKind::PromptTooLong | FaultKind::TooLarge => Happened::TooLong,
                _ if understudy::unavailable(fault).is_some() => Happened::Unavailable,
                _ => Happened::Failed,
            },
            _ => Happened::Replied { stop: if self.cut { None } else { self.stop.clone() }, calls },
        }
    }
}

/// Asks the model once and records what it says as it says it. Harmless tool calls begin meanwhile.
pub(super) async fn listen(agent: &mut Agent, workshop: &mut Workshop, cancel: &CancellationToken) -> Heard {
    let mut heard = Heard { stop: None, fault: None, cut: false, text: None, first_event: None };
    let asked = agent.model();
    let (model, name) = match agent.engine.resolve(&asked) {
        Ok(found) => found,
        Err(fault) => return Heard { fault: Some(fault), ..heard },
    };
    agent.conversation.address(&asked, agent.engine.providers().dialect(&asked));
    agent.conversation.record().await;
    let request = request(agent, &asked, name);
    if !agent.conversation.is_main()
        && let Some(TaskBudget { total, remaining: Some(0) }) = request.task_budget
    {
        let text = format!("The task budget of {total} tokens is used up.");
        return Heard { fault: Some(Fault::new(FaultKind::SpendLimit, text)), ..heard };
    }
    if agent.limits.partial_messages && agent.conversation.speaker().call().is_none() {
        agent.outbox.notify(Status { status: Some(StatusKind::Requesting), ..Status::default() }).await;
    }
    let call = Call::new(model, request, agent.policy(), agent.limits.timing);
    let admitted = Metered::begin(call, agent.engine.clone(), agent.ledger.clone(), asked);
    // What takes more room than waiting for the next event does is on the heap while it lasts.
    let mut call = match Box::pin(cancel.run_until_cancelled(admitted)).await {
        Some(Ok(call)) => call,
        Some(Err(fault)) => return Heard { fault: Some(fault), ..heard },
        None => return heard,
    };
    let mut assembly = Assembly::default();
    let mut unheard = Unheard::default();
    loop {
        let step = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            () = workshop.work(), if workshop.is_busy() => continue,
            step = call.next() => step,
        };
        match step {
            None => break,
            Some(Ok(Step::Delta(mut delta))) => {
                if !delta.event.is_sign_of_life() {
                    heard.first_event.get_or_insert_with(clock::monotonic);
                }
                match take(agent, &mut assembly, workshop, &mut unheard, &mut delta).await {
                    Ok(Some(text)) => heard.text = Some(text),
                    Ok(None) => {}
                    Err(fault) => {
                        heard.fault = Some(fault);
                        break;
                    }
                }
            }
            Some(Ok(Step::Retry(retry))) => {
                assembly = Assembly::default();
                unheard = Unheard::default();
                agent.conversation.end_reply();
                announce(agent, &retry).await;
            }
            Some(Ok(Step::Cut(fault)) | Err(fault)) if fault.kind == FaultKind::Interrupted => {
                cancel.cancel();
                break;
            }
            Some(Ok(Step::Cut(fault))) => {
                if let Some(finished) = assembly.let_go() {
                    Box::pin(record(agent, &assembly, workshop, finished)).await;
                }
                heard.cut = true;
                heard.fault = Some(fault);
            }
            Some(Err(fault)) => heard.fault = Some(fault),
        }
    }
    heard.stop = assembly.stop_reason.clone();
    if cancel.is_cancelled()
        && let Some(text) = assembly.open_text()
    {
        Box::pin(agent.conversation.reply(&head(&assembly), Block::text(text), true)).await;
    }
    agent.conversation.end_reply();
    if !assembly.id.is_empty() {
        agent.conversation.note_usage(&assembly.usage);
    }
    heard
}

/// The blocks of a reply that the host does not hear: of a subagent it hears what it hears as messages, too.
#[derive(Default)]
struct Unheard(Vec<usize>);

impl Unheard {
    /// Whether the host gets this event.
    fn lets_through(&mut self, event: &Event, speaker: &Speaker) -> bool {
        match event {
            Event::Ping => false,
            Event::BlockStart { index, block } => {
                let heard = speaker.is_heard(block);
                if !heard {
                    self.0.push(*index);
                }
                heard
            }
            Event::BlockDelta { index, .. } | Event::BlockStop { index } => !self.0.contains(index),
            _ => true,
        }
    }
}

/// Takes one event in: to the host as it is if it wants that, to the conversation when a block is complete.
async fn take(
    agent: &mut Agent,
    assembly: &mut Assembly,
    workshop: &mut Workshop,
    unheard: &mut Unheard,
    delta: &mut Delta,
) -> Result<Option<String>, Fault> {
    let finished = assembly.take(&delta.event)?;
    let text = match finished.map(|finished| Box::pin(record(agent, assembly, workshop, finished))) {
        Some(recording) => recording.await,
        None => None,
    };
    if let Some(event) = delta.raw.take()
        && unheard.lets_through(&delta.event, agent.conversation.speaker())
    {
        pass_on(agent, event).await;
    }
    Ok(text)
}

/// Records a complete block; a tool call goes to the workshop. Gives the text, if it is one.
async fn record(
    agent: &mut Agent,
    assembly: &Assembly,
    workshop: &mut Workshop,
    finished: Finished,
) -> Option<String> {
    let Finished { mut block, bad_input } = finished;
    let mut text = None;
    let mut wanted = None;
    match &mut block {
        Block::Text { text: said, .. } => {
            agent.progress.said(said);
            text = Some(said.clone());
        }
        Block::ToolUse { id, name, input } => {
            agent.conversation.name_call(id);
            agent.owed.called(name, id);
            agent.memory.watch(name, input);
            agent.progress.called(name);
            wanted = Some(Wanted { id: id.clone(), tool: name.clone(), input: input.clone(), bad_input });
        }
        _ => {}
    }
    if text.as_deref() != Some("") {
        agent.conversation.reply(&head(assembly), block, false).await;
    }
    if let Some(wanted) = wanted {
        workshop.take(wanted);
    }
    text
}

/// What the model is asked; `asked` is its whole name, `model` the one that its provider knows.
fn request(agent: &mut Agent, asked: &str, model: String) -> Request {
    let knobs = agent.knobs.now();
    let dialect = agent.engine.providers().dialect(asked);
    let catalog = agent.engine.catalog();
    let max_tokens = agent.limits.max_output_tokens.unwrap_or_else(|| catalog.max_output_tokens(&model));
    let thinking = match knobs.thinking {
        Some(wanted) => catalog.thinking_as(&model, wanted, max_tokens),
        None => catalog.default_thinking(&model, max_tokens),
    };
    Request {
        thinking: agent.conversation.thinking(thinking, dialect),
        thinking_display: knobs.thinking_display,
        effort: knobs.effort.filter(|_| catalog.takes_effort(&model)),
        task_budget: agent.limits.task_budget.map(|total| agent.ledger.task_budget(total)),
        max_tokens,
        model,
        preamble: agent.preamble.clone(),
        history: agent.conversation.history.ask(),
        betas: agent.limits.betas.clone(),
        session_id: agent.outbox.session().to_owned(),
        raw_events: agent.limits.partial_messages,
    }
}

async fn announce(agent: &Agent, retry: &Retry) {
    agent.outbox.notify(retry_notice(retry)).await;
}

/// A repetition as the host is told of it.
pub(crate) fn retry_notice(retry: &Retry) -> ApiRetry {
    ApiRetry {
        attempt: retry.attempt,
        max_retries: retry.max_retries,
        retry_delay_ms: u64::try_from(retry.delay.as_millis()).unwrap_or(u64::MAX),
        error_status: retry.status,
        error: retry.failure.clone(),
        ..ApiRetry::default()
    }
}

async fn pass_on(agent: &Agent, event: RawJson) {
    let session_id = agent.outbox.session().to_owned();
    let parent_tool_use_id = agent.conversation.speaker().call().map(Into::into);
    let frame = StreamEvent { event, parent_tool_use_id, session_id, uuid: ids::uuid(), ttft_ms: None };
    agent.outbox.send(frame).await;
}

fn head(assembly: &Assembly) -> ReplyHead {
    ReplyHead {
        id: assembly.id.clone(),
        request_id: assembly.request_id.clone(),
        model: assembly.model.clone(),
        usage: assembly.usage.clone(),
    }
}
