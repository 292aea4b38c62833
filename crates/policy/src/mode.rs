//! Permission modes: their order by permissiveness, and the mode that never asks.

use whimbrel_wire::permission::PermissionMode;

use crate::decision::{Decision, Reason};

/// Ranks a mode: higher ranks allow more without asking.
fn rank_permissiveness(mode: PermissionMode) -> u8 {
    match mode {
        // Plan mode does not even do what rules allow; DontAsk does that and denies the rest.
        PermissionMode::Plan => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Delegate => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::BypassPermissions => 4,
    }
}

/// Returns true if a mode change allows more than before and more than the default mode.
pub(crate) fn is_loosening(from: PermissionMode, to: PermissionMode) -> bool {
    rank_permissiveness(to) > rank_permissiveness(from).max(rank_permissiveness(PermissionMode::Default))
}

/// Returns true if a mode allows more without asking than another.
pub fn is_more_permissive(mode: PermissionMode, than: PermissionMode) -> bool {
    rank_permissiveness(mode) > rank_permissiveness(than)
}

/// Chooses the stricter of two modes: the mode of the parent and the one requested for itself.
pub fn choose_stricter_mode(parent: PermissionMode, requested: PermissionMode) -> PermissionMode {
    if is_more_permissive(parent, requested) { requested } else { parent }
}

/// Returns true if a resumed session may start in the mode it ended in.
pub fn is_kept_on_resume(mode: PermissionMode) -> bool {
    !matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Plan)
}

/// Applies a mode that never asks: an ask becomes a deny.
#[must_use]
pub fn deny_if_never_asking(decision: Decision, mode: PermissionMode) -> Decision {
    match decision {
        Decision::Ask(_) if mode == PermissionMode::DontAsk => Decision::Deny(Reason::Mode(mode)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

    #[test]
    fn stricter_mode_wins() {
        let rows = [
            (Default, Plan, Plan),
            (Default, AcceptEdits, Default),
            (AcceptEdits, Default, Default),
            (BypassPermissions, AcceptEdits, AcceptEdits),
            (Plan, BypassPermissions, Plan),
            (Plan, DontAsk, Plan),
            (DontAsk, Plan, Plan),
        ];
        for (parent, requested, expected) in rows {
            assert_eq!(choose_stricter_mode(parent, requested), expected, "{parent} and {requested}");
        }
        assert!(is_kept_on_resume(AcceptEdits) && !is_kept_on_resume(Plan));
    }
}
