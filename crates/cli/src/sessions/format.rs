//! Formats times, paths and columns. Pure.

use std::path::Path;
use std::time::SystemTime;

/// Formats the time since a moment; a date if it is long ago.
pub(super) fn format_age(now: SystemTime, then: SystemTime) -> String {
    let age = now.duration_since(then).unwrap_or_default();
    let (minutes, hours, days) = (age.as_secs() / 60, age.as_secs() / 3600, age.as_secs() / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => "just now".into(),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (1, ..) => "1 day ago".into(),
        (2..=13, ..) => format!("{days} days ago"),
        _ => format_date(then),
    }
}

/// Formats the date in UTC.
pub(super) fn format_date(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// Replaces the home directory in a path by `~`.
pub(super) fn shorten_home(path: &str, home: Option<&Path>) -> String {
    match home.and_then(|home| Path::new(path).strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.to_owned(),
    }
}

/// Truncates or pads a text to a width.
pub(super) fn pad(text: &str, width: usize) -> String {
    let truncated = truncate(text, width);
    let missing = width.saturating_sub(truncated.chars().count());
    truncated + &" ".repeat(missing)
}

/// Truncates a text to a width.
pub(super) fn truncate(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ages_are_formatted() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_798_000);
        for (seconds, expected) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (7200, "2 h ago"),
            (86_400, "1 day ago"),
            (10 * 86_400, "10 days ago"),
            (20 * 86_400, "2026-10-27"),
            (1_794_798_000, "1970-01-01"),
        ] {
            assert_eq!(format_age(now, now - Duration::from_secs(seconds)), expected, "{seconds}");
        }
        assert_eq!(format_age(now, now + Duration::from_secs(99)), "just now");
    }

    #[test]
    fn paths_and_columns_are_formatted() {
        let home = Some(Path::new("/home/ann"));
        assert_eq!(shorten_home("/home/ann/src", home), "~/src");
        assert_eq!(shorten_home("/home/ann", home), "~");
        assert_eq!(shorten_home("/home/anna", home), "/home/anna");
        assert_eq!(pad("ünï", 5), "ünï  ");
        assert_eq!(pad("abcdef", 4), "abc…");
        assert_eq!(truncate("abcd", 4), "abcd");
    }
}
