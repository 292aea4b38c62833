//! Signals: the first stops the run, a second SIGINT leaves at once, and nothing takes longer than two seconds.

use std::io;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{Shutdown, AbortReason};

/// How long a stopped run may take to wind up.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1900);

/// Watches for signals from now on, in a thread of its own: a busy engine cannot keep them waiting.
pub(crate) fn watch(cut: Shutdown) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    // With a handler, a file that may not grow is an error of the write and not the end of us.
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

/// Leaves when the patience is over, whatever still runs.
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
