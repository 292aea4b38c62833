//! Decodes errors of Chat Completions endpoints, pure. Providers share the outline of their error objects; types, codes
//! and phrases differ.

use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind, describe_status};

/// An error response, or an error object in a stream, as far as it could be parsed.
struct ErrorBody {
    status: Option<u16>,
    /// Type and code, in the provider's words.
    codes: Vec<String>,
    message: String,
}

/// Returns true if a JSON value is an error object.
pub(super) fn is_error(value: &Value) -> bool {
    let named = match &value["error"] {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(failed) => *failed,
        Value::Number(_) | Value::Array(_) => true,
    };
    named || value["object"] == "error" || value["type"] == "error"
}

/// Decodes an error object in place of a chunk or reply.
pub(super) fn from_stream_value(value: &Value) -> ModelError {
    let error_body = ErrorBody::parse(None, value);
    let kind = error_body.kind(ModelErrorKind::Server);
    let no_message = error_body.message.is_empty();
    ModelError::new(
        kind,
        if no_message { "The model's stream ended in an error.".to_owned() } else { error_body.message },
    )
}

/// Decodes a response with an error status.
pub(super) fn from_status(status: u16, body: &str) -> ModelError {
    let value = serde_json::from_str(body).unwrap_or(Value::Null);
    let mut error_body = ErrorBody::parse(Some(status), &value);
    if error_body.message.is_empty() {
        error_body.message = describe_status(status, body);
    }
    ModelError {
        status: Some(status),
        ..ModelError::new(error_body.kind(ModelErrorKind::InvalidRequest), error_body.message)
    }
}

impl ErrorBody {
    fn parse(status: Option<u16>, value: &Value) -> Self {
        // LiteLLM and older vLLM do not wrap the error; Google wraps it in a list.
        let value = value.get(0).unwrap_or(value);
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let code = &error["code"];
        let number =
            code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok());
        let words = [&error["type"], code, &value["code"]].into_iter().filter_map(Value::as_str);
        Self {
            status: status.or(number.filter(|code| (400..600).contains(code))),
            codes: words.map(str::to_ascii_lowercase).collect(),
            message: extract_message(value, error),
        }
    }

    /// Classifies the error, with `otherwise` as default, by:
    /// 1. type or code; 2. phrases in the message; 3. the status.
    fn kind(&self, otherwise: ModelErrorKind) -> ModelErrorKind {
        let message = self.message.to_ascii_lowercase();
        let by_word = || self.codes.iter().find_map(|word| kind_from_code(word));
        by_word()
            .or_else(|| self.kind_from_message(&message))
            .or_else(|| self.status.and_then(kind_from_status))
            .unwrap_or(otherwise)
    }

    fn kind_from_message(&self, message: &str) -> Option<ModelErrorKind> {
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
        // With status 429 the same phrases refer to a rate limit.
        let is_rate_limit = self.status == Some(429);
        if says(BILLING_PHRASES) {
            Some(ModelErrorKind::Billing)
        } else if says(SPEND_LIMIT_PHRASES) {
            Some(ModelErrorKind::SpendLimit)
        } else if !is_rate_limit && says(PROMPT_TOO_LONG_PHRASES) {
            Some(ModelErrorKind::PromptTooLong)
        } else if !is_rate_limit && message.contains("model") && says(MODEL_NOT_FOUND_PHRASES) {
            Some(ModelErrorKind::ModelNotFound)
        } else {
            None
        }
    }
}

const BILLING_PHRASES: &[&str] =
    &["exceeded your current quota", "insufficient balance", "insufficient credits"];

const SPEND_LIMIT_PHRASES: &[&str] = &["billing hard limit", "reached your usage limit", "spending limit"];

const PROMPT_TOO_LONG_PHRASES: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "greater than the context length",
    "context window",
    "exceeds the available context size",
    "exceeded model token limit",
    "prompt is too long",
    "maximum prompt length",
    "input token count exceeds",
];

const MODEL_NOT_FOUND_PHRASES: &[&str] = &[
    "not found",
    "does not exist",
    "not exist",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
];

/// Types and codes that determine the kind regardless of the status.
fn kind_from_code(word: &str) -> Option<ModelErrorKind> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" => ModelErrorKind::PromptTooLong,
        "insufficient_quota" | "exceeded_current_quota_error" | "billing_not_active" => {
            ModelErrorKind::Billing
        }
        "billing_hard_limit_reached" | "usage_limit_reached" => ModelErrorKind::SpendLimit,
        "model_not_found" | "not_found_model" => ModelErrorKind::ModelNotFound,
        "rate_limit_exceeded" | "rate_limit_error" | "rate_limit_reached_error" => ModelErrorKind::RateLimit,
        "engine_overloaded_error" | "overloaded_error" | "slow_down" => ModelErrorKind::Overloaded,
        "invalid_api_key" | "authentication_error" | "invalid_authentication_error" => {
            ModelErrorKind::Authentication
        }
        _ => return None,
    })
}

fn kind_from_status(status: u16) -> Option<ModelErrorKind> {
    Some(match status {
        401 => ModelErrorKind::Authentication,
        402 => ModelErrorKind::Billing,
        403 => ModelErrorKind::Forbidden,
        404 => ModelErrorKind::ModelNotFound,
        408 | 409 | 425 => ModelErrorKind::Server,
        413 => ModelErrorKind::TooLarge,
        429 => ModelErrorKind::RateLimit,
        503 | 529 => ModelErrorKind::Overloaded,
        400..500 => ModelErrorKind::InvalidRequest,
        500..600 => ModelErrorKind::Server,
        _ => return None,
    })
}

/// Extracts the message from its possible fields, with the upstream provider's message (OpenRouter) appended.
fn extract_message(value: &Value, error: &Value) -> String {
    let message = [&error["message"], &value["error"], &value["message"], &value["detail"], value];
    let Some(message) = message.into_iter().find_map(Value::as_str) else {
        return extract_field_errors(value)
            .or_else(|| extract_field_errors(&value["message"]))
            .unwrap_or_default();
    };
    match error["metadata"]["raw"].as_str() {
        Some(upstream) if !upstream.is_empty() => format!("{message}: {upstream}"),
        _ => message.to_owned(),
    }
}

/// Extracts errors about single fields (FastAPI), as in `stream_options: Extra inputs are not permitted`.
fn extract_field_errors(value: &Value) -> Option<String> {
    let errors = value["detail"].as_array()?.iter().filter_map(|detail| {
        let message = detail["msg"].as_str()?;
        let path = detail["loc"].as_array().into_iter().flatten().filter(|step| *step != "body");
        let path = path.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned));
        let path = path.collect::<Vec<_>>().join(".");
        Some(if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") })
    });
    Some(errors.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
