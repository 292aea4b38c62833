//! Errors of hook configuration.

use whimbrel_wire::hook::HookEvent;

/// Invalid hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The matcher is not a valid regular expression.
    #[error(
        "the matcher `{matcher}` of a {event} hook from {origin} is no valid regular expression: {reason}. \
         Write names such as `Edit|Write`, a valid expression, or `*` for everything"
    )]
    BadMatcher { event: HookEvent, origin: String, matcher: String, reason: String },
    /// The `if` condition is not a valid rule.
    #[error("\"if\" of a {event} hook from {origin}: {reason}")]
    BadCondition { event: HookEvent, origin: String, reason: String },
    /// The URL or a header name is not valid.
    #[error("a {event} hook from {origin}: {reason}")]
    BadAddress { event: HookEvent, origin: String, reason: String },
    /// `onFailure` has an unknown value.
    #[error(
        "onFailure of a {event} hook from {origin} is {word:?}. The only choice is \"block\"; leave it out otherwise"
    )]
    BadOnFailure { event: HookEvent, origin: String, word: String },
}
