//! Modes: which lets more happen unasked.

use whimbrel_wire::permission::PermissionMode;

/// How much a mode lets happen unasked, the least first.
fn permissiveness(mode: PermissionMode) -> u8 {
    match mode {
        // What rules allow is not done while one plans, and is done where nobody is asked.
        PermissionMode::Plan => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Delegate => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::BypassPermissions => 4,
    }
}

/// Whether a switch lets more happen unasked than before, and more than usual.
pub(crate) fn is_loosening(from: PermissionMode, to: PermissionMode) -> bool {
    permissiveness(to) > permissiveness(from).max(permissiveness(PermissionMode::Default))
}

/// Whether a mode lets more happen unasked than another.
pub fn is_more_permissive(mode: PermissionMode, than: PermissionMode) -> bool {
    permissiveness(mode) > permissiveness(than)
}

/// The mode of whoever wants one of its own: that, where it is narrower than the one it stands under.
pub fn stricter_mode(above: PermissionMode, own: PermissionMode) -> PermissionMode {
    if is_more_permissive(above, own) { own } else { above }
}

/// Whether a session that is taken up again may begin in the mode that it was left in.
pub fn is_kept_on_resume(mode: PermissionMode) -> bool {
    !matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

    #[test]
    fn nobody_may_more_than_whoever_is_above() {
        let rows = [
            (Default, Plan, Plan),
            (Default, AcceptEdits, Default),
            (AcceptEdits, Default, Default),
            (BypassPermissions, AcceptEdits, AcceptEdits),
            (Plan, BypassPermissions, Plan),
            (Plan, DontAsk, Plan),
            (DontAsk, Plan, Plan),
        ];
        for (above, own, expected) in rows {
            assert_eq!(stricter_mode(above, own), expected, "{above} and {own}");
        }
        assert!(is_kept_on_resume(AcceptEdits) && !is_kept_on_resume(Plan));
    }
}
