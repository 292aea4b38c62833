//! The error of a model request, classified by what the caller can do about it.

use std::time::Duration;

use serde::Deserialize;
use whimbrel_wire::message::FailureKind;

/// A failed attempt at a reply, or a failed HTTP request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The provider's message, or a description of the failure, in one line for the user.
    pub message: String,
    /// Delay that the provider asked for.
    pub retry_after: Option<Duration>,
    /// The provider's `x-should-retry` header.
    pub should_retry: Option<bool>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// Kinds of errors. The names are part of recordings and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No key, token or endpoint is configured.
    NoCredentials,
    /// The server rejected the key or token.
    Authentication,
    /// The key lacks the permission.
    Forbidden,
    /// The account has no credit.
    Billing,
    /// Too many requests; retry later.
    RateLimit,
    /// A spend limit is reached; waiting does not help.
    SpendLimit,
    /// The provider rejected the request as malformed.
    InvalidRequest,
    /// The conversation exceeds the context window of the model.
    PromptTooLong,
    /// The request body exceeds the size limit of the provider.
    TooLarge,
    /// The model does not exist, or not for this account.
    ModelNotFound,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed internally.
    Server,
    /// The connection could not be established, or broke before a response.
    Connection,
    /// The server's certificate is not trusted.
    Certificate,
    /// A timeout elapsed without data.
    Stalled,
    /// The stream ended before the reply was complete.
    Cut,
    /// The response is not an event stream.
    NotAStream,
    /// The events are invalid or out of order.
    Protocol,
    /// A scripted model has no reply left, or its script is invalid.
    Script,
    /// The recording ends here because the turn was interrupted when it was made.
    Interrupted,
}

impl ModelError {
    /// Creates an error with a kind and a message only.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            retry_after: None,
            should_retry: None,
            request_id: None,
        }
    }

    /// The kind as hosts know it, for the `error` field of an assistant message.
    pub fn failure_kind(&self) -> FailureKind {
        match self.kind {
            ModelErrorKind::NoCredentials | ModelErrorKind::Authentication | ModelErrorKind::Forbidden => {
                FailureKind::AuthenticationFailed
            }
            ModelErrorKind::Billing | ModelErrorKind::SpendLimit => FailureKind::BillingError,
            ModelErrorKind::RateLimit => FailureKind::RateLimit,
            ModelErrorKind::InvalidRequest | ModelErrorKind::PromptTooLong | ModelErrorKind::TooLarge => {
                FailureKind::InvalidRequest
            }
            ModelErrorKind::ModelNotFound => FailureKind::ModelNotFound,
            // Hosts have no word for a provider that is not reached; as with one that fails, a later request may succeed.
            ModelErrorKind::Overloaded
            | ModelErrorKind::Server
            | ModelErrorKind::Connection
            | ModelErrorKind::Stalled
            | ModelErrorKind::Cut => FailureKind::ServerError,
            ModelErrorKind::Certificate
            | ModelErrorKind::NotAStream
            | ModelErrorKind::Protocol
            | ModelErrorKind::Script
            | ModelErrorKind::Interrupted => FailureKind::Unknown,
        }
    }
}

/// Reads the provider's request id from the response headers.
pub fn parse_request_id<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let id = header("request-id").or_else(|| header("x-request-id"))?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Describes an error response without a message: the first line of a text body, or only the status for HTML and JSON.
#[cfg(feature = "http")]
pub(crate) fn describe_status(status: u16, body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() || line.starts_with(['<', '{', '[']) {
        return format!("The model's endpoint answered with status {status}.");
    }
    format!(
        "The model's endpoint answered with status {status}: {}",
        line.chars().take(300).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_kinds_tell_what_the_caller_can_do() {
        let rows = [
            (ModelErrorKind::Authentication, FailureKind::AuthenticationFailed),
            (ModelErrorKind::Overloaded, FailureKind::ServerError),
            (ModelErrorKind::Connection, FailureKind::ServerError),
            (ModelErrorKind::Stalled, FailureKind::ServerError),
            (ModelErrorKind::Cut, FailureKind::ServerError),
            (ModelErrorKind::Certificate, FailureKind::Unknown),
        ];
        for (kind, expected) in rows {
            assert_eq!(ModelError::new(kind, "x").failure_kind(), expected, "{kind:?}");
        }
    }
}
