//! Finds timestamps as the engine and other programs write them. They differ from run to run. Pure.

use std::ops::Range;

/// Form of a timestamp up to its seconds; `0` stands for a digit.
const PATTERN: &[u8] = b"0000-00-00T00:00:00";

/// Finds the next timestamp with a time zone at or after a position, as in `2026-11-16T15:02:56.455Z`.
pub(super) fn find_next(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let begins = |at: usize| at == 0 || !bytes[at - 1].is_ascii_digit();
    (from..bytes.len()).filter(|at| begins(*at)).find_map(|at| Some(at..timestamp_end(bytes, at)?))
}

/// Returns the end of the timestamp that begins at `at`.
fn timestamp_end(bytes: &[u8], at: usize) -> Option<usize> {
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    let head = bytes.get(at..at + PATTERN.len())?;
    if !head.iter().zip(PATTERN).all(fits) {
        return None;
    }
    let mut end = at + PATTERN.len();
    if bytes.get(end) == Some(&b'.') {
        end += 1 + bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    match bytes.get(end)? {
        b'Z' => Some(end + 1),
        b'+' | b'-' => {
            let zone = bytes.get(end + 1..end + 6)?;
            zone.iter().zip(b"00:00").all(fits).then_some(end + 6)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_found_with_any_zone_and_precision() {
        let rows = [
            ("at 2026-11-16T15:02:56.455364894Z.", Some("2026-11-16T15:02:56.455364894Z")),
            ("2026-11-16T15:02:56Z", Some("2026-11-16T15:02:56Z")),
            ("ä2026-11-16T15:02:56+01:00ä", Some("2026-11-16T15:02:56+01:00")),
            ("12026-11-16T15:02:56Z", None),
            ("2026-11-16T15:02:56", None),
            ("2026-11-16T15:02:56+0", None),
            ("2026-11-16", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(find_next(text, 0).map(|at| &text[at]), expected, "{text}");
        }
    }
}
