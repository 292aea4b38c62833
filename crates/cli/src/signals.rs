//! Signals: the first stops the run, a second SIGINT exits at once, and after two seconds the program exits anyway.

use std::io;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{AbortReason, Shutdown};

/// Time a stopped run has to finish.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1900);

/// Watches for signals in a thread of its own, so that a busy engine cannot delay them.
pub(crate) fn watch(cut: Shutdown) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    // With a handler, a file that exceeds its size limit fails the write instead of killing the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let watch = move || {
        for signal in signals.forever() {
            match cut.reason() {
                None => {
                    cut.trigger(AbortReason::Signal(signal));
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
    if Builder::new().name("patience".into()).spawn(wait).is_err() {
        std::process::exit(code);
    }
}
