//! What to ask otherwise when a provider refuses a request for something we can do without, pure.

use crate::anthropic::body;
use crate::fault::{Fault, FaultKind};
use crate::request::{Request, Thinking};

/// A change that lets a refused request be asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Correction {
    /// A lower output limit.
    MaxTokens(u64),
    /// An optional part is left out.
    Without(Part),
}

/// A part of a request that can be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// One beta feature.
    Beta(String),
    /// Every beta feature.
    AllBetas,
    /// How the model thinks.
    Thinking,
    /// What is shown of its thinking.
    ThinkingDisplay,
    /// How hard it tries.
    Effort,
    /// How many tokens the task may take.
    TaskBudget,
    /// Who asks.
    Metadata,
    /// The wish that a stream ends with what it took; Chat Completions only.
    StreamOptions,
    /// The name of the output limit: Chat Completions has two, and the other is taken.
    LimitName,
    /// Earlier reasoning of the model; Chat Completions only.
    Reasoning,
}

/// Below this an answer is not worth having; then there is too much input rather than too much output.
const LEAST_OUTPUT: u64 = 1024;

/// Words that say that something is not known or not wanted.
const REFUSING: &[&str] = &[
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

/// Words that say that the name of a field is not known; its value is another matter.
const UNKNOWN_NAME: &[&str] = &[
    "not permitted",
    "not allowed",
    "not supported",
    "unsupported parameter",
    "unknown",
    "unrecognized",
    "unexpected keyword",
];

/// The change that a refusal asks for, if it names something we can change:
/// 1. an output limit that is too high; 2. earlier reasoning; 3. the options of a stream; 4. the name of the output limit;
/// 5. a beta; 6. a task budget; 7. effort; 8. what is shown of thinking; 9. thinking; 10. metadata.
///
/// A refusal with any other text is final.
pub fn correct(request: &Request, fault: &Fault) -> Option<Correction> {
    if !matches!(fault.kind, FaultKind::InvalidRequest | FaultKind::PromptTooLong) {
        return None;
    }
    let said = fault.message.to_lowercase();
    if let Some(room) = output_room(&said) {
        return (LEAST_OUTPUT..request.max_tokens).contains(&room).then_some(Correction::MaxTokens(room));
    }
    if !says(&said, REFUSING) {
        return None;
    }
    if said.contains("reasoning_content") {
        return Some(Correction::Without(Part::Reasoning));
    }
    // What else is said about messages is about the conversation, which cannot be changed here.
    if said.starts_with("messages.") {
        return None;
    }
    refused_in_chat(&said).or_else(|| refused_part(request, &said)).map(Correction::Without)
}

fn says(said: &str, words: &[&str]) -> bool {
    words.iter().any(|word| said.contains(word))
}

/// What only endpoints of Chat Completions know.
fn refused_in_chat(said: &str) -> Option<Part> {
    if said.contains("stream_options") {
        return Some(Part::StreamOptions);
    }
    let limit = said.contains("max_tokens") || said.contains("max_completion_tokens");
    (limit && says(said, UNKNOWN_NAME)).then_some(Part::LimitName)
}

fn refused_part(request: &Request, said: &str) -> Option<Part> {
    let betas = body::betas(request, &[]);
    if let Some(beta) = betas.iter().find(|beta| said.contains(&beta.to_lowercase())) {
        return Some(Part::Beta((*beta).to_owned()));
    }
    if said.contains("anthropic-beta") && !betas.is_empty() {
        return Some(Part::AllBetas);
    }
    if request.task_budget.is_some() && said.contains("task_budget") {
        return Some(Part::TaskBudget);
    }
    if request.effort.is_some() && (said.contains("output_config") || said.contains("effort")) {
        return Some(Part::Effort);
    }
    if request.task_budget.is_some() && said.contains("output_config") {
        return Some(Part::TaskBudget);
    }
    if request.thinking_display.is_some() && said.contains("thinking") && said.contains("display") {
        return Some(Part::ThinkingDisplay);
    }
    if request.thinking != Thinking::Disabled && said.contains("thinking") {
        return Some(Part::Thinking);
    }
    (!request.session_id.is_empty() && said.contains("metadata")).then_some(Part::Metadata)
}

/// How many tokens of output there is room for, in the words of several providers.
fn output_room(said: &str) -> Option<u64> {
    // "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
    if let Some(sum) = after(said, "exceed context limit") {
        let [input, _, limit] = numbers(sum)[..] else { return None };
        return Some(limit.saturating_sub(input));
    }
    // "maximum context length is 8192 tokens [..] your request has 5000 input tokens", "(1000 in the messages, ..)"
    if let Some(rest) = after(said, "maximum context length is") {
        let limit = *numbers(rest).first()?;
        let input = before(rest, "input tokens").or_else(|| before(rest, "in the messages"))?;
        return Some(limit.saturating_sub(*numbers(input).last()?));
    }
    // "max_tokens: 64000 > 8192, which is the maximum", "max_tokens is too large: 32000. This model supports at most 16384",
    // "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 32000 instead."
    let rest = after(said, "max_tokens").or_else(|| after(said, "max_completion_tokens"))?;
    let limit = after(rest, " > ").or_else(|| after(rest, "at most")).or_else(|| after(rest, "<="))?;
    numbers(limit).first().copied()
}

fn after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase).map(|(_, rest)| rest)
}

fn before<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase).map(|(rest, _)| rest)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).take(3).collect()
}

impl Part {
    /// Whether this is that beta, or all of them.
    pub fn is_beta(&self, name: &str) -> bool {
        match self {
            Self::Beta(beta) => beta == name,
            Self::AllBetas => true,
            Self::Thinking
            | Self::ThinkingDisplay
            | Self::Effort
            | Self::TaskBudget
            | Self::Metadata
            | Self::StreamOptions
            | Self::LimitName
            | Self::Reasoning => false,
        }
    }
}

impl Correction {
    /// The request with the change made, as far as it is made there; see [`crate::Model::forgo`] for the rest.
    pub fn apply(&self, request: &Request) -> Request {
        let mut request = request.clone();
        match self {
            Self::MaxTokens(limit) => request.max_tokens = *limit,
            Self::Without(Part::Thinking) => request.thinking = Thinking::Disabled,
            Self::Without(Part::ThinkingDisplay) => request.thinking_display = None,
            Self::Without(Part::Effort) => request.effort = None,
            Self::Without(Part::TaskBudget) => request.task_budget = None,
            Self::Without(part) => request.betas.retain(|beta| !part.is_beta(beta)),
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::History;
    use crate::request::{Effort, Preamble, ThinkingDisplay};

    fn request() -> Request {
        Request {
            max_tokens: 32_000,
            thinking: Thinking::Adaptive,
            thinking_display: Some(ThinkingDisplay::Omitted),
            effort: Some(Effort::High),
            task_budget: Some(crate::request::TaskBudget { total: 50_000, remaining: None }),
            betas: vec!["special-2026-01-01".into()],
            session_id: "s".into(),
            ..Request::new("m", Arc::new(Preamble::new(vec![], vec![])), History::new().ask())
        }
    }

    #[test]
    fn a_refusal_that_names_what_we_can_change_is_followed() {
        use Correction::{MaxTokens, Without};
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
                Some(Without(Part::Beta("special-2026-01-01".into()))),
            ),
            (
                "Unexpected value(s) `interleaved-thinking-2025-05-14` for the `anthropic-beta` header.",
                Some(Without(Part::Beta("interleaved-thinking-2025-05-14".into()))),
            ),
            ("The `anthropic-beta` header is not supported here.", Some(Without(Part::AllBetas))),
            ("output_config: Extra inputs are not permitted", Some(Without(Part::Effort))),
            ("adaptive thinking is not supported on this model", Some(Without(Part::Thinking))),
            ("thinking.type: Input should be 'enabled' or 'disabled'", Some(Without(Part::Thinking))),
            ("thinking.display: Extra inputs are not permitted", Some(Without(Part::ThinkingDisplay))),
            ("metadata: Extra inputs are not permitted", Some(Without(Part::Metadata))),
            ("Unrecognized request argument supplied: stream_options", Some(Without(Part::StreamOptions))),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some(Without(Part::LimitName)),
            ),
            ("Unrecognized request argument supplied: max_completion_tokens", Some(Without(Part::LimitName))),
            (
                "Invalid 'max_completion_tokens': integer above maximum value. Expected a value <= 4096, but got 32000 instead.",
                Some(MaxTokens(4096)),
            ),
            ("Invalid 'max_tokens': it must be a number.", None),
            ("messages.2.reasoning_content: Extra inputs are not permitted", Some(Without(Part::Reasoning))),
            ("reasoning_content is missing in assistant tool call message at index 2", None),
            ("output_config.task_budget: Extra inputs are not permitted", Some(Without(Part::TaskBudget))),
            ("messages.1.content.0: Invalid `signature` in `thinking` block", None),
            ("prompt is too long: 210000 tokens > 200000 maximum", None),
            ("no such field", None),
            ("", None),
        ];
        for (said, expected) in table {
            let fault = Fault::new(FaultKind::InvalidRequest, said);
            assert_eq!(correct(&request(), &fault), expected, "{said}");
        }
    }

    #[test]
    fn other_faults_are_never_corrected() {
        for kind in [FaultKind::Server, FaultKind::Authentication, FaultKind::RateLimit, FaultKind::Protocol]
        {
            let fault = Fault::new(kind, "output_config: Extra inputs are not permitted");
            assert_eq!(correct(&request(), &fault), None);
        }
    }

    #[test]
    fn what_was_not_sent_is_not_left_out() {
        let bare = Request {
            thinking: Thinking::Disabled,
            thinking_display: None,
            effort: None,
            task_budget: None,
            session_id: String::new(),
            ..request()
        };
        for said in ["thinking: unknown field", "output_config: unknown field", "metadata: unknown field"] {
            assert_eq!(correct(&bare, &Fault::new(FaultKind::InvalidRequest, said)), None, "{said}");
        }
    }

    #[test]
    fn a_change_changes_only_what_it_names() {
        let changed = Correction::Without(Part::Thinking).apply(&request());
        assert_eq!((changed.thinking, changed.effort), (Thinking::Disabled, Some(Effort::High)));
        let changed = Correction::Without(Part::Beta("special-2026-01-01".into())).apply(&request());
        assert_eq!((changed.betas.len(), changed.max_tokens), (0, 32_000));
        assert_eq!(Correction::MaxTokens(5).apply(&request()).max_tokens, 5);
    }
}
