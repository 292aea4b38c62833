//! What differs between runs: finds random ids and timestamps in texts, and maps the ids of a recording to those of the
//! current run. Pure.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

/// Length of a UUID.
const UUID_LEN: usize = 36;

/// Length of a short id: one letter for its kind, then hexadecimal digits.
const SHORT_ID_LEN: usize = 9;

/// Form of a timestamp up to its seconds; `0` stands for a digit.
const TIMESTAMP_PATTERN: &[u8] = b"0000-00-00T00:00:00";

/// Replaces the ids and timestamps in a value by placeholders; returns the ids in order of their first occurrence.
pub(super) fn normalize(mut value: Value) -> (Value, Vec<String>) {
    let mut ids: Vec<String> = Vec::new();
    for_each_string(&mut value, &mut |text| {
        *text = replace_matches(text, find_timestamp, |_| Some("<moment>".to_owned()));
        *text = replace_matches(text, find_id, |id| {
            let at = ids.iter().position(|known| known == id).unwrap_or_else(|| {
                ids.push(id.to_owned());
                ids.len() - 1
            });
            Some(format!("<id {}>", at + 1))
        });
    });
    (value, ids)
}

/// One-to-one map between the ids of a recording and those of the current run.
#[derive(Debug, Default)]
pub(super) struct IdMap {
    current_ids: HashMap<String, String>,
    recorded_ids: HashMap<String, String>,
}

impl IdMap {
    /// Returns true if the ids at the same positions can be mapped to each other.
    pub(super) fn is_consistent(&self, recorded: &[String], current: &[String]) -> bool {
        recorded.len() == current.len()
            && recorded.iter().zip(current).all(|(recorded, current)| self.can_map(recorded, current))
    }

    fn can_map(&self, recorded: &str, current: &str) -> bool {
        self.current_ids.get(recorded).is_none_or(|known| known == current)
            && self.recorded_ids.get(current).is_none_or(|known| known == recorded)
    }

    /// Maps the ids at the same positions to each other, where that contradicts no earlier pair.
    pub(super) fn insert_pairs(&mut self, recorded: &[String], current: &[String]) {
        for (recorded, current) in recorded.iter().zip(current) {
            if self.can_map(recorded, current) {
                self.current_ids.insert(recorded.clone(), current.clone());
                self.recorded_ids.insert(current.clone(), recorded.clone());
            }
        }
    }

    /// Replaces recorded ids in a text by the current ones.
    pub(super) fn substitute(&self, text: &str) -> String {
        replace_matches(text, find_id, |id| self.current_ids.get(id).cloned())
    }

    /// Returns true if every recorded id maps to itself.
    pub(super) fn is_identity(&self) -> bool {
        self.current_ids.iter().all(|(recorded, current)| recorded == current)
    }
}

/// Calls a function with every string in a value.
pub(super) fn for_each_string(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_string(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| for_each_string(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces every match of `find` in a text; `None` from `with` keeps the match.
fn replace_matches(
    text: &str,
    find: fn(&str, usize) -> Option<Range<usize>>,
    mut with: impl FnMut(&str) -> Option<String>,
) -> String {
    let (mut replaced, mut rest) = (String::new(), 0);
    while let Some(found) = find(text, rest) {
        replaced += &text[rest..found.start];
        let id = &text[found.clone()];
        replaced += &with(id).unwrap_or_else(|| id.to_owned());
        rest = found.end;
    }
    replaced + &text[rest..]
}

/// Finds the next id at or after a position.
fn find_id(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let starts_here = |at: usize| is_word(at) && (at == 0 || !is_word(at - 1));
    (from..bytes.len()).filter(|at| starts_here(*at)).find_map(|at| {
        let matches = |length: usize, is_id: fn(&[u8]) -> bool| {
            let end = at + length;
            (bytes.get(at..end).is_some_and(is_id) && !is_word(end)).then_some(at..end)
        };
        matches(UUID_LEN, is_uuid).or_else(|| matches(SHORT_ID_LEN, is_short_id))
    })
}

fn is_uuid(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => is_hex_digit(*byte),
    })
}

fn is_short_id(bytes: &[u8]) -> bool {
    let Some((kind, digits)) = bytes.split_first() else { return false };
    // Letters only: an ordinary word.
    kind.is_ascii_lowercase()
        && digits.iter().all(|byte| is_hex_digit(*byte))
        && digits.iter().any(u8::is_ascii_digit)
}

fn is_hex_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Finds the next timestamp with a time zone at or after a position, as in `2026-11-16T15:02:56.455Z`.
fn find_timestamp(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let starts_here = |at: usize| at == 0 || !bytes[at - 1].is_ascii_digit();
    (from..bytes.len()).filter(|at| starts_here(*at)).find_map(|at| Some(at..timestamp_end(bytes, at)?))
}

/// Returns the end of the timestamp that begins at `at`.
fn timestamp_end(bytes: &[u8], at: usize) -> Option<usize> {
    let matches = |(byte, pattern): (&u8, &u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    let head = bytes.get(at..at + TIMESTAMP_PATTERN.len())?;
    if !head.iter().zip(TIMESTAMP_PATTERN).all(matches) {
        return None;
    }
    let mut end = at + TIMESTAMP_PATTERN.len();
    if bytes.get(end) == Some(&b'.') {
        end += 1 + bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    match bytes.get(end)? {
        b'Z' => Some(end + 1),
        b'+' | b'-' => {
            let zone = bytes.get(end + 1..end + 6)?;
            zone.iter().zip(b"00:00").all(matches).then_some(end + 6)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_found_in_any_context() {
        let uuid = "0f0e0d0c-1111-4222-8333-444455556666";
        let rows = [
            ("agentId: ac7e76fd0 (go on)", "agentId: <id 1> (go on)"),
            ("b47f9d230\nb47f9d230, a47f9d230", "<id 1>\n<id 1>, <id 2>"),
            (&format!("/p/{uuid}/tool-results/o12345678.txt"), "/p/<id 1>/tool-results/<id 2>.txt"),
            ("agent-a12345678.jsonl", "agent-<id 1>.jsonl"),
            (
                "badefaced toolu_a12345678x xa12345678 a1234567 A12345678",
                "badefaced toolu_a12345678x xa12345678 a1234567 A12345678",
            ),
            ("größe a12345678ß", "größe <id 1>ß"),
            ("a12345678 at 2026-11-16T15:02:56.455364894Z.", "<id 1> at <moment>."),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(normalize(json!([text])).0, json!([expected]), "{text}");
        }
        assert_eq!(normalize(json!({"a": "a12345678", "b": ["a12345678"]})).1, ["a12345678"]);
    }

    #[test]
    fn id_map_is_one_to_one() {
        let ids = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut current = IdMap::default();
        assert!(current.is_identity());
        current.insert_pairs(&ids(&["a00000001", "b00000001"]), &ids(&["a00000002", "b00000001"]));
        assert!(!current.is_identity());
        assert!(current.is_consistent(&ids(&["a00000001"]), &ids(&["a00000002"])));
        assert!(!current.is_consistent(&ids(&["a00000001"]), &ids(&["a00000003"])));
        assert!(!current.is_consistent(&ids(&["a00000001"]), &[]));
        assert!(
            !current.is_consistent(&ids(&["a00000009"]), &ids(&["a00000002"])),
            "that one is another already"
        );
        current.insert_pairs(&ids(&["a00000009", "d00000001"]), &ids(&["a00000002", "d00000002"]));
        assert_eq!(current.substitute("a00000009 d00000001"), "a00000009 d00000002");
        assert_eq!(current.substitute("ask a00000001 or c00000001"), "ask a00000002 or c00000001");
    }

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
            assert_eq!(find_timestamp(text, 0).map(|at| &text[at]), expected, "{text}");
        }
    }
}
