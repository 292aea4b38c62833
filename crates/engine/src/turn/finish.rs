//! Finishes a turn: closes open tool calls and records errors and interruptions.

use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_wire::message::FailureKind;

use super::hooks::{self, inject_hook_context};
use super::run_tools::{ToolRound, record_result};
use super::{INTERRUPTED_TEXT, TurnOutcome};
use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::skills::agent_skills;
use crate::tool_scheduler::ToolScheduler;

/// Finishes the turn: gives every tool call a result and records an interruption or error.
pub(super) async fn finish_turn(agent: &mut Agent, workshop: ToolScheduler, ending: &mut TurnOutcome) {
    let why = match ending.end {
        TurnEnd::BudgetExceeded => "the budget was used up",
        TurnEnd::HookStopped => "a hook ended the turn",
        TurnEnd::Deferred => "a call was put off",
        TurnEnd::ApiError | TurnEnd::ContextTooLong => "the model failed",
        _ => "the turn was interrupted by the user",
    };
    let mut settled = ToolRound::default();
    for made in workshop.cancel_all(why) {
        if ending.end == TurnEnd::BudgetExceeded {
            agent.conversation.close_unrun_call(made);
            continue;
        }
        record_result(agent, made, ending, &mut settled).await;
    }
    inject_hook_context(agent, &settled.notes);
    let cancel = agent.tool_env.context.cancel.clone();
    agent_skills::inject_invoked(agent, &cancel).await;
    match ending.end {
        TurnEnd::AbortedStreaming => agent.conversation.push_synthetic(INTERRUPTED_TEXT).await,
        TurnEnd::AbortedTools => {
            agent.conversation.push_synthetic("[Request interrupted by user for tool use]").await
        }
        TurnEnd::ApiError => {
            let fault = ending
                .error
                .clone()
                .unwrap_or_else(|| ModelError::new(ModelErrorKind::Cut, "The reply broke off."));
            ending.text = error_text(&fault);
            if fault.kind == ModelErrorKind::InvalidRequest {
                drop_rejected_input(agent).await;
            }
            agent.conversation.push_error(&ending.text, fault.failure_kind(), Some(&fault)).await;
            hooks::run_stop_failure_hooks(agent, &fault).await;
            ending.error = Some(fault);
        }
        TurnEnd::ContextTooLong => {
            let fault = ending.error.clone();
            if fault.is_some() {
                drop_rejected_input(agent).await;
            }
            ending.text = match &fault {
                Some(fault) => error_text(fault),
                None => "The conversation is too long for the model's window, and the reply was cut at its end. Shorten it with /compact, or begin a new one.".into(),
            };
            agent.conversation.push_error(&ending.text, FailureKind::InvalidRequest, fault.as_ref()).await;
        }
        TurnEnd::OutputLimit => {
            ending.text = "The reply hit the output limit again and again. Ask for less at a time, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.".into();
            agent.conversation.push_error(&ending.text, FailureKind::MaxOutputTokens, None).await;
        }
        TurnEnd::Stalled => {
            ending.text = "The provider paused the reply again and again and never finished it. Ask once more, or for less at a time.".into();
            agent.conversation.push_error(&ending.text, FailureKind::ServerError, None).await;
        }
        TurnEnd::Done => {
            ending.structured_output = agent.structured_output.take_output();
            if let Some(answer) = &ending.structured_output {
                ending.text = answer.to_string();
            }
        }
        TurnEnd::Refused if ending.text.is_empty() => ending.text = "The model declined to answer.".into(),
        TurnEnd::HookStopped => ending.text.clear(),
        TurnEnd::Deferred
        | TurnEnd::MaxTurns
        | TurnEnd::Refused
        | TurnEnd::NoStructuredOutput
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
        let text = "The provider refuses what came last. It stays in the transcript, but the model is not sent it again, so that the session can go on.";
        agent.frame_sender.info(text).await;
    }
}

fn error_text(fault: &ModelError) -> String {
    match fault.status {
        Some(status) => format!("API Error: {status} {}", fault.message),
        None => format!("API Error: {}", fault.message),
    }
}
