//! The `result` frame that ends every turn, pure.

use std::time::Duration;

use whimbrel_wire::message::{Denial, Origin, Outcome, TerminalReason, TurnResult};

use crate::agent::Limits;
use crate::cost::Spend;
use crate::turn::Ending;
use crate::verdict::End;

/// What a result is made of.
pub struct Report<'a> {
    /// How the turn went.
    pub ending: Ending,
    /// What it cost.
    pub spend: &'a Spend,
    /// Calls that were not permitted.
    pub denials: Vec<Denial>,
    /// How long it took.
    pub took: Duration,
    /// What started it, when it was not a prompt.
    pub origin: Option<Origin>,
    /// The limits, for the error texts.
    pub limits: &'a Limits,
    /// Which result of the session this is, from 0.
    pub index: u32,
    /// How many prompts wait.
    pub queued: usize,
    /// The session.
    pub session_id: String,
    /// The message's own id.
    pub uuid: String,
}

/// The result frame of a turn.
pub fn report(report: Report<'_>) -> TurnResult {
    let Report { ending, spend, denials, took, origin, limits, index, queued, session_id, uuid } = report;
    let (subtype, is_error, terminal, error) = classify(ending.end, limits);
    let succeeded = subtype == Outcome::Success;
    TurnResult {
        subtype,
        is_error,
        duration_ms: millis(took),
        duration_api_ms: millis(spend.turn_api),
        num_turns: ending.num_turns,
        result: succeeded.then_some(ending.text),
        errors: (!succeeded).then(|| error.into_iter().collect()),
        stop_reason: ending.stop_reason,
        session_id,
        total_cost_usd: spend.dollars(),
        usage: spend.turn.clone(),
        model_usage: spend.models.iter().cloned().collect(),
        permission_denials: denials,
        structured_output: ending.structured,
        terminal_reason: Some(terminal),
        api_error_status: ending.fault.and_then(|fault| fault.status).filter(|_| is_error),
        origin,
        ttft_ms: ending.first_token.map(millis),
        queued_turn_count: u32::try_from(queued).ok(),
        result_index: Some(index),
        user_message_uuid: None,
        user_message_uuids: None,
        local_command: None,
        startup_failure_reason: None,
        deferred_tool_use: ending.deferred.map(|call| *call),
        uuid,
    }
}

/// The result of a session that could not be started.
pub fn not_started(error: String, session_id: String, uuid: String) -> TurnResult {
    let ending = Ending { num_turns: 0, ..Ending::new(End::AbortedStreaming) };
    let result = report(Report {
        ending,
        spend: &Spend::default(),
        denials: Vec::new(),
        took: Duration::ZERO,
        origin: None,
        limits: &Limits::default(),
        index: 0,
        queued: 0,
        session_id,
        uuid,
    });
    TurnResult {
        queued_turn_count: None,
        errors: Some(vec![error]),
        terminal_reason: Some(TerminalReason::TurnSetupFailed),
        ..result
    }
}

fn classify(end: End, limits: &Limits) -> (Outcome, bool, TerminalReason, Option<String>) {
    let interrupted = || Some("The turn was interrupted.".to_owned());
    match end {
        End::Done => (Outcome::Success, false, TerminalReason::Completed, None),
        End::HookStopped => (Outcome::Success, false, TerminalReason::HookStopped, None),
        End::Deferred => (Outcome::Success, false, TerminalReason::ToolDeferred, None),
        End::Refused => (Outcome::Success, true, TerminalReason::ModelError, None),
        End::ApiFailure => (Outcome::Success, true, TerminalReason::ApiError, None),
        End::OutputLimit | End::Stalled => (Outcome::Success, true, TerminalReason::ModelError, None),
        End::AbortedStreaming => {
            (Outcome::ErrorDuringExecution, true, TerminalReason::AbortedStreaming, interrupted())
        }
        End::AbortedTools => {
            (Outcome::ErrorDuringExecution, true, TerminalReason::AbortedTools, interrupted())
        }
        End::TooLong => (Outcome::Success, true, TerminalReason::PromptTooLong, None),
        End::Broke => {
            let text = format!("Reached the maximum budget (${}).", limits.max_budget.unwrap_or_default());
            (Outcome::ErrorMaxBudgetUsd, true, TerminalReason::BudgetExhausted, Some(text))
        }
        End::NoAnswer => {
            let text = "The model gave no answer in the shape that was asked for.".to_owned();
            let reason = TerminalReason::StructuredOutputRetryExhausted;
            (Outcome::ErrorMaxStructuredOutputRetries, true, reason, Some(text))
        }
        End::MaxTurns => {
            let text =
                format!("Reached the maximum number of turns ({}).", limits.max_turns.unwrap_or_default());
            (Outcome::ErrorMaxTurns, true, TerminalReason::MaxTurns, Some(text))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
