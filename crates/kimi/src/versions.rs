//! Versions of the wire: which event came with which one. A client gets only what its version knows, because some
//! clients stop at an event that they do not know.

use std::fmt;

/// A version of the wire. Compared number by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WireVersion(pub(crate) u32, pub(crate) u32);

/// The newest version that is served.
pub(crate) const NEWEST: WireVersion = WireVersion(1, 10);

/// The version of a client that sends no `initialize`.
pub(crate) const WITHOUT_HANDSHAKE: WireVersion = WireVersion(1, 1);

/// The version that `info` names. The Go SDK sends it back, and knows all of its events.
pub(crate) const INFO_VERSION: WireVersion = WireVersion(1, 3);

/// The first version in which `SubagentEvent` names the call `parent_tool_call_id`.
pub(crate) const SUBAGENT_IDS: WireVersion = WireVersion(1, 6);

impl WireVersion {
    /// Reads what a client asks for. A text that is not a version counts as the newest: such a client exists in tests
    /// only.
    pub(crate) fn parse(text: &str) -> Self {
        let mut numbers = text.trim().splitn(2, '.').map(|part| part.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => Self(major, minor).min(NEWEST),
            _ => NEWEST,
        }
    }

    /// Whether a client of this version knows an event.
    pub(crate) fn knows(self, event: &str) -> bool {
        first_version(event).is_some_and(|first| self >= first)
    }
}

impl fmt::Display for WireVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The version from which on an event is sent; `None` for events that are never sent, such as those of a record that
/// another program wrote. The Node SDK asks for 1.7 and does not know `PlanDisplay` and `Notification`, which came before.
fn first_version(event: &str) -> Option<WireVersion> {
    Some(match event {
        "TurnBegin" | "StepBegin" | "StepInterrupted" | "ContentPart" | "ToolCall" | "ToolCallPart"
        | "ToolResult" | "StatusUpdate" | "CompactionBegin" | "CompactionEnd" | "ApprovalResponse"
        | "SubagentEvent" => WireVersion(1, 1),
        "TurnEnd" => WireVersion(1, 2),
        "SteerInput" => WireVersion(1, 5),
        "HookTriggered" | "HookResolved" => WireVersion(1, 7),
        "PlanDisplay" | "Notification" => WireVersion(1, 8),
        "StepRetry" => WireVersion(1, 10),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let rows = [
            ("1.3", "StepRetry", false),
            ("1.10", "StepRetry", true),
            ("1.7", "HookTriggered", true),
            ("1.6", "HookTriggered", false),
            ("1.7", "Notification", false),
            ("1.1", "TurnEnd", false),
            ("1.1", "ToolCall", true),
            ("99.0", "StepRetry", true),
            ("99.0", "BtwBegin", false),
        ];
        for (version, event, expected) in rows {
            assert_eq!(WireVersion::parse(version).knows(event), expected, "{version} {event}");
        }
        assert_eq!(WireVersion::parse("1.7").to_string(), "1.7");
        assert_eq!(WireVersion::parse("99.0"), NEWEST);
    }
}
