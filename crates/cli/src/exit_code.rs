//! Exit code of the program, from the outcome of a run. Pure.

use whimbrel_engine::{SessionExit, TurnSummary};
use whimbrel_wire::message::{Outcome, TerminalReason};

use crate::shutdown::AbortReason;

/// Exit code of every failure.
pub(crate) const FAILURE: i32 = 1;

/// Treatment of the exit code of a failed turn by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCodeCompat {
    /// The host accepts any exit code.
    Standard,
    /// TypeScript SDK 0.2: any code but 0 makes it throw, even after the result was delivered. Its own engine exits
    /// with 0 after a turn that reached a limit or was interrupted.
    TypeScript02,
}

impl ExitCodeCompat {
    /// Detects the host by `CLAUDE_CODE_ENTRYPOINT` and `CLAUDE_AGENT_SDK_VERSION`, which SDK 0.2 may omit.
    pub(crate) fn from_env(entrypoint: Option<&str>, version: Option<&str>) -> Self {
        match (entrypoint, version) {
            (Some("sdk-ts"), None) => Self::TypeScript02,
            (Some("sdk-ts"), Some(version)) if version.starts_with("0.2.") => Self::TypeScript02,
            _ => Self::Standard,
        }
    }
}

/// Computes the exit code:
/// 1. an early end: 128 plus the signal, or 1;
/// 2. a session that never started: 1;
/// 3. the last result is an error: 1, but 0 for an old TypeScript host if it is a limit or an interrupt;
/// 4. otherwise 0.
pub(crate) fn exit_code(
    reason: Option<AbortReason>,
    session_exit: &SessionExit,
    compat: ExitCodeCompat,
) -> i32 {
    match reason {
        Some(AbortReason::Signal(signal)) => return 128 + signal,
        Some(AbortReason::HostDisconnected | AbortReason::MalformedInput) => return FAILURE,
        None => {}
    }
    match &session_exit.last_turn {
        _ if session_exit.setup_error.is_some() => FAILURE,
        Some(turn) if turn.is_error => match compat {
            ExitCodeCompat::TypeScript02 if is_limit_or_interrupt(turn) => 0,
            ExitCodeCompat::TypeScript02 | ExitCodeCompat::Standard => FAILURE,
        },
        _ => 0,
    }
}

/// Returns whether a turn ended by a limit or an interrupt rather than by a failure.
fn is_limit_or_interrupt(turn: &TurnSummary) -> bool {
    match turn.outcome {
        Outcome::ErrorMaxTurns | Outcome::ErrorMaxBudgetUsd => true,
        Outcome::ErrorDuringExecution => {
            matches!(turn.reason, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_engine::setup::SetupError;

    use super::*;

    fn exit_with_turn(subtype: &str, is_error: bool, reason: &str) -> SessionExit {
        let outcome = serde_json::from_value(json!(subtype)).unwrap();
        let reason = serde_json::from_value(json!(reason)).unwrap();
        SessionExit {
            last_turn: Some(TurnSummary { outcome, is_error, reason: Some(reason) }),
            setup_error: None,
        }
    }

    #[test]
    fn exit_code_reflects_the_outcome() {
        use ExitCodeCompat::{Standard as New, TypeScript02 as Old};
        let not_started = SessionExit {
            setup_error: Some(SetupError::Invalid("no".into())),
            ..exit_with_turn("error_during_execution", true, "turn_setup_failed")
        };
        let rows = [
            ("nothing was asked", None, SessionExit::default(), New, 0),
            ("a good answer", None, exit_with_turn("success", false, "completed"), New, 0),
            ("a failed call of the model", None, exit_with_turn("success", true, "api_error"), New, 1),
            ("the same for an old host", None, exit_with_turn("success", true, "api_error"), Old, 1),
            ("too many turns", None, exit_with_turn("error_max_turns", true, "max_turns"), New, 1),
            ("the same for an old host", None, exit_with_turn("error_max_turns", true, "max_turns"), Old, 0),
            (
                "over the budget",
                None,
                exit_with_turn("error_max_budget_usd", true, "budget_exhausted"),
                New,
                1,
            ),
            (
                "the same for an old host",
                None,
                exit_with_turn("error_max_budget_usd", true, "budget_exhausted"),
                Old,
                0,
            ),
            ("an interrupt", None, exit_with_turn("error_during_execution", true, "aborted_tools"), New, 1),
            (
                "the same for an old host",
                None,
                exit_with_turn("error_during_execution", true, "aborted_tools"),
                Old,
                0,
            ),
            (
                "while it spoke",
                None,
                exit_with_turn("error_during_execution", true, "aborted_streaming"),
                Old,
                0,
            ),
            ("another failure", None, exit_with_turn("error_during_execution", true, "model_error"), Old, 1),
            ("never begun", None, not_started.clone(), New, 1),
            ("never begun for an old host", None, not_started, Old, 1),
            (
                "SIGTERM",
                Some(AbortReason::Signal(15)),
                exit_with_turn("error_during_execution", true, "aborted_tools"),
                Old,
                143,
            ),
            ("SIGINT", Some(AbortReason::Signal(2)), SessionExit::default(), New, 130),
            (
                "the host is gone",
                Some(AbortReason::HostDisconnected),
                exit_with_turn("success", false, "completed"),
                New,
                1,
            ),
            ("a malformed line", Some(AbortReason::MalformedInput), SessionExit::default(), New, 1),
        ];
        for (name, reason, session_exit, host, expected) in rows {
            assert_eq!(exit_code(reason, &session_exit, host), expected, "{name} ({host:?})");
        }
    }

    #[test]
    fn old_typescript_host_is_detected_by_its_version() {
        let rows = [
            (Some("sdk-ts"), None, ExitCodeCompat::TypeScript02),
            (Some("sdk-ts"), Some("0.2.50"), ExitCodeCompat::TypeScript02),
            (Some("sdk-ts"), Some("0.3.325"), ExitCodeCompat::Standard),
            (Some("sdk-py"), None, ExitCodeCompat::Standard),
            (Some("sdk-py"), Some("0.2.182"), ExitCodeCompat::Standard),
            (None, None, ExitCodeCompat::Standard),
        ];
        for (entrypoint, version, expected) in rows {
            assert_eq!(ExitCodeCompat::from_env(entrypoint, version), expected, "{entrypoint:?} {version:?}");
        }
    }
}
