//! Finishes a turn: closes open tool calls and records errors and interruptions.

use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_wire::message::FailureKind;

use super::run_tools::{ToolRound, record_result};
use super::{INTERRUPTED_TEXT, TurnOutcome};
use super::{hooks, invoked_skills};
use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::tool_scheduler::ToolScheduler;

/// Finishes the turn: gives every tool call a result and records an interruption or error.
pub(super) async fn finish_turn(agent: &mut Agent, scheduler: ToolScheduler, outcome: &mut TurnOutcome) {
    let reason = match outcome.end {
        TurnEnd::BudgetExceeded => "the budget was used up",
        TurnEnd::HookStopped => "a hook ended the turn",
        TurnEnd::HookDeferred => "a tool call was deferred",
        TurnEnd::Conflict => "the session was continued elsewhere",
        TurnEnd::ApiError | TurnEnd::ContextTooLong => "the model failed",
        _ => "the turn was interrupted by the user",
    };
    let mut round = ToolRound::default();
    // When the session is stopped, the host may come back and resume what waits for its answer.
    let leaves_calls_open =
        agent.conversation.is_main() && agent.frame_sender.is_stopped() && scheduler.has_unstarted_calls();
    let cancelled = match leaves_calls_open {
        true => scheduler.cancel_started(reason),
        false => scheduler.cancel_all(reason),
    };
    for result in cancelled {
        if outcome.end == TurnEnd::BudgetExceeded {
            agent.conversation.close_unrun_call(result);
            continue;
        }
        record_result(agent, result, outcome, &mut round).await;
    }
    agent.inject_hook_context(&round.notes);
    let cancel = agent.tool_env.context.cancel.clone();
    invoked_skills::inject_invoked(agent, &cancel).await;
    match outcome.end {
        TurnEnd::AbortedStreaming | TurnEnd::AbortedTools if leaves_calls_open => {}
        TurnEnd::AbortedStreaming => agent.conversation.push_synthetic(INTERRUPTED_TEXT).await,
        TurnEnd::AbortedTools => {
            agent.conversation.push_synthetic("[Request interrupted by user for tool use]").await;
        }
        TurnEnd::ApiError => {
            let error = outcome
                .error
                .clone()
                .unwrap_or_else(|| ModelError::new(ModelErrorKind::Cut, "The reply was incomplete."));
            outcome.text = error_text(&error);
            if error.kind == ModelErrorKind::InvalidRequest {
                drop_rejected_input(agent).await;
            }
            agent.conversation.push_error(&outcome.text, error.failure_kind(), Some(&error)).await;
            hooks::run_stop_failure_hooks(agent, &error).await;
            outcome.error = Some(error);
        }
        TurnEnd::ContextTooLong => {
            let error = outcome.error.clone();
            if error.is_some() {
                drop_rejected_input(agent).await;
            }
            outcome.text = match &error {
                Some(error) => error_text(error),
                None => "The conversation exceeds the model's context window, and the reply was cut off. Shorten it with /compact, or start a new one.".into(),
            };
            agent.conversation.push_error(&outcome.text, FailureKind::InvalidRequest, error.as_ref()).await;
        }
        TurnEnd::OutputLimit => {
            outcome.text = "The reply hit the output limit repeatedly. Ask for less at a time, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.".into();
            agent.conversation.push_error(&outcome.text, FailureKind::MaxOutputTokens, None).await;
        }
        TurnEnd::Stalled => {
            outcome.text = "The provider paused the reply repeatedly and did not finish it. Try again, or ask for less at a time.".into();
            agent.conversation.push_error(&outcome.text, FailureKind::ServerError, None).await;
        }
        TurnEnd::Done => {
            outcome.structured_output = agent.structured_output.take_output();
            if let Some(answer) = &outcome.structured_output {
                outcome.text = answer.to_string();
            }
        }
        TurnEnd::Refused if outcome.text.is_empty() => outcome.text = "The model declined to answer.".into(),
        TurnEnd::HookStopped => outcome.text.clear(),
        TurnEnd::HookDeferred
        | TurnEnd::MaxTurns
        | TurnEnd::Refused
        | TurnEnd::NoStructuredOutput
        | TurnEnd::Conflict
        | TurnEnd::BudgetExceeded => {}
    }
    agent.conversation.end_turn().await;
}

/// Drops input that the provider rejected, so that it is not sent again, and injects the context anew.
async fn drop_rejected_input(agent: &mut Agent) {
    if !agent.conversation.roll_back() {
        return;
    }
    agent.inject_context();
    if agent.conversation.is_main() {
        let text = "The provider rejected the last input. It stays in the transcript, but is not sent to the model again, so that the session can continue.";
        agent.frame_sender.info(text).await;
    }
}

fn error_text(error: &ModelError) -> String {
    match error.status {
        Some(status) => format!("API Error: {status} {}", error.message),
        None => format!("API Error: {}", error.message),
    }
}
