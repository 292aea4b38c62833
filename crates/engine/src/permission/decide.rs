//! The decision on one tool call, pure.
//!
//! In this order:
//! 1. a tool that is denied by name is denied, in every mode
//! 2. `bypassPermissions` allows
//! 3. what touches nothing, or only reads inside the workspace, is allowed
//! 4. `plan` denies what writes or runs, whatever is allowed by name
//! 5. a tool that is allowed by name is allowed
//! 6. `acceptEdits` allows writing inside the workspace
//! 7. `dontAsk` denies what would be asked
//! 8. anything else is asked

use whimbrel_wire::permission::PermissionMode;

use crate::tools::Touches;

/// What is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool, by its name on the wire.
    pub tool: &'a str,
    /// What the call touches.
    pub touches: &'a Touches,
    /// Whether everything it names lies inside the workspace.
    pub inside: bool,
    /// The mode of the session.
    pub mode: PermissionMode,
    /// Tools allowed by name.
    pub allowed: &'a [String],
    /// Tools denied by name.
    pub denied: &'a [String],
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Allow,
    /// It may not, and why.
    Deny(String),
    /// The host must be asked.
    Ask,
}

/// Judges one call.
pub fn decide(question: &Question<'_>) -> Decision {
    let named = |list: &[String]| list.iter().any(|name| name == question.tool);
    if named(question.denied) {
        return Decision::Deny(format!("{} is not allowed in this session.", question.tool));
    }
    if question.mode == PermissionMode::BypassPermissions || is_free(question) {
        return Decision::Allow;
    }
    if question.mode == PermissionMode::Plan && matches!(question.touches, Touches::Writes(_) | Touches::Runs)
    {
        let text = "changes things, which plan mode does not allow. Present the plan first.";
        return Decision::Deny(format!("{} {text}", question.tool));
    }
    if named(question.allowed) {
        return Decision::Allow;
    }
    match question.mode {
        PermissionMode::AcceptEdits if writes_inside(question) => Decision::Allow,
        PermissionMode::DontAsk => Decision::Deny(format!(
            "{} needs a permission, and this session never asks for one.",
            question.tool
        )),
        PermissionMode::Default
        | PermissionMode::Plan
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::Delegate
        | PermissionMode::BypassPermissions => Decision::Ask,
    }
}

fn is_free(question: &Question<'_>) -> bool {
    match question.touches {
        Touches::Nothing => true,
        Touches::Reads(_) => question.inside,
        Touches::Writes(_) | Touches::Runs | Touches::Network => false,
    }
}

fn writes_inside(question: &Question<'_>) -> bool {
    matches!(question.touches, Touches::Writes(_)) && question.inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_precedence() {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
        let reads = Touches::Reads(vec!["a".into()]);
        let writes = Touches::Writes(vec!["a".into()]);
        let denied = vec!["Denied".to_owned()];
        let allowed = vec!["Allowed".to_owned()];
        let rows: [(&str, &str, &Touches, bool, PermissionMode, &str); 15] = [
            (
                "a denied tool is denied even when all is bypassed",
                "Denied",
                &reads,
                true,
                BypassPermissions,
                "deny",
            ),
            ("bypass allows", "X", &Touches::Runs, false, BypassPermissions, "allow"),
            ("reading inside is free", "X", &reads, true, Default, "allow"),
            ("reading outside is asked", "X", &reads, false, Default, "ask"),
            ("writing is asked", "X", &writes, true, Default, "ask"),
            ("running is asked", "X", &Touches::Runs, true, Default, "ask"),
            ("the network is asked", "X", &Touches::Network, true, Default, "ask"),
            ("an allowed tool runs", "Allowed", &Touches::Runs, true, Default, "allow"),
            ("edits inside are accepted", "X", &writes, true, AcceptEdits, "allow"),
            ("edits outside are asked", "X", &writes, false, AcceptEdits, "ask"),
            ("commands are asked though edits are accepted", "X", &Touches::Runs, true, AcceptEdits, "ask"),
            ("plan mode changes nothing", "X", &writes, true, Plan, "deny"),
            ("plan mode changes nothing though the tool is allowed", "Allowed", &writes, true, Plan, "deny"),
            ("reading outside is asked in plan mode too", "X", &reads, false, Plan, "ask"),
            ("what would be asked is denied when nobody may be", "X", &Touches::Runs, true, DontAsk, "deny"),
        ];
        for (name, tool, touches, inside, mode, expected) in rows {
            let question = Question { tool, touches, inside, mode, allowed: &allowed, denied: &denied };
            let got = match decide(&question) {
                Decision::Allow => "allow",
                Decision::Deny(_) => "deny",
                Decision::Ask => "ask",
            };
            assert_eq!(got, expected, "{name}");
        }
    }
}
