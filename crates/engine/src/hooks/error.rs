//! Why a hook cannot be had.

use whimbrel_wire::hook::HookEvent;

/// A hook that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// Its matcher is neither a list of names nor a regular expression.
    #[error(
        "the matcher `{matcher}` of a {event} hook from {origin} is no valid regular expression: {reason}. \
         Write names such as `Edit|Write`, a valid expression, or `*` for everything"
    )]
    BadMatcher {
        /// The event.
        event: HookEvent,
        /// Where the hook comes from.
        origin: String,
        /// The matcher.
        matcher: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The condition on its calls is no rule.
    #[error("\"if\" of a {event} hook from {origin}: {reason}")]
    BadCondition {
        /// The event.
        event: HookEvent,
        /// Where the hook comes from.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Its web address cannot be asked.
    #[error("a {event} hook from {origin}: {reason}")]
    BadAddress {
        /// The event.
        event: HookEvent,
        /// Where the hook comes from.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What its failure should mean is not one of the choices.
    #[error(
        "onFailure of a {event} hook from {origin} is {word:?}. The only choice is \"block\"; leave it out otherwise"
    )]
    BadOnFailure {
        /// The event.
        event: HookEvent,
        /// Where the hook comes from.
        origin: String,
        /// What was said.
        word: String,
    },
}
