//! What can go wrong between us and a model, sorted by what the caller can do about it.

use std::time::Duration;

use whimbrel_wire::message::FailureKind;

/// A failed attempt at a reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What the provider said, or what happened, in one line for a person.
    pub message: String,
    /// How long the provider asked us to wait.
    pub retry_after: Option<Duration>,
    /// The provider's own word (`x-should-retry`) on whether to try again.
    pub should_retry: Option<bool>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// There is no key, token or endpoint to ask with.
    NoCredentials,
    /// The key or token was refused.
    Authentication,
    /// The key may not do this.
    Forbidden,
    /// The account cannot pay.
    Billing,
    /// Too many requests; wait.
    RateLimit,
    /// A spend limit is reached; waiting does not help.
    SpendLimit,
    /// The provider refused the request as malformed.
    InvalidRequest,
    /// The conversation does not fit the model's window.
    PromptTooLong,
    /// The request's body is larger than the provider takes.
    TooLarge,
    /// There is no such model, or not for this account.
    ModelNotFound,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The connection could not be made, or broke before an answer.
    Connection,
    /// The server's certificate is not trusted.
    Certificate,
    /// Nothing came for too long.
    Stalled,
    /// The stream ended before the reply did.
    Cut,
    /// The answer is not an event stream.
    NotAStream,
    /// The events make no sense together.
    Protocol,
    /// A scripted model had no reply left, or its script is bad.
    Script,
}

impl Fault {
    /// A fault with a kind and a text only.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), retry_after: None, should_retry: None, request_id: None }
    }

    /// The kind as hosts know it, in the `error` field of an assistant message.
    pub fn failure(&self) -> FailureKind {
        match self.kind {
            FaultKind::NoCredentials | FaultKind::Authentication | FaultKind::Forbidden => {
                FailureKind::AuthenticationFailed
            }
            FaultKind::Billing | FaultKind::SpendLimit => FailureKind::BillingError,
            FaultKind::RateLimit => FailureKind::RateLimit,
            FaultKind::InvalidRequest | FaultKind::PromptTooLong | FaultKind::TooLarge => FailureKind::InvalidRequest,
            FaultKind::ModelNotFound => FailureKind::ModelNotFound,
            FaultKind::Overloaded | FaultKind::Server => FailureKind::ServerError,
            FaultKind::Connection
            | FaultKind::Certificate
            | FaultKind::Stalled
            | FaultKind::Cut
            | FaultKind::NotAStream
            | FaultKind::Protocol
            | FaultKind::Script => FailureKind::Unknown,
        }
    }
}
