//! Modes: who may set which, and which is wider.

use whimbrel_wire::permission::PermissionMode;

use crate::ruleset::{Source, Trust};

/// How much a mode lets happen unasked, the least first.
fn width(mode: PermissionMode) -> u8 {
    match mode {
        PermissionMode::Plan | PermissionMode::DontAsk => 0,
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Delegate => 1,
        PermissionMode::AcceptEdits => 2,
        PermissionMode::BypassPermissions => 3,
    }
}

/// Whether a switch lets more happen unasked than before, and more than usual.
pub(crate) fn loosens(from: PermissionMode, to: PermissionMode) -> bool {
    width(to) > width(from).max(width(PermissionMode::Default))
}

/// The mode of a subagent: the one it asks for, unless that is wider than its parent's.
pub fn inherited(parent: PermissionMode, wanted: Option<PermissionMode>) -> PermissionMode {
    wanted.filter(|wanted| width(*wanted) <= width(parent)).unwrap_or(parent)
}

/// Whether settings of this source may start a session in this mode.
pub fn may_be_set_by(mode: PermissionMode, source: Source, trust: Trust) -> bool {
    let of_project = matches!(source, Source::ProjectSettings | Source::LocalSettings);
    match mode {
        PermissionMode::Default | PermissionMode::Plan | PermissionMode::DontAsk => true,
        PermissionMode::AcceptEdits | PermissionMode::Delegate => !of_project || trust == Trust::Trusted,
        PermissionMode::BypassPermissions | PermissionMode::Auto => !of_project,
    }
}

/// Whether a session that is taken up again may begin in the mode that it was left in.
pub fn survives_resume(mode: PermissionMode) -> bool {
    !matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

    #[test]
    fn a_subagent_is_never_freer_than_its_parent() {
        let rows = [
            (Default, Some(AcceptEdits), Default),
            (Default, Some(Plan), Plan),
            (AcceptEdits, Some(Default), Default),
            (Plan, Some(Default), Plan),
            (DontAsk, None, DontAsk),
            (BypassPermissions, Some(AcceptEdits), AcceptEdits),
            (AcceptEdits, Some(BypassPermissions), AcceptEdits),
        ];
        for (parent, wanted, expected) in rows {
            assert_eq!(inherited(parent, wanted), expected, "{parent} {wanted:?}");
        }
    }

    #[test]
    fn a_project_may_not_open_the_doors() {
        let rows = [
            (Plan, Source::ProjectSettings, Trust::Untrusted, true),
            (AcceptEdits, Source::ProjectSettings, Trust::Untrusted, false),
            (AcceptEdits, Source::LocalSettings, Trust::Trusted, true),
            (BypassPermissions, Source::LocalSettings, Trust::Trusted, false),
            (BypassPermissions, Source::UserSettings, Trust::Trusted, true),
        ];
        for (mode, source, trust, expected) in rows {
            assert_eq!(may_be_set_by(mode, source, trust), expected, "{mode} {source}");
        }
        assert!(survives_resume(AcceptEdits) && !survives_resume(Plan));
    }
}
