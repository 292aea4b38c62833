//! How the program leaves: what cuts a run short, and which code says how it went.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;
use whimbrel_engine::{Farewell, LastTurn};
use whimbrel_wire::message::{Outcome, TerminalReason};

/// The code for whatever went wrong.
pub(crate) const FAILED: i32 = 1;

/// Why a run was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A signal, by its number.
    Signal(i32),
    /// Nobody reads what we write.
    HostGone,
    /// A malformed line, where none is allowed.
    BadInput,
}

/// Cuts a run short. The first reason counts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut {
    token: CancellationToken,
    why: Arc<OnceLock<Why>>,
}

impl Cut {
    /// A cut that fires this token.
    pub(crate) fn new(token: CancellationToken) -> Self {
        Self { token, why: Arc::default() }
    }

    /// Stops everything now.
    pub(crate) fn fire(&self, why: Why) {
        // A second reason changes nothing.
        let _ = self.why.set(why);
        self.token.cancel();
    }

    /// Why it was fired, if it was.
    pub(crate) fn why(&self) -> Option<Why> {
        self.why.get().copied()
    }

    /// What it fires.
    #[cfg(test)]
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

/// What the host makes of a failed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// It takes a code for what it is.
    Usual,
    /// The TypeScript SDK 0.2: any code but 0 makes it throw, even after the result was delivered. For a turn that met its
    /// limit or was interrupted its own engine leaves with 0.
    OldTypeScript,
}

impl Host {
    /// Goes by `CLAUDE_CODE_ENTRYPOINT` and `CLAUDE_AGENT_SDK_VERSION`, which the 0.2 SDK may leave out.
    pub(crate) fn from_env(entrypoint: Option<&str>, version: Option<&str>) -> Self {
        match (entrypoint, version) {
            (Some("sdk-ts"), None) => Self::OldTypeScript,
            (Some("sdk-ts"), Some(version)) if version.starts_with("0.2.") => Self::OldTypeScript,
            _ => Self::Usual,
        }
    }
}

/// The exit code:
/// 1. what cut the run short: 128 and the signal, or 1;
/// 2. a session that never began: 1;
/// 3. the last result is an error: 1, but for an old TypeScript host 0 if it is a limit or an interrupt;
/// 4. otherwise 0.
pub(crate) fn code(why: Option<Why>, farewell: &Farewell, host: Host) -> i32 {
    match why {
        Some(Why::Signal(signal)) => return 128 + signal,
        Some(Why::HostGone | Why::BadInput) => return FAILED,
        None => {}
    }
    match &farewell.last_turn {
        _ if farewell.not_started.is_some() => FAILED,
        Some(turn) if turn.is_error => match host {
            Host::OldTypeScript if is_mild(turn) => 0,
            Host::OldTypeScript | Host::Usual => FAILED,
        },
        _ => 0,
    }
}

/// Whether a turn ended by its limit or an interrupt rather than a failure.
fn is_mild(turn: &LastTurn) -> bool {
    match turn.outcome {
        Outcome::ErrorMaxTurns | Outcome::ErrorMaxBudgetUsd => true,
        Outcome::ErrorDuringExecution => {
            matches!(turn.reason, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools))
        }
        Outcome::Success | Outcome::ErrorMaxStructuredOutputRetries => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_engine::setup::SetupError;

    use super::*;

    fn ended(subtype: &str, is_error: bool, reason: &str) -> Farewell {
        let outcome = serde_json::from_value(json!(subtype)).unwrap();
        let reason = serde_json::from_value(json!(reason)).unwrap();
        Farewell { last_turn: Some(LastTurn { outcome, is_error, reason: Some(reason) }), not_started: None }
    }

    #[test]
    fn the_code_says_how_the_run_went() {
        use Host::{OldTypeScript as Old, Usual as New};
        let not_started = Farewell {
            not_started: Some(SetupError::Invalid("no".into())),
            ..ended("error_during_execution", true, "turn_setup_failed")
        };
        let rows = [
            ("nothing was asked", None, Farewell::default(), New, 0),
            ("a good answer", None, ended("success", false, "completed"), New, 0),
            ("a failed call of the model", None, ended("success", true, "api_error"), New, 1),
            ("the same for an old host", None, ended("success", true, "api_error"), Old, 1),
            ("too many turns", None, ended("error_max_turns", true, "max_turns"), New, 1),
            ("the same for an old host", None, ended("error_max_turns", true, "max_turns"), Old, 0),
            ("over the budget", None, ended("error_max_budget_usd", true, "budget_exhausted"), New, 1),
            (
                "the same for an old host",
                None,
                ended("error_max_budget_usd", true, "budget_exhausted"),
                Old,
                0,
            ),
            ("an interrupt", None, ended("error_during_execution", true, "aborted_tools"), New, 1),
            (
                "the same for an old host",
                None,
                ended("error_during_execution", true, "aborted_tools"),
                Old,
                0,
            ),
            ("while it spoke", None, ended("error_during_execution", true, "aborted_streaming"), Old, 0),
            ("another failure", None, ended("error_during_execution", true, "model_error"), Old, 1),
            ("never begun", None, not_started.clone(), New, 1),
            ("never begun for an old host", None, not_started, Old, 1),
            (
                "SIGTERM",
                Some(Why::Signal(15)),
                ended("error_during_execution", true, "aborted_tools"),
                Old,
                143,
            ),
            ("SIGINT", Some(Why::Signal(2)), Farewell::default(), New, 130),
            ("the host is gone", Some(Why::HostGone), ended("success", false, "completed"), New, 1),
            ("a malformed line", Some(Why::BadInput), Farewell::default(), New, 1),
        ];
        for (name, why, farewell, host, expected) in rows {
            assert_eq!(code(why, &farewell, host), expected, "{name} ({host:?})");
        }
    }

    #[test]
    fn an_old_typescript_host_is_known_by_its_version_or_by_having_none() {
        let rows = [
            (Some("sdk-ts"), None, Host::OldTypeScript),
            (Some("sdk-ts"), Some("0.2.50"), Host::OldTypeScript),
            (Some("sdk-ts"), Some("0.3.325"), Host::Usual),
            (Some("sdk-py"), None, Host::Usual),
            (Some("sdk-py"), Some("0.2.182"), Host::Usual),
            (None, None, Host::Usual),
        ];
        for (entrypoint, version, expected) in rows {
            assert_eq!(Host::from_env(entrypoint, version), expected, "{entrypoint:?} {version:?}");
        }
    }

    #[test]
    fn the_first_reason_counts() {
        let cut = Cut::default();
        assert_eq!((cut.why(), cut.token().is_cancelled()), (None, false));
        cut.fire(Why::HostGone);
        cut.fire(Why::Signal(15));
        assert_eq!((cut.why(), cut.token().is_cancelled()), (Some(Why::HostGone), true));
    }
}
