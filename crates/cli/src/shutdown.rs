//! End of the program: signals, other reasons for an early end, and the outcome of a run.
//!
//! The first signal stops the run, a second SIGINT exits at once, and after two seconds the program exits anyway.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::SessionExit;
use whimbrel_wire::message::TurnResult;

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

#[cfg(test)]
mod tests {
    use super::*;

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
