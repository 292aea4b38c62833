//! Clock of the benchmarks.

use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Sleeps, for the few places that poll.
#[expect(clippy::disallowed_methods, reason = "memory is sampled at intervals")]
pub(super) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Converts a duration to milliseconds.
pub(super) fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
