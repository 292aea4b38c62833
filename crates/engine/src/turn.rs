//! One turn, from a prompt to its end: call the model, record the reply, decide, run tools, repeat.

mod finish;
mod hooks;
pub(crate) mod invoked_skills;
mod open_calls;
mod run_tools;
mod steering;
mod stop_hooks;
mod stream_reply;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::ModelError;
use whimbrel_os::clock;
use whimbrel_session_store::load::open_calls::OpenCall;
use whimbrel_wire::StopReason;

use crate::agent::Agent;
use crate::compaction::auto_compact;
use crate::context::plan_mode::CallPosition;
use crate::conversation::reload::HeldText;
use crate::input_queue::SteeringPoint;
use crate::next_step::{self, Continuation, NextStep, TurnEnd, TurnEvent, TurnState};
use crate::permission_checker::EndTurn;
use crate::prompt_submission::SubmissionError;
use crate::structured_output;
use crate::tool_scheduler::ToolScheduler;
use finish::finish_turn;
use open_calls::TurnStart;
use run_tools::run_tools;
use steering::add_prompts;
use stream_reply::{ReplyOutcome, stream_reply};

/// Recorded when a turn is interrupted while the model replies.
pub(crate) const INTERRUPTED_TEXT: &str = "[Request interrupted by user]";

/// Outcome of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    /// The last text of the model.
    pub text: String,
    /// Stop reason of the last reply.
    pub stop_reason: Option<StopReason>,
    /// The last model error, if there was one.
    pub error: Option<ModelError>,
    /// One, plus one for each tool result.
    pub num_turns: u32,
    /// From the start of the turn to the first event of the first reply.
    pub time_to_first_token: Option<Duration>,
    /// The structured output, if the host asked for one.
    pub structured_output: Option<Value>,
    /// The tool call that a hook deferred, if there is one.
    pub hook_deferred_call: Option<Box<Value>>,
    /// Whether the model replied with at least one block.
    pub has_content: bool,
    /// Name of the built-in command that ran in place of a turn without an answer.
    pub local_command: Option<&'static str>,
}

/// Runs a turn. The prompt is already in the conversation.
pub async fn run(agent: &mut Agent, cancel: &CancellationToken) -> TurnOutcome {
    run_from(agent, TurnStart::ModelCall, cancel).await
}

/// Runs the open calls of the last reply and continues its turn. `held` are texts that the model gets after the results.
pub async fn run_open_calls(
    agent: &mut Agent,
    calls: Vec<OpenCall>,
    held: Vec<HeldText>,
    cancel: &CancellationToken,
) -> TurnOutcome {
    run_from(agent, TurnStart::OpenCalls { calls, held }, cancel).await
}

async fn run_from(agent: &mut Agent, start: TurnStart, cancel: &CancellationToken) -> TurnOutcome {
    let mut outcome = TurnOutcome::new(TurnEnd::Done);
    agent.structured_output.begin_turn();
    agent.fallback_models.begin_turn();
    let mut state = initial_state(agent);
    let mut scheduler = ToolScheduler::new(Arc::clone(&agent.tool_env));
    let (mut next, mut held) = start.begin(agent, &mut scheduler, &mut outcome).await;
    let mut stop_blocks = 0;
    let started = clock::monotonic();
    hooks::notify_instructions_loaded(agent, cancel).await;
    loop {
        if matches!(next, NextStep::CallModel | NextStep::Continue(_)) {
            agent.conversation.push_held(std::mem::take(&mut held));
        }
        prepare_conversation(agent, next, cancel).await;
        match next {
            NextStep::CallModel | NextStep::Continue(_) if agent.tool_env.checker.hooks.is_stopped() => {
                state.event = TurnEvent::ToolsRan { end_turn: Some(EndTurn::Hook) };
            }
            NextStep::CallModel | NextStep::Continue(_) => {
                prepare_request(agent, next, &mut state).await;
                scheduler = ToolScheduler::new(Arc::clone(&agent.tool_env));
                state.model_calls += 1;
                let reply = stream_reply(agent, &mut scheduler, cancel).await;
                outcome.time_to_first_token =
                    outcome.time_to_first_token.or_else(|| reply.first_event_at.map(|at| at - started));
                state.event = reply.to_turn_event(scheduler.call_count());
                match state.event {
                    TurnEvent::Replied { .. } => agent.compaction_state.record_reply(),
                    // A rejected call that is repeated does not count.
                    TurnEvent::Unavailable | TurnEvent::ContextTooLong => state.model_calls -= 1,
                    _ => {}
                }
                outcome.apply_reply(reply);
            }
            NextStep::UseFallback => {
                agent.switch_to_fallback(outcome.error.as_ref()).await;
                next = NextStep::CallModel;
                continue;
            }
            NextStep::Compact => {
                state.event = TurnEvent::Compacted {
                    succeeded: auto_compact::compact_after_rejection(agent, cancel).await,
                };
            }
            NextStep::RunTools => {
                if agent.conversation.is_main() {
                    agent.record_view();
                }
                let end_turn = Box::pin(run_tools(agent, &mut scheduler, &mut outcome, cancel)).await;
                state.event = TurnEvent::ToolsRan { end_turn };
                agent.inject_nested_instructions();
                agent.notify_progress().await;
                hooks::notify_instructions_loaded(agent, cancel).await;
                state.continuations = 0;
            }
            NextStep::End(TurnEnd::Done)
                if state.can_go_on_with_prompt()
                    && Box::pin(add_prompts(agent, SteeringPoint::AtEnd, cancel)).await =>
            {
                state.continuations = 0;
                state.event = TurnEvent::PromptAdded;
            }
            NextStep::End(TurnEnd::Done)
                if let Some(text) =
                    stop_hooks::run_stop_hooks(agent, &outcome, stop_blocks, cancel).await =>
            {
                stop_blocks += 1;
                agent.conversation.push_synthetic(&text).await;
                state.event = TurnEvent::StopBlocked;
            }
            NextStep::End(end) => {
                outcome.end = end;
                Box::pin(finish_turn(agent, scheduler, &mut outcome)).await;
                agent.conversation.push_held(held);
                return outcome;
            }
        }
        state.aborted = cancel.is_cancelled();
        state.structured_output = agent.structured_output.requirement();
        state.has_conflict = agent.conversation.transcript_writer().has_conflict();
        state.over_budget = agent.ledger.is_budget_exhausted();
        state.has_fallback = agent.fallback_models.has_next(&agent.runtime_settings.current().model);
        state.can_compact = auto_compact::can_compact(agent);
        next = next_step::next_step(&state);
    }
}

/// State of a turn before its first event.
fn initial_state(agent: &Agent) -> TurnState {
    TurnState {
        event: TurnEvent::Failed,
        aborted: false,
        model_calls: 0,
        max_turns: agent.limits.max_turns,
        continuations: 0,
        structured_output: agent.structured_output.requirement(),
        has_conflict: false,
        over_budget: false,
        has_fallback: false,
        can_compact: false,
    }
}

/// Before a model call: adds prompts that came in, and compacts the conversation if it is long. A reply that is
/// continued takes no prompts.
async fn prepare_conversation(agent: &mut Agent, next: NextStep, cancel: &CancellationToken) {
    if next == NextStep::CallModel {
        Box::pin(add_prompts(agent, SteeringPoint::BeforeModelCall, cancel)).await;
    }
    if matches!(next, NextStep::CallModel | NextStep::Continue(_)) {
        auto_compact::compact_if_needed(agent, cancel).await;
    }
}

/// Adds what the model must know for the next call.
async fn prepare_request(agent: &mut Agent, next: NextStep, state: &mut TurnState) {
    if let NextStep::Continue(continuation) = next {
        begin_continuation(agent, continuation, state).await;
    }
    hooks::inject_async_results(agent).await;
    if next != NextStep::Continue(Continuation::Paused) {
        agent.inject_plan_reminder(CallPosition::from_call_count(state.model_calls));
    }
    agent.refresh_tools();
}

/// Counts a continuation and adds the message that asks the model to continue.
async fn begin_continuation(agent: &mut Agent, continuation: Continuation, state: &mut TurnState) {
    match continuation {
        Continuation::MissingOutput => agent.structured_output.record_reminder(),
        Continuation::OutputLimit | Continuation::ConnectionCut | Continuation::Paused => {
            state.continuations += 1;
        }
    }
    if let Some(text) = continuation_text(continuation) {
        agent.conversation.push_synthetic(text).await;
    }
}

impl TurnOutcome {
    /// An outcome without text.
    pub fn new(end: TurnEnd) -> Self {
        let (text, stop_reason, error) = (String::new(), None, None);
        let (time_to_first_token, structured_output, hook_deferred_call) = (None, None, None);
        Self {
            end,
            text,
            stop_reason,
            error,
            num_turns: 1,
            time_to_first_token,
            structured_output,
            hook_deferred_call,
            has_content: false,
            local_command: None,
        }
    }

    fn apply_reply(&mut self, reply: ReplyOutcome) {
        if let Some(text) = reply.text {
            self.text = text;
        }
        self.has_content |= reply.has_content;
        self.stop_reason = reply.stop_reason;
        self.error = reply.error;
    }
}

impl From<SubmissionError> for TurnOutcome {
    fn from(error: SubmissionError) -> Self {
        match error {
            SubmissionError::Interrupted => Self::new(TurnEnd::AbortedStreaming),
            SubmissionError::Blocked(text) => Self { text, ..Self::new(TurnEnd::Done) },
            SubmissionError::Stopped => Self::new(TurnEnd::HookStopped),
        }
    }
}

/// The message that asks the model to continue, if one is needed.
fn continuation_text(continuation: Continuation) -> Option<&'static str> {
    Some(match continuation {
        Continuation::Paused => return None,
        Continuation::MissingOutput => structured_output::REMINDER,
        Continuation::OutputLimit => {
            "Your reply was cut off by the output limit. Continue exactly where it stopped, without repeating anything; do the rest in smaller pieces."
        }
        Continuation::ConnectionCut => {
            "The connection broke in the middle of your reply. Continue exactly where it stopped, without repeating anything."
        }
    })
}
