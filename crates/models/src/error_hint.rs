//! Hints for the user, pure: appended to a provider's error message, which rarely says what to do.

use whimbrel_os::byte_size::format_size;

use crate::error::{ModelError, ModelErrorKind};
use crate::key_source::API_KEY_HELPER;

/// The properties of a request that a hint depends on.
pub(crate) struct RequestSummary<'a> {
    pub(crate) model: &'a str,
    /// Variable that holds the key, if known.
    pub(crate) key_variable: Option<&'a str>,
    /// Size of the request in bytes.
    pub(crate) size: usize,
}

/// Appends the hint to the message. The key itself never appears.
pub(crate) fn with_hint(error: ModelError, request: &RequestSummary<'_>) -> ModelError {
    match hint(error.kind, request) {
        Some(hint) => ModelError { message: format!("{} ({hint})", error.message), ..error },
        None => error,
    }
}

fn hint(kind: ModelErrorKind, request: &RequestSummary<'_>) -> Option<String> {
    let RequestSummary { model, key_variable: key, size } = request;
    Some(match (kind, key) {
        (ModelErrorKind::Authentication, Some(API_KEY_HELPER)) => {
            format!(
                "The server rejected the key that the command of {API_KEY_HELPER} prints: run it by hand."
            )
        }
        (ModelErrorKind::Authentication, Some(key)) => {
            format!("The server rejected the key in {key}: set {key} to a valid key.")
        }
        (ModelErrorKind::Authentication, None) => {
            "The server requires a key: name its variable in the configuration of the endpoint.".to_owned()
        }
        (ModelErrorKind::Forbidden, key) => format!(
            "{} may not use {model} here: ask for access, use another key, or {CHOOSE_MODEL}.",
            key.map_or_else(|| "You".to_owned(), |key| format!("The key in {key}")),
        ),
        (ModelErrorKind::ModelNotFound, _) => {
            format!("The requested model is {model}: check the name and the base URL, or {CHOOSE_MODEL}.")
        }
        (ModelErrorKind::TooLarge, _) => format!(
            "The request has {}: shorten the conversation, and omit large files, images and documents.",
            format_size(*size as u64)
        ),
        (ModelErrorKind::PromptTooLong, _) => format!(
            "The conversation exceeds the context window of {model}: shorten it, start a new one, or {CHOOSE_MODEL}."
        ),
        _ => return None,
    })
}

const CHOOSE_MODEL: &str = "choose another model";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_a_remedy() {
        use ModelErrorKind::*;
        let request = RequestSummary { model: "claude-x", key_variable: Some("MY_KEY"), size: 34_100_000 };
        let keyless = RequestSummary { key_variable: None, ..request };
        let table: [(&str, ModelErrorKind, &RequestSummary<'_>, &[&str]); 7] = [
            ("A9 401", Authentication, &request, &["message (", "set MY_KEY to a valid key"]),
            ("401 without a variable", Authentication, &keyless, &["name its variable"]),
            ("A10 403", Forbidden, &request, &["The key in MY_KEY may not use claude-x", "another model"]),
            ("403 without a variable", Forbidden, &keyless, &["You may not use claude-x"]),
            ("A10 404", ModelNotFound, &request, &["claude-x", "base URL", "another model"]),
            ("A14 413", TooLarge, &request, &["34.1 MB", "shorten the conversation"]),
            ("A12 too long", PromptTooLong, &request, &["claude-x", "shorten it", "another model"]),
        ];
        for (name, kind, request, parts) in table {
            let message = with_hint(ModelError::new(kind, "message"), request).message;
            for part in parts {
                assert!(message.contains(part), "{name}: {message}");
            }
        }
        assert_eq!(with_hint(ModelError::new(Server, "message"), &request).message, "message");
    }
}
