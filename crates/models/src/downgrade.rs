//! Request downgrade, pure: which optional part to change when a provider rejects a request.

use crate::anthropic::body;
use crate::error::{ModelError, ModelErrorKind};
use crate::request::{OptionalPart, Request, Thinking};

/// A change that allows a rejected request to be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Downgrade {
    /// Lowers the output limit.
    MaxTokens(u64),
    /// Omits an optional part.
    Without(OptionalPart),
}

/// Smallest useful output limit; below it the input is too long rather than the output.
const MIN_OUTPUT_TOKENS: u64 = 1024;

/// Phrases by which a provider rejects something as unknown or unsupported.
const REJECTION_PHRASES: &[&str] = &[
    "not permitted",
    "not allowed",
    "not supported",
    "not support",
    "not available",
    "unsupported",
    "unknown",
    "unrecognized",
    "unexpected",
    "invalid",
    "input should be",
    "remove the",
];

/// Phrases by which a provider rejects the name of a field, as opposed to its value.
const UNKNOWN_FIELD_PHRASES: &[&str] = &[
    "not permitted",
    "not allowed",
    "not supported",
    "unsupported parameter",
    "unknown",
    "unrecognized",
    "unexpected keyword",
];

/// Finds the downgrade that a rejection asks for, in this order:
/// 1. a lower output limit; 2. earlier reasoning; 3. stream options; 4. the name of the output limit;
/// 5. a beta; 6. the task budget; 7. effort; 8. thinking display; 9. thinking; 10. metadata.
///
/// A rejection with any other text is final.
pub fn find_downgrade(request: &Request, error: &ModelError) -> Option<Downgrade> {
    if !matches!(error.kind, ModelErrorKind::InvalidRequest | ModelErrorKind::PromptTooLong) {
        return None;
    }
    let message = error.message.to_lowercase();
    if let Some(limit) = parse_output_limit(&message) {
        return (MIN_OUTPUT_TOKENS..request.max_tokens)
            .contains(&limit)
            .then_some(Downgrade::MaxTokens(limit));
    }
    if !contains_any(&message, REJECTION_PHRASES) {
        return None;
    }
    if message.contains("reasoning_content") {
        return Some(Downgrade::Without(OptionalPart::Reasoning));
    }
    // Other complaints about messages concern the conversation, which cannot be changed here.
    if message.starts_with("messages.") {
        return None;
    }
    rejected_chat_part(&message).or_else(|| rejected_part(request, &message)).map(Downgrade::Without)
}

fn contains_any(message: &str, words: &[&str]) -> bool {
    words.iter().any(|word| message.contains(word))
}

/// Parts that exist only in Chat Completions.
fn rejected_chat_part(message: &str) -> Option<OptionalPart> {
    if message.contains("stream_options") {
        return Some(OptionalPart::StreamOptions);
    }
    let limit = message.contains("max_tokens") || message.contains("max_completion_tokens");
    (limit && contains_any(message, UNKNOWN_FIELD_PHRASES)).then_some(OptionalPart::LimitName)
}

fn rejected_part(request: &Request, message: &str) -> Option<OptionalPart> {
    let betas = body::betas(request, &[]);
    if let Some(beta) = betas.iter().find(|beta| message.contains(&beta.to_lowercase())) {
        return Some(OptionalPart::Beta((*beta).to_owned()));
    }
    if message.contains("anthropic-beta") && !betas.is_empty() {
        return Some(OptionalPart::AllBetas);
    }
    if request.task_budget.is_some() && message.contains("task_budget") {
        return Some(OptionalPart::TaskBudget);
    }
    if request.effort.is_some() && (message.contains("output_config") || message.contains("effort")) {
        return Some(OptionalPart::Effort);
    }
    if request.task_budget.is_some() && message.contains("output_config") {
        return Some(OptionalPart::TaskBudget);
    }
    if request.thinking_display.is_some() && message.contains("thinking") && message.contains("display") {
        return Some(OptionalPart::ThinkingDisplay);
    }
    if request.thinking != Thinking::Disabled && message.contains("thinking") {
        return Some(OptionalPart::Thinking);
    }
    (!request.session_id.is_empty() && message.contains("metadata")).then_some(OptionalPart::Metadata)
}

/// Extracts the number of output tokens that fit, from the error texts of several providers.
fn parse_output_limit(message: &str) -> Option<u64> {
    // "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
    if let Some(sum) = text_after(message, "exceed context limit") {
        let [input, _, limit] = parse_numbers(sum)[..] else { return None };
        return Some(limit.saturating_sub(input));
    }
    // "maximum context length is 8192 tokens [..] your request has 5000 input tokens", "(1000 in the messages, ..)"
    if let Some(rest) = text_after(message, "maximum context length is") {
        let limit = *parse_numbers(rest).first()?;
        let input = text_before(rest, "input tokens").or_else(|| text_before(rest, "in the messages"))?;
        return Some(limit.saturating_sub(*parse_numbers(input).last()?));
    }
    // "max_tokens: 64000 > 8192, which is the maximum", "max_tokens is too large: 32000. This model supports at most 16384",
    // "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 32000 instead."
    let rest = text_after(message, "max_tokens").or_else(|| text_after(message, "max_completion_tokens"))?;
    let limit =
        text_after(rest, " > ").or_else(|| text_after(rest, "at most")).or_else(|| text_after(rest, "<="))?;
    parse_numbers(limit).first().copied()
}

fn text_after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase).map(|(_, rest)| rest)
}

fn text_before<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase).map(|(rest, _)| rest)
}

fn parse_numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).take(3).collect()
}

impl Downgrade {
    /// Applies the change to a request. Parts without a field here are handled by [`crate::Model::mark_unsupported`].
    pub fn apply(&self, request: &Request) -> Request {
        let mut request = request.clone();
        match self {
            Self::MaxTokens(limit) => request.max_tokens = *limit,
            Self::Without(OptionalPart::Thinking) => request.thinking = Thinking::Disabled,
            Self::Without(OptionalPart::ThinkingDisplay) => request.thinking_display = None,
            Self::Without(OptionalPart::Effort) => request.effort = None,
            Self::Without(OptionalPart::TaskBudget) => request.task_budget = None,
            Self::Without(part) => request.betas.retain(|beta| !part.covers_beta(beta)),
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::History;
    use crate::request::{Effort, RequestPrefix, ThinkingDisplay};

    fn request() -> Request {
        Request {
            max_tokens: 32_000,
            thinking: Thinking::Adaptive,
            thinking_display: Some(ThinkingDisplay::Omitted),
            effort: Some(Effort::High),
            task_budget: Some(crate::request::TaskBudget { total: 50_000, remaining: None }),
            betas: vec!["special-2026-01-01".into()],
            session_id: "s".into(),
            ..Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), History::new().snapshot())
        }
    }

    #[test]
    fn rejection_texts_map_to_downgrades() {
        use Downgrade::{MaxTokens, Without};
        let table = [
            (
                "input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease",
                Some(MaxTokens(11760)),
            ),
            ("input length and `max_tokens` exceed context limit: 199990 + 32000 > 200000", None),
            (
                "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens",
                Some(MaxTokens(8192)),
            ),
            (
                "max_tokens is too large: 32000. This model supports at most 16384 completion tokens.",
                Some(MaxTokens(16384)),
            ),
            (
                "'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request \
                 has 5000 input tokens (32000 > 8192 - 5000).",
                Some(MaxTokens(3192)),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 33000 tokens (1000 in the \
                 messages, 32000 in the completion).",
                Some(MaxTokens(7192)),
            ),
            ("max_tokens: 32000 > 64000, which is odd", None),
            (
                "Unexpected value(s) `special-2026-01-01` for the `anthropic-beta` header.",
                Some(Without(OptionalPart::Beta("special-2026-01-01".into()))),
            ),
            (
                "Unexpected value(s) `interleaved-thinking-2025-05-14` for the `anthropic-beta` header.",
                Some(Without(OptionalPart::Beta("interleaved-thinking-2025-05-14".into()))),
            ),
            ("The `anthropic-beta` header is not supported here.", Some(Without(OptionalPart::AllBetas))),
            ("output_config: Extra inputs are not permitted", Some(Without(OptionalPart::Effort))),
            ("adaptive thinking is not supported on this model", Some(Without(OptionalPart::Thinking))),
            ("thinking.type: Input should be 'enabled' or 'disabled'", Some(Without(OptionalPart::Thinking))),
            (
                "thinking.display: Extra inputs are not permitted",
                Some(Without(OptionalPart::ThinkingDisplay)),
            ),
            ("metadata: Extra inputs are not permitted", Some(Without(OptionalPart::Metadata))),
            (
                "Unrecognized request argument supplied: stream_options",
                Some(Without(OptionalPart::StreamOptions)),
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some(Without(OptionalPart::LimitName)),
            ),
            (
                "Unrecognized request argument supplied: max_completion_tokens",
                Some(Without(OptionalPart::LimitName)),
            ),
            (
                "Invalid 'max_completion_tokens': integer above maximum value. Expected a value <= 4096, but got 32000 instead.",
                Some(MaxTokens(4096)),
            ),
            ("Invalid 'max_tokens': it must be a number.", None),
            (
                "messages.2.reasoning_content: Extra inputs are not permitted",
                Some(Without(OptionalPart::Reasoning)),
            ),
            ("reasoning_content is missing in assistant tool call message at index 2", None),
            (
                "output_config.task_budget: Extra inputs are not permitted",
                Some(Without(OptionalPart::TaskBudget)),
            ),
            ("messages.1.content.0: Invalid `signature` in `thinking` block", None),
            ("prompt is too long: 210000 tokens > 200000 maximum", None),
            ("no such field", None),
            ("", None),
        ];
        for (message, expected) in table {
            let error = ModelError::new(ModelErrorKind::InvalidRequest, message);
            assert_eq!(find_downgrade(&request(), &error), expected, "{message}");
        }
    }

    #[test]
    fn other_error_kinds_are_never_downgraded() {
        for kind in [
            ModelErrorKind::Server,
            ModelErrorKind::Authentication,
            ModelErrorKind::RateLimit,
            ModelErrorKind::Protocol,
        ] {
            let error = ModelError::new(kind, "output_config: Extra inputs are not permitted");
            assert_eq!(find_downgrade(&request(), &error), None);
        }
    }

    #[test]
    fn parts_that_were_not_sent_are_not_dropped() {
        let bare = Request {
            thinking: Thinking::Disabled,
            thinking_display: None,
            effort: None,
            task_budget: None,
            session_id: String::new(),
            ..request()
        };
        for message in ["thinking: unknown field", "output_config: unknown field", "metadata: unknown field"]
        {
            assert_eq!(
                find_downgrade(&bare, &ModelError::new(ModelErrorKind::InvalidRequest, message)),
                None,
                "{message}"
            );
        }
    }

    #[test]
    fn downgrade_changes_only_the_named_part() {
        let changed = Downgrade::Without(OptionalPart::Thinking).apply(&request());
        assert_eq!((changed.thinking, changed.effort), (Thinking::Disabled, Some(Effort::High)));
        let changed = Downgrade::Without(OptionalPart::Beta("special-2026-01-01".into())).apply(&request());
        assert_eq!((changed.betas.len(), changed.max_tokens), (0, 32_000));
        assert_eq!(Downgrade::MaxTokens(5).apply(&request()).max_tokens, 5);
    }
}
