//! Wall clock and monotonic clock. Code with timers uses the clock of tokio instead, which tests can pause. `models`
//! reads the wall clock itself for dates in `retry-after` headers.
#![expect(clippy::disallowed_methods, reason = "other crates read the clock through this file")]

use std::path::Path;
use std::time::{Instant, SystemTime};

use jiff::tz::TimeZone;

use crate::files;

/// Monotonic clock, for durations.
pub fn monotonic() -> Instant {
    Instant::now()
}

pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Wall clock time in RFC 3339 with milliseconds, as in transcripts.
pub fn timestamp() -> String {
    let now = jiff::Timestamp::try_from(wall()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{now:.3}")
}

/// Milliseconds since the Unix epoch.
pub fn unix_millis() -> u64 {
    let since = wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Current date in the local time zone, e.g. `2026-11-15`.
pub fn today() -> String {
    local_now().date().to_string()
}

pub fn local_now() -> jiff::Zoned {
    let now = jiff::Timestamp::try_from(wall()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.to_zoned(local_time_zone())
}

/// The local time zone, read from `/etc/localtime` directly: resolving its name would read the whole time zone
/// database, most of the startup time of a short run.
fn local_time_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    let zone = files::read(Path::new("/etc/localtime"), 64 * 1024).ok();
    zone.and_then(|(bytes, _)| TimeZone::tzif("local", &bytes).ok()).unwrap_or(TimeZone::UTC)
}
