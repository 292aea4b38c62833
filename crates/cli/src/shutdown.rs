//! End of the program: reasons for an early one, signals, and the exit code.
//!
//! The first signal stops the run, a second SIGINT exits at once, and after two seconds the program exits anyway.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::{SessionExit, TurnSummary};
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};

/// Exit code of every failure.
pub(crate) const FAILURE: i32 = 1;

/// Time a stopped run has to finish.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1900);

/// Reason for an early end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AbortReason {
    /// A signal, by its number.
    Signal(i32),
    /// The host no longer reads our output.
    HostDisconnected,
    /// A malformed line with `--strict-input`.
    MalformedInput,
}

/// Ends a run early. The first reason counts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    token: CancellationToken,
    reason: Arc<OnceLock<AbortReason>>,
}

impl Shutdown {
    /// Creates a handle that cancels this token.
    pub(crate) fn new(token: CancellationToken) -> Self {
        Self { token, reason: Arc::default() }
    }

    /// Stops everything now.
    pub(crate) fn trigger(&self, reason: AbortReason) {
        // A later reason is ignored.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// The reason, if it was triggered.
    pub(crate) fn reason(&self) -> Option<AbortReason> {
        self.reason.get().copied()
    }

    /// The token that it cancels.
    #[cfg(test)]
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

/// Watches for signals in a thread of its own, so that a busy engine cannot delay them.
pub(crate) fn watch_signals(shutdown: Shutdown) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    // With a handler, a file that exceeds its size limit fails the write instead of killing the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let watch = move || {
        for signal in signals.forever() {
            match shutdown.reason() {
                None => {
                    shutdown.trigger(AbortReason::Signal(signal));
                    exit_after_grace(128 + signal);
                }
                Some(_) if signal == SIGINT => std::process::exit(128 + signal),
                Some(_) => {}
            }
        }
    };
    Builder::new().name("signals".into()).spawn(watch).map(drop)
}

/// Exits after the grace period, whatever still runs.
fn exit_after_grace(code: i32) {
    let wait = move || {
        #[expect(clippy::disallowed_methods, reason = "this is the deadline itself")]
        thread::sleep(SHUTDOWN_GRACE);
        std::process::exit(code);
    };
    if Builder::new().name("grace".into()).spawn(wait).is_err() {
        std::process::exit(code);
    }
}

/// Outcome of a run.
pub(crate) struct RunOutcome {
    /// Summary from the engine.
    pub(crate) session_exit: SessionExit,
    /// The last result, unless it was passed on as a frame.
    pub(crate) result: Option<Box<TurnResult>>,
    /// Reason for an early end.
    pub(crate) abort_reason: Option<AbortReason>,
}

/// Host, by its treatment of the exit code of a failed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// It accepts any exit code.
    Standard,
    /// TypeScript SDK 0.2: any code but 0 makes it throw, even after the result was delivered. Its own engine exits
    /// with 0 after a turn that reached a limit or was interrupted.
    OldTypeScript,
}

impl HostKind {
    /// Detects the host by `CLAUDE_CODE_ENTRYPOINT` and `CLAUDE_AGENT_SDK_VERSION`, which SDK 0.2 may omit.
    pub(crate) fn from_env(entrypoint: Option<&str>, version: Option<&str>) -> Self {
        match (entrypoint, version) {
            (Some("sdk-ts"), None) => Self::OldTypeScript,
            (Some("sdk-ts"), Some(version)) if version.starts_with("0.2.") => Self::OldTypeScript,
            _ => Self::Standard,
        }
    }
}

/// Computes the exit code:
/// 1. an early end: 128 plus the signal, or 1;
/// 2. a session that never started: 1;
/// 3. the last result is an error: 1, but 0 for an old TypeScript host if it is a limit or an interrupt;
/// 4. otherwise 0.
pub(crate) fn exit_code(reason: Option<AbortReason>, session_exit: &SessionExit, host: HostKind) -> i32 {
    match reason {
        Some(AbortReason::Signal(signal)) => return 128 + signal,
        Some(AbortReason::HostDisconnected | AbortReason::MalformedInput) => return FAILURE,
        None => {}
    }
    match &session_exit.last_turn {
        _ if session_exit.setup_error.is_some() => FAILURE,
        Some(turn) if turn.is_error => match host {
            HostKind::OldTypeScript if is_limit_or_interrupt(turn) => 0,
            HostKind::OldTypeScript | HostKind::Standard => FAILURE,
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
        Outcome::Success | Outcome::ErrorMaxStructuredOutputRetries => false,
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
        use HostKind::{OldTypeScript as Old, Standard as New};
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
            (Some("sdk-ts"), None, HostKind::OldTypeScript),
            (Some("sdk-ts"), Some("0.2.50"), HostKind::OldTypeScript),
            (Some("sdk-ts"), Some("0.3.325"), HostKind::Standard),
            (Some("sdk-py"), None, HostKind::Standard),
            (Some("sdk-py"), Some("0.2.182"), HostKind::Standard),
            (None, None, HostKind::Standard),
        ];
        for (entrypoint, version, expected) in rows {
            assert_eq!(HostKind::from_env(entrypoint, version), expected, "{entrypoint:?} {version:?}");
        }
    }

    #[test]
    fn first_reason_counts() {
        let shutdown = Shutdown::default();
        assert_eq!((shutdown.reason(), shutdown.token().is_cancelled()), (None, false));
        shutdown.trigger(AbortReason::HostDisconnected);
        shutdown.trigger(AbortReason::Signal(15));
        assert_eq!(
            (shutdown.reason(), shutdown.token().is_cancelled()),
            (Some(AbortReason::HostDisconnected), true)
        );
    }
}
