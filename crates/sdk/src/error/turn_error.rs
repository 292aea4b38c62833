//! Why a turn has no answer.

use whimbrel_wire::message::{FailureKind, TurnResult};

use super::Error;

/// Why a turn has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// A model call failed for good.
    #[error("{0}")]
    Api(ApiError),
    /// The limit on model calls was reached; see [`Agent::max_turns`](crate::Agent::max_turns).
    #[error("the limit on model calls was reached")]
    MaxTurns(Box<TurnResult>),
    /// The budget is used up; see [`Agent::max_budget_usd`](crate::Agent::max_budget_usd).
    #[error("the budget is used up (${:.4} spent)", .0.total_cost_usd)]
    BudgetExceeded(Box<TurnResult>),
    /// The turn was interrupted.
    #[error("the turn was interrupted")]
    Interrupted(Box<TurnResult>),
    /// The model gave no output of the required format.
    #[error("the model gave no output of the required format{}", detail(.reason))]
    OutputFormat {
        /// What did not match, if that is known.
        reason: Option<String>,
        /// The result.
        result: Box<TurnResult>,
    },
    /// A hook blocked the prompt or stopped the turn.
    #[error("a hook stopped the turn{}", detail(.reason))]
    Hook {
        /// Its reason, if it gave one.
        reason: Option<String>,
        /// The result.
        result: Box<TurnResult>,
    },
    /// The session was continued elsewhere, so that nothing more can be added to it here. Open it again to go on.
    #[error("the session was continued elsewhere: open it again")]
    Conflict(Box<TurnResult>),
    /// The prompt was taken back before its turn began; see [`Turn::interrupt`](crate::Turn::interrupt).
    #[error("the prompt was taken back before its turn began")]
    PromptCancelled,
    /// The turn failed for another reason; see [`TurnResult::terminal_reason`].
    #[error("the turn failed: {}", describe(.0))]
    Failed(Box<TurnResult>),
    /// The session could not be opened, or has ended.
    #[error(transparent)]
    Session(Error),
}

/// A model call that failed for good, after its retries.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ApiError {
    /// The kind of failure.
    pub kind: FailureKind,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// The provider's id of the request, if there is one.
    pub request_id: Option<String>,
    /// What the provider said.
    pub message: String,
    /// The result.
    pub result: Box<TurnResult>,
}

impl ApiError {
    /// Returns whether the same request may succeed later: the provider was overloaded, limited the rate, failed, or
    /// was not reached.
    #[doc(alias = "retry")]
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::RateLimit | FailureKind::Overloaded | FailureKind::ServerError => true,
            _ => self.status.is_some_and(|status| matches!(status, 408 | 409 | 429 | 500..)),
        }
    }
}

impl TurnError {
    /// The result frame, if the turn ended with one.
    pub fn result(&self) -> Option<&TurnResult> {
        match self {
            Self::Api(error) => Some(&error.result),
            Self::MaxTurns(result)
            | Self::BudgetExceeded(result)
            | Self::Interrupted(result)
            | Self::OutputFormat { result, .. }
            | Self::Hook { result, .. }
            | Self::Conflict(result)
            | Self::Failed(result) => Some(result),
            Self::PromptCancelled | Self::Session(_) => None,
        }
    }

    /// Returns whether the same prompt may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_retryable())
    }
}

impl From<Error> for TurnError {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
}

fn detail(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// What a failed result says.
fn describe(result: &TurnResult) -> String {
    let texts = result.errors.iter().flatten().chain(&result.result);
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { "the engine gave no reason".to_owned() } else { texts.join("; ") }
}
