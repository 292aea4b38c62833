//! What can go wrong between us and a model, sorted by what the caller can do about it.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use whimbrel_wire::message::FailureKind;

/// A failed attempt at a reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
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
    /// A recording ends here because the turn was interrupted then.
    Interrupted,
}

impl ModelError {
    /// A fault with a kind and a text only.
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

    /// Adds what the headers of the answer say: how long to wait, whether to try again, the request's id.
    pub fn with_headers<'a>(self, header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Self {
        Self {
            retry_after: parse_retry_after(&header, now),
            should_retry: header("x-should-retry").and_then(|word| word.trim().parse().ok()),
            request_id: parse_request_id(header),
            ..self
        }
    }

    /// The kind as hosts know it, in the `error` field of an assistant message.
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
            ModelErrorKind::Overloaded | ModelErrorKind::Server => FailureKind::ServerError,
            ModelErrorKind::Connection
            | ModelErrorKind::Certificate
            | ModelErrorKind::Stalled
            | ModelErrorKind::Cut
            | ModelErrorKind::NotAStream
            | ModelErrorKind::Protocol
            | ModelErrorKind::Script
            | ModelErrorKind::Interrupted => FailureKind::Unknown,
        }
    }
}

/// The provider's id of a request, as its headers tell it.
pub fn parse_request_id<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let id = header("request-id").or_else(|| header("x-request-id"))?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// How long to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. What makes no sense counts as absent.
fn parse_retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let number = |name| header(name).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds =
        number("retry-after-ms").map(|milliseconds| milliseconds / 1000.0).or_else(|| number("retry-after"));
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => httpdate::parse_http_date(header("retry-after")?.trim()).ok()?.duration_since(now).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_is_read_in_every_form_and_nonsense_is_ignored() {
        let now = httpdate::parse_http_date("Sun, 15 Nov 2026 10:00:00 GMT").unwrap();
        let seconds = |s| Some(Duration::from_secs(s));
        type Headers = &'static [(&'static str, &'static str)];
        let table: &[(&str, Headers, Option<Duration>)] = &[
            ("absent", &[], None),
            ("seconds", &[("retry-after", "3")], seconds(3)),
            ("zero", &[("retry-after", "0")], seconds(0)),
            ("a fraction", &[("retry-after", "1.5")], Some(Duration::from_millis(1500))),
            (
                "milliseconds win",
                &[("retry-after-ms", "250"), ("retry-after", "3")],
                Some(Duration::from_millis(250)),
            ),
            ("a date", &[("retry-after", "Sun, 15 Nov 2026 10:00:07 GMT")], seconds(7)),
            ("a date in the past", &[("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT")], None),
            ("negative", &[("retry-after", "-3")], None),
            ("no number", &[("retry-after", "soon")], None),
            ("not finite", &[("retry-after", "inf")], None),
            ("absurd", &[("retry-after", "1e300")], None),
        ];
        for (name, headers, expected) in table {
            let header =
                |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            assert_eq!(parse_retry_after(header, now), *expected, "{name}");
        }
    }

    #[test]
    fn the_provider_has_a_word_on_trying_again() {
        for (word, expected) in [("true", Some(true)), ("false", Some(false)), ("perhaps", None)] {
            let header = |name: &str| (name == "x-should-retry").then_some(word);
            let fault = ModelError::new(ModelErrorKind::Server, "").with_headers(header, SystemTime::UNIX_EPOCH);
            assert_eq!(fault.should_retry, expected, "{word}");
        }
    }
}
