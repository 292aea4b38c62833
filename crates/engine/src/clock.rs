//! Time: the only place that asks what time it is.

use std::time::{Instant, SystemTime};

/// The monotonic clock, for durations.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// The wall clock.
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// The wall clock in RFC 3339 with milliseconds, as transcripts have it.
pub fn timestamp() -> String {
    let now = jiff::Timestamp::try_from(wall()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{now:.3}")
}

/// Today's date in the local time zone, e.g. `2026-11-15`.
pub fn today() -> String {
    let now = jiff::Timestamp::try_from(wall()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.to_zoned(jiff::tz::TimeZone::system()).date().to_string()
}
