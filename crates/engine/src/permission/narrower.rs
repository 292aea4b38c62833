//! Which of two modes lets an agent do less.

use whimbrel_wire::permission::PermissionMode;

/// The mode of an agent that wants one of its own: that, where it is narrower than its parent's.
pub fn narrower(parent: PermissionMode, own: PermissionMode) -> PermissionMode {
    if width(own) < width(parent) { own } else { parent }
}

fn width(mode: PermissionMode) -> u8 {
    match mode {
        PermissionMode::Plan | PermissionMode::DontAsk => 0,
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Delegate => 1,
        PermissionMode::AcceptEdits => 2,
        PermissionMode::BypassPermissions => 3,
    }
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

    use super::*;

    #[test]
    fn nobody_may_more_than_its_parent() {
        let table = [
            (Default, Plan, Plan),
            (Default, AcceptEdits, Default),
            (AcceptEdits, Default, Default),
            (BypassPermissions, AcceptEdits, AcceptEdits),
            (Plan, BypassPermissions, Plan),
            (Plan, DontAsk, Plan),
            (DontAsk, Plan, DontAsk),
        ];
        for (parent, own, expected) in table {
            assert_eq!(narrower(parent, own), expected, "{parent} and {own}");
        }
    }
}
