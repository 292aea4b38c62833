//! One turn, from a prompt to its end: ask, record, judge, act, and round again.

mod hooked;

pub(crate) use hooked::brief;

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::assemble::{Assembly, Finished};
use whimbrel_models::call::{Call, Retry, Step, Timing};
use whimbrel_models::{Delta, Event, Fault, FaultKind, Request};
use whimbrel_wire::message::{FailureKind, StreamEvent};
use whimbrel_wire::system::{ApiRetry, PermissionDenied, Status, StatusKind};
use whimbrel_wire::{Block, RawJson, StopReason};

use crate::agent::Agent;
use crate::clock;
use crate::context::planning::{self, Moment};
use crate::context::room;
use crate::conversation::ReplyHead;
use crate::cost::Metered;
use crate::gate::{Halt, Refuser};
use crate::ids;
use crate::verdict::{self, End, Happened, Next, Nudge, Situation};
use crate::workshop::{Made, Wanted, Workshop};
use crate::{shape, understudy};

/// What the model is told of a turn that was interrupted while it spoke.
pub(crate) const INTERRUPTED: &str = "[Request interrupted by user]";

/// How a turn went.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// How it ended.
    pub end: End,
    /// The model's last text.
    pub text: String,
    /// Why the model stopped last.
    pub stop_reason: Option<StopReason>,
    /// What failed, if the model did.
    pub fault: Option<Fault>,
    /// One, plus one for each tool result.
    pub num_turns: u32,
    /// From the start of the turn to the first event of the first reply.
    pub first_token: Option<Duration>,
    /// The answer in the shape that the host asked for.
    pub structured: Option<Value>,
    /// The call that was put off, if one was.
    pub deferred: Option<Box<Value>>,
}

/// Runs a turn. The prompt is already in the conversation.
pub async fn run(agent: &mut Agent, cancel: &CancellationToken) -> Ending {
    let mut ending = Ending::new(End::Done);
    agent.owed.begin_turn();
    agent.understudies.begin_turn();
    let mut now = Situation {
        event: Happened::Failed,
        aborted: false,
        model_calls: 0,
        max_turns: agent.limits.max_turns,
        recoveries: 0,
        answer: agent.owed.answer(),
        broke: false,
        understudy: false,
        room: false,
    };
    let mut next = Next::Ask;
    let mut objections = 0;
    let mut workshop = Workshop::new(agent.bench.clone());
    let started = clock::monotonic();
    hooked::after_reading(agent, cancel).await;
    loop {
        match next {
            Next::Ask | Next::Nudge(_) if hooked::ended_before_call(agent, cancel).await => {
                now.event = Happened::Acted { halt: Some(Halt::Hook) };
            }
            Next::Ask | Next::Nudge(_) => {
                if let Next::Nudge(nudge) = next {
                    match nudge {
                        Nudge::Answer => agent.owed.demanded(),
                        Nudge::OutputLimit | Nudge::Cut | Nudge::Paused => now.recoveries += 1,
                    }
                    if let Some(text) = nudge_text(nudge) {
                        agent.conversation.note(text).await;
                    }
                }
                hooked::brief_late(agent).await;
                if next != Next::Nudge(Nudge::Paused) {
                    planning::remind(agent, Moment::before_call(now.model_calls));
                }
                workshop = Workshop::new(agent.bench.clone());
                now.model_calls += 1;
                let heard = listen(agent, &mut workshop, cancel).await;
                ending.first_token = ending.first_token.or_else(|| heard.first_event.map(|at| at - started));
                now.event = heard.happened(workshop.calls());
                match now.event {
                    Happened::Replied { .. } => agent.room.replied(),
                    // A call that was refused and is made again does not count.
                    Happened::Unavailable | Happened::TooLong => now.model_calls -= 1,
                    Happened::Failed
                    | Happened::Acted { .. }
                    | Happened::SentBack
                    | Happened::RoomMade { .. } => {}
                }
                ending.absorb(heard);
            }
            Next::StepIn => {
                understudy::step_in(agent, ending.fault.as_ref()).await;
                next = Next::Ask;
                continue;
            }
            Next::MakeRoom => {
                now.event = Happened::RoomMade { made: room::make_after_refusal(agent, cancel).await };
            }
            Next::Act => {
                let halt = act(agent, &mut workshop, &mut ending, cancel).await;
                now.event = Happened::Acted { halt };
                agent.recall();
                hooked::after_reading(agent, cancel).await;
                now.recoveries = 0;
            }
            Next::End(End::Done)
                if let Some(objection) = hooked::objection(agent, &ending, objections, cancel).await =>
            {
                objections += 1;
                agent.conversation.note(&objection).await;
                now.event = Happened::SentBack;
            }
            Next::End(end) => {
                ending.end = end;
                wind_up(agent, workshop, &mut ending).await;
                return ending;
            }
        }
        now.aborted = cancel.is_cancelled();
        now.answer = agent.owed.answer();
        now.broke = agent.ledger.is_used_up();
        now.understudy = agent.understudies.are_left(&agent.knobs.borrow().model);
        now.room = room::may_be_made(agent);
        next = verdict::next(&now);
    }
}

/// What came of one model call.
struct Heard {
    stop: Option<StopReason>,
    fault: Option<Fault>,
    /// Whether the fault left whole blocks behind.
    cut: bool,
    text: Option<String>,
    first_event: Option<std::time::Instant>,
}

impl Heard {
    fn happened(&self, calls: usize) -> Happened {
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

impl Ending {
    /// An ending without anything said.
    pub fn new(end: End) -> Self {
        let (text, stop_reason, fault) = (String::new(), None, None);
        let (first_token, structured, deferred) = (None, None, None);
        Self { end, text, stop_reason, fault, num_turns: 1, first_token, structured, deferred }
    }

    fn absorb(&mut self, heard: Heard) {
        if let Some(text) = heard.text {
            self.text = text;
        }
        self.stop_reason = heard.stop;
        self.fault = heard.fault;
    }
}

/// Asks the model once and records what it says as it says it. Harmless tool calls begin meanwhile.
async fn listen(agent: &mut Agent, workshop: &mut Workshop, cancel: &CancellationToken) -> Heard {
    let mut heard = Heard { stop: None, fault: None, cut: false, text: None, first_event: None };
    let asked = agent.model();
    let (model, name) = match agent.engine.providers().resolve(&asked) {
        Ok(found) => found,
        Err(fault) => return Heard { fault: Some(fault), ..heard },
    };
    agent.conversation.address(&asked);
    let request = request(agent, name);
    if agent.limits.partial_messages {
        agent.outbox.notify(Status { status: Some(StatusKind::Requesting), ..Status::default() }).await;
    }
    let call = Call::new(model, request, agent.policy(), Timing::default());
    let admitted = Metered::begin(call, agent.engine.clone(), agent.ledger.clone(), asked);
    let mut call = match cancel.run_until_cancelled(admitted).await {
        Some(Ok(call)) => call,
        Some(Err(fault)) => return Heard { fault: Some(fault), ..heard },
        None => return heard,
    };
    let mut assembly = Assembly::default();
    loop {
        let step = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            () = workshop.work(), if workshop.is_busy() => continue,
            step = call.next() => step,
        };
        match step {
            None => break,
            Some(Ok(Step::Delta(delta))) => {
                heard.first_event.get_or_insert_with(clock::monotonic);
                match take(agent, &mut assembly, workshop, delta).await {
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
                agent.conversation.end_reply();
                announce(agent, &retry).await;
            }
            Some(Ok(Step::Cut(fault))) => {
                if let Some(finished) = assembly.let_go() {
                    record(agent, &assembly, workshop, finished).await;
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
        agent.conversation.reply(&head(&assembly), Block::text(text), true).await;
    }
    agent.conversation.end_reply();
    if !assembly.id.is_empty() {
        agent.conversation.note_usage(&assembly.usage);
    }
    heard
}

/// Takes one event in: to the host as it is if it wants that, to the conversation when a block is complete.
async fn take(
    agent: &mut Agent,
    assembly: &mut Assembly,
    workshop: &mut Workshop,
    delta: Delta,
) -> Result<Option<String>, Fault> {
    let mut text = None;
    if let Some(finished) = assembly.take(&delta.event)? {
        text = record(agent, assembly, workshop, finished).await;
    }
    if let Some(event) = delta.raw
        && delta.event != Event::Ping
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
        Block::Text { text: said, .. } => text = Some(said.clone()),
        Block::ToolUse { id, name, input } => {
            agent.conversation.name_call(id);
            agent.owed.called(name, id);
            agent.memory.watch(name, input);
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

/// Makes the calls that are left; says whether one of them ends the turn.
async fn act(
    agent: &mut Agent,
    workshop: &mut Workshop,
    ending: &mut Ending,
    cancel: &CancellationToken,
) -> Option<Halt> {
    let mut settled = Settled::default();
    workshop.reply_complete();
    while settled.halt != Some(Halt::Refused) {
        let made = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            made = workshop.next() => made,
        };
        let Some(made) = made else { break };
        settle(agent, made, ending, &mut settled).await;
        if settled.halt.is_some() {
            // What is under way ends; nothing else begins.
            workshop.close();
        }
    }
    brief(agent, &settled.notes);
    if settled.halt.is_none() && !cancel.is_cancelled() {
        settled.halt = hooked::after_batch(agent, workshop.batch(), cancel).await;
    }
    settled.halt
}

/// What came of calls besides their results.
#[derive(Default)]
struct Settled {
    notes: Vec<String>,
    halt: Option<Halt>,
}

/// Records one result.
async fn settle(agent: &mut Agent, mut made: Made, ending: &mut Ending, settled: &mut Settled) {
    ending.num_turns += 1;
    ending.deferred = made.deferred.take().or(ending.deferred.take());
    settled.notes.append(&mut made.notes);
    settled.halt = settled.halt.or(made.halt);
    agent.owed.settled(&made);
    if let Some(refused) = &made.denial {
        agent.denials.add(refused.denial.clone());
        if refused.by != Refuser::Host {
            let notice = PermissionDenied {
                tool_name: refused.denial.tool_name.clone(),
                tool_use_id: refused.denial.tool_use_id.clone(),
                message: refused.message.clone(),
                ..PermissionDenied::default()
            };
            agent.outbox.notify(notice).await;
        }
    }
    agent.conversation.tool_result(made).await;
}

/// Leaves the conversation in order: every call has a result, and an abort or a failure is on record.
async fn wind_up(agent: &mut Agent, workshop: Workshop, ending: &mut Ending) {
    let why = match ending.end {
        End::Broke => "the budget was used up",
        End::HookStopped => "a hook ended the turn",
        End::Deferred => "a call was put off",
        End::ApiFailure | End::TooLong => "the model failed",
        _ => "the turn was interrupted by the user",
    };
    let mut settled = Settled::default();
    for made in workshop.abandon(why) {
        if ending.end == End::Broke {
            agent.conversation.close_call(made);
            continue;
        }
        settle(agent, made, ending, &mut settled).await;
    }
    brief(agent, &settled.notes);
    match ending.end {
        End::AbortedStreaming => agent.conversation.note(INTERRUPTED).await,
        End::AbortedTools => agent.conversation.note("[Request interrupted by user for tool use]").await,
        End::ApiFailure => {
            let fault =
                ending.fault.clone().unwrap_or_else(|| Fault::new(FaultKind::Cut, "The reply broke off."));
            ending.text = failure_text(&fault);
            agent.conversation.failure(&ending.text, fault.failure(), Some(&fault)).await;
            hooked::after_failure(agent, &fault).await;
            ending.fault = Some(fault);
        }
        End::TooLong => {
            let fault = ending.fault.clone();
            ending.text = match &fault {
                Some(fault) => failure_text(fault),
                None => "The conversation is too long for the model's window, and the reply was cut at its end. Shorten it with /compact, or begin a new one.".into(),
            };
            agent.conversation.failure(&ending.text, FailureKind::InvalidRequest, fault.as_ref()).await;
        }
        End::OutputLimit => {
            ending.text = "The reply hit the output limit again and again. Ask for less at a time, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.".into();
            agent.conversation.failure(&ending.text, FailureKind::MaxOutputTokens, None).await;
        }
        End::Done => {
            ending.structured = agent.owed.take();
            if let Some(answer) = &ending.structured {
                ending.text = answer.to_string();
            }
        }
        End::Refused if ending.text.is_empty() => ending.text = "The model declined to answer.".into(),
        End::HookStopped => ending.text.clear(),
        End::Deferred | End::MaxTurns | End::Refused | End::NoAnswer | End::Broke => {}
    }
    agent.conversation.settle().await;
}

fn request(agent: &mut Agent, model: String) -> Request {
    let knobs = agent.knobs.borrow().clone();
    let catalog = agent.engine.catalog();
    let max_tokens = agent.limits.max_output_tokens.unwrap_or_else(|| catalog.max_output_tokens(&model));
    Request {
        thinking: knobs.thinking.unwrap_or_else(|| catalog.default_thinking(&model, max_tokens)),
        effort: knobs.effort,
        task_budget: agent.limits.task_budget,
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
    let notice = ApiRetry {
        attempt: retry.attempt,
        max_retries: retry.max_retries,
        retry_delay_ms: u64::try_from(retry.delay.as_millis()).unwrap_or(u64::MAX),
        error_status: retry.status,
        error: retry.failure.clone(),
        ..ApiRetry::default()
    };
    agent.outbox.notify(notice).await;
}

async fn pass_on(agent: &Agent, event: RawJson) {
    let session_id = agent.outbox.session().to_owned();
    let frame = StreamEvent { event, parent_tool_use_id: None, session_id, uuid: ids::uuid(), ttft_ms: None };
    agent.outbox.send(frame).await;
}

fn head(assembly: &Assembly) -> ReplyHead {
    ReplyHead { id: assembly.id.clone(), model: assembly.model.clone(), usage: assembly.usage.clone() }
}

fn failure_text(fault: &Fault) -> String {
    match fault.status {
        Some(status) => format!("API Error: {status} {}", fault.message),
        None => format!("API Error: {}", fault.message),
    }
}

/// What the model is told, if anything.
fn nudge_text(nudge: Nudge) -> Option<&'static str> {
    Some(match nudge {
        Nudge::Paused => return None,
        Nudge::Answer => shape::DEMAND,
        Nudge::OutputLimit => {
            "Your reply was cut off by the output limit. Go on exactly where it stopped, without repeating anything; do the rest in smaller pieces."
        }
        Nudge::Cut => {
            "The connection broke in the middle of your reply. Go on exactly where it stopped, without repeating anything."
        }
    })
}
