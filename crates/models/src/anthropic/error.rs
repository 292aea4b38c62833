//! Decodes errors of the Messages API, pure: status and error object become a [`ModelError`].

use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind, describe_status};

/// Decodes a response with an error status.
pub(super) fn from_status(status: u16, body: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let body_fields = ErrorBody::parse(&text);
    let message = if body_fields.message.is_empty() {
        describe_status(status, &text)
    } else {
        body_fields.message.clone()
    };
    ModelError { status: Some(status), ..ModelError::new(body_fields.kind(Some(status)), message) }
}

/// Decodes an `error` event.
pub(super) fn from_stream_event(data: &str) -> ModelError {
    let body_fields = ErrorBody::parse(data);
    let kind = body_fields.kind(None);
    let message = if body_fields.message.is_empty() {
        "The model's stream ended in an error.".to_owned()
    } else {
        body_fields.message
    };
    ModelError { request_id: body_fields.request_id, ..ModelError::new(kind, message) }
}

/// An error object, as far as it could be parsed.
struct ErrorBody {
    error_type: String,
    message: String,
    request_id: Option<String>,
    /// The whole text in lower case, for phrases in unexpected fields.
    lowercase_text: String,
}

impl ErrorBody {
    fn parse(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let error = if value["error"].is_object() { &value["error"] } else { &value };
        let first = |found: &[&Value]| found.iter().find_map(|value| value.as_str().map(str::to_owned));
        Self {
            error_type: first(&[&error["type"], &error["code"]]).unwrap_or_default(),
            message: first(&[&error["message"], &value["error"], &value["message"], &value["detail"]])
                .unwrap_or_default(),
            request_id: first(&[&value["request_id"]]),
            lowercase_text: text.to_lowercase(),
        }
    }

    /// Classifies the error by, in this order:
    /// 1. telling phrases, depending on the status; 2. the status; 3. the error type, where there is no status.
    fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| self.lowercase_text.contains(phrase));
        match status {
            Some(429) if says(&["spend_limit", "spend limit", "insufficient_quota"]) => {
                ModelErrorKind::SpendLimit
            }
            Some(400 | 413) | None if says(&["prompt is too long", "exceed context limit"]) => {
                ModelErrorKind::PromptTooLong
            }
            Some(400 | 403) if says(&["credit balance is too low"]) => ModelErrorKind::Billing,
            Some(429 | 500..) if self.error_type == "overloaded_error" => ModelErrorKind::Overloaded,
            Some(status) => kind_from_status(status),
            None => kind_from_type(&self.error_type),
        }
    }
}

fn kind_from_status(status: u16) -> ModelErrorKind {
    match status {
        401 => ModelErrorKind::Authentication,
        402 => ModelErrorKind::Billing,
        403 => ModelErrorKind::Forbidden,
        404 => ModelErrorKind::ModelNotFound,
        408 | 409 | 500..529 | 530.. => ModelErrorKind::Server,
        413 => ModelErrorKind::TooLarge,
        429 => ModelErrorKind::RateLimit,
        529 => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::InvalidRequest,
    }
}

fn kind_from_type(error_type: &str) -> ModelErrorKind {
    match error_type {
        "invalid_request_error" => ModelErrorKind::InvalidRequest,
        "authentication_error" => ModelErrorKind::Authentication,
        "billing_error" => ModelErrorKind::Billing,
        "permission_error" => ModelErrorKind::Forbidden,
        "not_found_error" => ModelErrorKind::ModelNotFound,
        "request_too_large" => ModelErrorKind::TooLarge,
        "rate_limit_error" => ModelErrorKind::RateLimit,
        "overloaded_error" => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(error_type: &str, message: &str) -> String {
        format!(
            r#"{{"type":"error","error":{{"type":"{error_type}","message":"{message}"}},"request_id":"req_1"}}"#
        )
    }

    #[test]
    fn status_and_text_determine_the_error_kind() {
        use ModelErrorKind::*;
        let table = [
            (400, "invalid_request_error", "no such field", InvalidRequest),
            (
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                PromptTooLong,
            ),
            (
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
                PromptTooLong,
            ),
            (400, "invalid_request_error", "Your credit balance is too low to access the API.", Billing),
            (401, "authentication_error", "invalid x-api-key", Authentication),
            (402, "billing_error", "pay", Billing),
            (403, "permission_error", "no", Forbidden),
            (404, "not_found_error", "model: claude-none", ModelNotFound),
            (408, "timeout_error", "slow", Server),
            (409, "conflict", "again", Server),
            (413, "request_too_large", "Request exceeds the maximum size", TooLarge),
            (422, "invalid_request_error", "no", InvalidRequest),
            (429, "rate_limit_error", "slow down", RateLimit),
            (429, "rate_limit_error", "enforced_spend_limit_reached", SpendLimit),
            (500, "api_error", "oh", Server),
            (503, "api_error", "oh", Server),
            (503, "overloaded_error", "Overloaded", Overloaded),
            (529, "overloaded_error", "Overloaded", Overloaded),
            (599, "", "", Server),
        ];
        for (status, error_type, message, expected) in table {
            let error = from_status(status, error(error_type, message).as_bytes());
            assert_eq!((error.kind, error.status), (expected, Some(status)), "{status} {message}");
            if !message.is_empty() {
                assert_eq!(error.message, message);
            }
        }
    }

    #[test]
    fn stream_error_is_classified_by_its_type() {
        use ModelErrorKind::*;
        for (error_type, expected) in [
            ("overloaded_error", Overloaded),
            ("rate_limit_error", RateLimit),
            ("api_error", Server),
            ("authentication_error", Authentication),
            ("invalid_request_error", InvalidRequest),
            ("never_seen", Server),
        ] {
            let error = from_stream_event(&error(error_type, "message"));
            assert_eq!(
                (error.kind, error.status, &*error.message),
                (expected, None, "message"),
                "{error_type}"
            );
            assert_eq!(error.request_id.as_deref(), Some("req_1"));
        }
    }

    #[test]
    fn body_without_an_error_object_becomes_one_line() {
        let table = [
            ("", "The model's endpoint answered with status 502."),
            ("<html><body>Bad gateway</body></html>", "The model's endpoint answered with status 502."),
            ("\nupstream died\nmore", "The model's endpoint answered with status 502: upstream died"),
            (r#"{"detail":"gone"}"#, "gone"),
        ];
        for (body, expected) in table {
            assert_eq!(from_status(502, body.as_bytes()).message, expected);
        }
    }
}
