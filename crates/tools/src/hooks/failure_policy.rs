//! What the failure of a hook does: the event goes on, or `onFailure: "block"` blocks it.

use whimbrel_wire::hook::HookEvent;

use super::event_table::{self, PlainTextUse};
use super::output::ParsedOutput;

/// Effect of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailurePolicy {
    /// The event goes on; the user is informed.
    Report,
    Block,
}

/// Turns a failure into a block where `onFailure` says so, and for a timed-out PreModelSwitch. A
/// hook with `onFailure: "block"` also fails if it prints text that has no use for this event.
pub(super) fn apply_failure_policy(
    event: HookEvent,
    failure: FailurePolicy,
    output: ParsedOutput,
) -> ParsedOutput {
    let output = match output {
        ParsedOutput::Text(_)
            if failure == FailurePolicy::Block
                && event_table::row(event).plain_text_use == PlainTextUse::Dropped =>
        {
            ParsedOutput::Failed("it printed text instead of JSON output".into())
        }
        other => other,
    };
    let is_blocking = match &output {
        ParsedOutput::TimedOut(_) => failure == FailurePolicy::Block || event == HookEvent::PreModelSwitch,
        _ => failure == FailurePolicy::Block,
    };
    let Some(error) = output.error().filter(|_| is_blocking) else { return output };
    let blocking = match output {
        ParsedOutput::Partial { blocking, .. } => Some(blocking),
        _ => None,
    };
    ParsedOutput::Block { reason: format!("A required hook failed: {error}"), output: blocking }
}
