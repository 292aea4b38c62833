//! How a turn ended, as the answer to its prompt. Pure.

use agent_client_protocol::v1::schema::{PromptResponse, StopReason, Usage};
use agent_client_protocol::{Error, ErrorCode};
use whimbrel::wire::content::{self, StopReason as ModelStop};
use whimbrel::wire::message::{FailureKind, Outcome, TerminalReason, TurnResult};

use crate::errors::internal_error;

/// Whether the editor has cancelled the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancellation {
    Requested,
    NotRequested,
}

/// The answer to the prompt of a turn.
pub(crate) fn prompt_answer(
    result: &TurnResult,
    failure: Option<&FailureKind>,
    cancellation: Cancellation,
) -> Result<PromptResponse, Error> {
    let answer = |reason| Ok(PromptResponse::new(reason).usage(usage(&result.usage)));
    if result.is_error && cancellation == Cancellation::Requested {
        return answer(StopReason::Cancelled);
    }
    match (&result.subtype, &result.terminal_reason) {
        (_, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools)) => {
            answer(StopReason::Cancelled)
        }
        (Outcome::Success, _) if !result.is_error => answer(match result.stop_reason {
            Some(ModelStop::Refusal) => StopReason::Refusal,
            Some(ModelStop::MaxTokens) => StopReason::MaxTokens,
            _ => StopReason::EndTurn,
        }),
        (
            Outcome::ErrorMaxTurns | Outcome::ErrorMaxBudgetUsd | Outcome::ErrorMaxStructuredOutputRetries,
            _,
        ) => answer(StopReason::MaxTurnRequests),
        (Outcome::ErrorDuringExecution, None) => answer(StopReason::Cancelled),
        _ if result.stop_reason == Some(ModelStop::Refusal) => answer(StopReason::Refusal),
        _ => Err(failure_error(result, failure)),
    }
}

/// A failed turn: the provider's sentence, with the code for a missing login if the key is the reason.
fn failure_error(result: &TurnResult, failure: Option<&FailureKind>) -> Error {
    let texts = result.errors.iter().flatten().chain(&result.result);
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    let message =
        if texts.is_empty() { "the turn failed for an unknown reason".to_owned() } else { texts.join("\n") };
    let is_about_key = matches!(
        failure,
        Some(
            FailureKind::AuthenticationFailed
                | FailureKind::OauthOrgNotAllowed
                | FailureKind::CloudCredentialError
        )
    );
    if is_about_key { Error::new(ErrorCode::AUTH_REQUIRED, message) } else { internal_error(message) }
}

fn usage(usage: &content::Usage) -> Usage {
    let cached = usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    let total = usage.input_tokens + usage.output_tokens + cached;
    Usage::new(total, usage.input_tokens, usage.output_tokens)
        .cached_read_tokens(usage.cache_read_input_tokens)
        .cached_write_tokens(usage.cache_creation_input_tokens)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Name, fields of the result, failure, cancellation; stop reason, or code and text of the error.
    type Row =
        (&'static str, Value, Option<FailureKind>, Cancellation, Result<StopReason, (i32, &'static str)>);

    fn result(changes: &Value) -> TurnResult {
        let mut value = json!({"subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1});
        value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn results_become_stop_reasons_and_errors() {
        use Cancellation::{NotRequested, Requested};
        let api_error = json!({"is_error": true, "terminal_reason": "api_error", "result": "overloaded"});
        let aborted = json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools"});
        let rows: [Row; 11] = [
            ("success", json!({}), None, NotRequested, Ok(StopReason::EndTurn)),
            ("cancelled too late", json!({}), None, Requested, Ok(StopReason::EndTurn)),
            ("refusal", json!({"stop_reason": "refusal"}), None, NotRequested, Ok(StopReason::Refusal)),
            (
                "limit of tokens",
                json!({"stop_reason": "max_tokens"}),
                None,
                NotRequested,
                Ok(StopReason::MaxTokens),
            ),
            (
                "limit of turns",
                json!({"subtype": "error_max_turns", "is_error": true}),
                None,
                NotRequested,
                Ok(StopReason::MaxTurnRequests),
            ),
            ("interrupted", aborted.clone(), None, NotRequested, Ok(StopReason::Cancelled)),
            ("cancelled", aborted, None, Requested, Ok(StopReason::Cancelled)),
            ("error after a cancel", api_error.clone(), None, Requested, Ok(StopReason::Cancelled)),
            (
                "provider",
                api_error.clone(),
                Some(FailureKind::Overloaded),
                NotRequested,
                Err((-32603, "overloaded")),
            ),
            (
                "key",
                json!({"is_error": true, "terminal_reason": "api_error", "result": "no key"}),
                Some(FailureKind::AuthenticationFailed),
                NotRequested,
                Err((-32000, "no key")),
            ),
            (
                "reasons",
                json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "model_error", "errors": ["a", "b"]}),
                None,
                NotRequested,
                Err((-32603, "a\nb")),
            ),
        ];
        for (name, changes, failure, cancellation, expected) in rows {
            let found = prompt_answer(&result(&changes), failure.as_ref(), cancellation);
            let found = found.map(|answer| answer.stop_reason);
            let found = found.map_err(|error| (error.code.value(), error.message));
            assert_eq!(found, expected.map_err(|(code, text)| (code, text.to_owned())), "{name}");
        }
    }
}
