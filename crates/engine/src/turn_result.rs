//! Builds the `result` frame that ends every turn (pure).

use std::time::Duration;

use whimbrel_session_store::transcript_writer::CONFLICT_TEXT;
use whimbrel_tools::cost::Spend;
use whimbrel_wire::message::{Denial, Origin, Outcome, TerminalReason, TurnResult};

use crate::agent::AgentLimits;
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;

/// Error that marks a turn interrupted before the model replied. Clients of the official engine look for it to tell a
/// cancelled turn from a failed one.
const ABORTED_WITHOUT_CONTENT: &str =
    "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null";

/// Input of a result frame.
pub struct ResultInput<'a> {
    pub outcome: TurnOutcome,
    /// Cost of the session so far.
    pub spend: &'a Spend,
    /// Denied tool calls.
    pub denials: Vec<Denial>,
    pub duration: Duration,
    /// Origin of the turn, if the host stated it or a notification started the turn.
    pub origin: Option<Origin>,
    /// Uuids that the host gave the prompts of the turn.
    pub prompt_ids: Vec<String>,
    /// The limits, for error texts.
    pub limits: &'a AgentLimits,
    /// Index of the result in the session, from 0.
    pub index: u32,
    /// Number of queued prompts.
    pub queued: usize,
    pub session_id: String,
    pub uuid: String,
}

pub fn build_result(input: ResultInput<'_>) -> TurnResult {
    let ResultInput {
        outcome,
        spend,
        denials,
        duration,
        origin,
        prompt_ids,
        limits,
        index,
        queued,
        session_id,
        uuid,
    } = input;
    let (subtype, is_error, terminal, error) = classify(outcome.end, limits);
    let diagnostic = (outcome.end == TurnEnd::AbortedStreaming && !outcome.has_content)
        .then(|| ABORTED_WITHOUT_CONTENT.to_owned());
    let succeeded = subtype == Outcome::Success;
    TurnResult {
        subtype,
        is_error,
        duration_ms: millis(duration),
        duration_api_ms: millis(spend.turn_api_time),
        num_turns: outcome.num_turns,
        result: succeeded.then_some(outcome.text),
        errors: (!succeeded).then(|| error.into_iter().chain(diagnostic).collect()),
        stop_reason: outcome.stop_reason,
        session_id,
        total_cost_usd: spend.total_usd(),
        usage: spend.turn_usage.clone(),
        model_usage: spend.models.iter().cloned().collect(),
        permission_denials: denials,
        structured_output: outcome.structured_output,
        terminal_reason: Some(terminal),
        api_error_status: outcome.error.and_then(|cause| cause.status).filter(|_| is_error),
        origin,
        ttft_ms: outcome.time_to_first_token.map(millis),
        queued_turn_count: u32::try_from(queued).ok(),
        result_index: Some(index),
        user_message_uuid: prompt_ids.first().cloned(),
        user_message_uuids: (prompt_ids.len() > 1).then_some(prompt_ids),
        local_command: outcome.local_command.map(str::to_owned),
        startup_failure_reason: None,
        deferred_tool_use: outcome.hook_deferred_call.map(|call| *call),
        uuid,
    }
}

/// The result of a session that could not be started.
pub fn setup_error_result(error: String, session_id: String, uuid: String) -> TurnResult {
    let outcome = TurnOutcome { num_turns: 0, ..TurnOutcome::new(TurnEnd::AbortedStreaming) };
    let result = build_result(ResultInput {
        outcome,
        spend: &Spend::default(),
        denials: Vec::new(),
        duration: Duration::ZERO,
        origin: None,
        prompt_ids: Vec::new(),
        limits: &AgentLimits::default(),
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

fn classify(end: TurnEnd, limits: &AgentLimits) -> (Outcome, bool, TerminalReason, Option<String>) {
    let interrupted = || Some("The turn was interrupted.".to_owned());
    match end {
        TurnEnd::Done => (Outcome::Success, false, TerminalReason::Completed, None),
        TurnEnd::HookStopped => (Outcome::Success, false, TerminalReason::HookStopped, None),
        TurnEnd::HookDeferred => (Outcome::Success, false, TerminalReason::ToolDeferred, None),
        TurnEnd::Refused => (Outcome::Success, true, TerminalReason::ModelError, None),
        TurnEnd::ApiError => (Outcome::Success, true, TerminalReason::ApiError, None),
        TurnEnd::OutputLimit | TurnEnd::Stalled => (Outcome::Success, true, TerminalReason::ModelError, None),
        TurnEnd::AbortedStreaming => {
            (Outcome::ErrorDuringExecution, true, TerminalReason::AbortedStreaming, interrupted())
        }
        TurnEnd::AbortedTools => {
            (Outcome::ErrorDuringExecution, true, TerminalReason::AbortedTools, interrupted())
        }
        TurnEnd::ContextTooLong => (Outcome::Success, true, TerminalReason::PromptTooLong, None),
        TurnEnd::BudgetExceeded => {
            let text =
                format!("Reached the maximum budget (${}).", limits.max_budget_usd.unwrap_or_default());
            (Outcome::ErrorMaxBudgetUsd, true, TerminalReason::BudgetExhausted, Some(text))
        }
        TurnEnd::NoStructuredOutput => {
            let text = "The model gave no valid structured output.".to_owned();
            let reason = TerminalReason::StructuredOutputRetryExhausted;
            (Outcome::ErrorMaxStructuredOutputRetries, true, reason, Some(text))
        }
        TurnEnd::Conflict => (
            Outcome::ErrorDuringExecution,
            true,
            TerminalReason::SessionConflict,
            Some(CONFLICT_TEXT.to_owned()),
        ),
        TurnEnd::MaxTurns => {
            let text =
                format!("Reached the maximum number of turns ({}).", limits.max_turns.unwrap_or_default());
            (Outcome::ErrorMaxTurns, true, TerminalReason::MaxTurns, Some(text))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
