//! Limits on the length of a line. Truncates an overlong line and notes inside it how much is missing.
//!
//! Long strings are cut first, the longest most. Images and documents are dropped as a whole, because a part is
//! useless.
//! Names, types and ids stay. Only if cutting strings does not suffice are whole lists and objects emptied.

use serde_json::{Map, Value, json};

/// Longest accepted input line, in bytes.
pub const MAX_LINE_IN: usize = 64 * 1024 * 1024;

/// Longest written line, in bytes. The official Python SDK fails on lines of more than 1 MiB.
pub const MAX_LINE_OUT: usize = 1_000_000;

/// Note in place of the missing part of a string, around the number of missing bytes.
const NOTE_PREFIX: &str = " [... ";
const NOTE_SUFFIX: &str = " bytes left out to keep the line short]";

/// Strings are not cut below this length: it would save little.
const MIN_TRUNCATED_BYTES: usize = 128;

/// Truncates the JSON object at `line[start..]` to fewer than `limit` bytes.
pub(crate) fn truncate_line(line: &mut Vec<u8>, start: usize, limit: usize) {
    let mut value: Value = serde_json::from_slice(line.get(start..).unwrap_or_default()).unwrap_or_default();
    truncate_strings(&mut value, limit);
    while json_size(&value) >= limit && clear_largest(&mut value) {}
    if json_size(&value) >= limit {
        value = json!({ "type": value.get("type").filter(|kind| json_size(kind) < MIN_TRUNCATED_BYTES) });
    }
    line.truncate(start);
    line.extend(value.to_string().into_bytes());
}

/// Cuts the longest strings to the largest common length with which the value fits.
fn truncate_strings(value: &mut Value, limit: usize) {
    let mut strings = Vec::new();
    visit_strings(value, "", &mut |text, kind| {
        strings.push((json_string_size(text), kind, render_note(text.len()).len()));
    });
    let total = json_size(value);
    let fits = |longest: usize| {
        let saved: usize = strings
            .iter()
            .map(|(size, kind, note)| size - truncated_size(*size, *kind, *note, longest))
            .sum();
        total - saved < limit
    };
    let (mut fitting, mut beyond) = (MIN_TRUNCATED_BYTES, limit);
    while fitting + 1 < beyond {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    visit_strings(value, "", &mut |text, kind| {
        if json_string_size(text) > fitting {
            *text = truncate_string(text, kind, fitting);
        }
    });
}

/// Restores truncated strings whose beginning matches the original.
pub(crate) fn restore(given_back: &mut Value, original: &Value) {
    match (given_back, original) {
        (Value::String(text), Value::String(whole)) if is_truncated_copy(text, whole) => {
            whole.clone_into(text);
        }
        (Value::Array(items), Value::Array(wholes)) => {
            items.iter_mut().zip(wholes).for_each(|(item, whole)| restore(item, whole));
        }
        (Value::Object(fields), Value::Object(wholes)) => {
            for (name, field) in fields {
                if let Some(whole) = wholes.get(name) {
                    restore(field, whole);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether a text is the beginning of another one, followed by our note.
fn is_truncated_copy(text: &str, whole: &str) -> bool {
    let Some((beginning, _)) = text.rsplit_once(NOTE_PREFIX).filter(|_| text.ends_with(NOTE_SUFFIX)) else {
        return false;
    };
    text.len() != whole.len() && whole.starts_with(beginning)
}

/// Kind of a string, which decides how it is truncated.
#[derive(Clone, Copy)]
enum StringKind {
    /// Its beginning is kept.
    Text,
    /// A part is useless, so the note replaces all of it.
    Binary,
}

/// Size of a string of `size` bytes after truncation to `longest` bytes.
fn truncated_size(size: usize, kind: StringKind, note: usize, longest: usize) -> usize {
    match kind {
        _ if size <= longest => size,
        StringKind::Text => longest,
        StringKind::Binary => note.min(size),
    }
}

/// Calls `seen` for every string that may be cut, with its kind.
fn visit_strings(value: &mut Value, field: &str, seen: &mut impl FnMut(&mut String, StringKind)) {
    match value {
        Value::String(text) if is_identifier_field(field) && text.len() <= 4 * MIN_TRUNCATED_BYTES => {}
        Value::String(text) if text.len() <= MIN_TRUNCATED_BYTES => {}
        Value::String(text) => {
            let kind = if is_base64_data(field, text) { StringKind::Binary } else { StringKind::Text };
            seen(text, kind);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| visit_strings(value, field, seen)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| visit_strings(value, name, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether a field holds an identifier rather than a text.
fn is_identifier_field(field: &str) -> bool {
    let named = ["type", "subtype", "uuid", "id", "role", "model", "name", "toolUseID"];
    named.contains(&field) || field.ends_with("_id") || field.ends_with("_uuid") || field.ends_with("_name")
}

/// Returns whether a string is the base64 data of an image or document.
fn is_base64_data(field: &str, text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    matches!(field, "data" | "base64" | "blob") && text.bytes().all(base64)
}

fn render_note(bytes: usize) -> String {
    format!("{NOTE_PREFIX}{bytes}{NOTE_SUFFIX}")
}

/// Truncates a string to at most `longest` bytes of JSON, the note included.
fn truncate_string(text: &str, kind: StringKind, longest: usize) -> String {
    let room = match kind {
        StringKind::Text => longest.saturating_sub(render_note(text.len()).len() + 2),
        StringKind::Binary => 0,
    };
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += json_char_size(*c);
        used > room
    });
    let beginning = &text[..end.map_or(text.len(), |(at, _)| at)];
    format!("{beginning}{}", render_note(text.len() - beginning.len()))
}

/// Size of a string in JSON, quotes included.
fn json_string_size(text: &str) -> usize {
    2 + text.chars().map(json_char_size).sum::<usize>()
}

fn json_char_size(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// Size of a value in JSON.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(flag) => 5 - usize::from(*flag),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => json_string_size(text),
        Value::Array(values) => json_list_size(values.iter().map(json_size)),
        Value::Object(fields) => {
            json_list_size(fields.iter().map(|(name, value)| json_string_size(name) + 1 + json_size(value)))
        }
    }
}

/// Size of a list or object in JSON: its parts, commas and brackets.
fn json_list_size(parts: impl ExactSizeIterator<Item = usize>) -> usize {
    parts.len().saturating_sub(1) + 2 + parts.sum::<usize>()
}

/// Empties the list or object that makes the value long: the largest one, as deep as it holds more than half of the
/// size.
/// Returns false if there is nothing left to empty.
fn clear_largest(value: &mut Value) -> bool {
    let whole = json_size(value);
    let largest = match value {
        Value::Array(values) => values.iter_mut().max_by_key(|value| json_size(value)),
        Value::Object(fields) => fields.values_mut().max_by_key(|value| json_size(value)),
        _ => return false,
    };
    if let Some(part) = largest
        && json_size(part) * 2 > whole
        && clear_largest(part)
    {
        return true;
    }
    match value {
        Value::Array(values) => !std::mem::take(values).is_empty(),
        Value::Object(fields) => drop_long_fields(fields),
        _ => false,
    }
}

/// Drops the long fields of an object, or half of many short ones. Returns false if that changes nothing.
fn drop_long_fields(fields: &mut Map<String, Value>) -> bool {
    let before = fields.len();
    fields.retain(|name, value| json_size(value) <= MIN_TRUNCATED_BYTES && name.len() <= MIN_TRUNCATED_BYTES);
    let half = fields.len() / 2;
    if fields.len() == before && before > 16 {
        *fields = std::mem::take(fields).into_iter().take(half).collect();
    }
    fields.len() < before
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn truncated(value: &Value, limit: usize) -> Value {
        let mut line = b"before\n".to_vec();
        let start = line.len();
        line.extend(value.to_string().into_bytes());
        truncate_line(&mut line, start, limit);
        assert!(line.starts_with(b"before\n"));
        assert!(line.len() - start < limit, "{} bytes", line.len() - start);
        serde_json::from_slice(&line[start..]).unwrap()
    }

    #[test]
    fn restore_undoes_truncation_and_keeps_changes() {
        let original = json!({"type": "x", "content": "z".repeat(5_000), "path": "a"});
        let mut line = original.to_string().into_bytes();
        truncate_line(&mut line, 0, 1_000);
        let mut echo: Value = serde_json::from_slice(&line).unwrap();
        assert_ne!(echo, original);
        restore(&mut echo, &original);
        assert_eq!(echo, original);
        let mut changed = json!({"content": "something else", "path": "b"});
        restore(&mut changed, &original);
        assert_eq!(changed, json!({"content": "something else", "path": "b"}));
    }

    #[test]
    fn longest_string_is_cut_with_a_note() {
        let line = json!({"type": "user", "uuid": "u", "short": "s".repeat(200), "long": "l".repeat(5000)});
        let short = truncated(&line, 2000);
        assert_eq!(short["short"], line["short"]);
        assert_eq!((&short["type"], &short["uuid"]), (&json!("user"), &json!("u")));
        let long = short["long"].as_str().unwrap();
        assert!(
            long.starts_with("lll") && long.ends_with(" bytes left out to keep the line short]"),
            "{long}"
        );
        assert!(json_size(&short) > 1900, "no more than needed is cut: {}", json_size(&short));
    }

    #[test]
    fn note_gives_the_number_of_missing_bytes() {
        let short = truncated(&json!({"text": "ä".repeat(3000)}), 1000);
        let text = short["text"].as_str().unwrap();
        let beginning = text.chars().take_while(|c| *c == 'ä').count();
        assert!(text.ends_with(&render_note(6000 - 2 * beginning)));
    }

    #[test]
    fn image_is_dropped_as_a_whole() {
        let line =
            json!({"source": {"type": "base64", "data": "QUJD".repeat(1000)}, "text": "t".repeat(300)});
        let short = truncated(&line, 1000);
        assert_eq!(short["source"]["data"], json!(render_note(4000)));
        assert_eq!(short["text"], line["text"]);
    }

    #[test]
    fn strings_are_measured_with_their_escapes() {
        truncated(&json!({"text": "\u{1}\n\"".repeat(2000)}), 1500);
    }

    #[test]
    fn long_list_is_emptied_in_place() {
        let line = json!({"type": "assistant", "message": {"id": "m", "content": [
            {"type": "tool_use", "id": "t", "input": {"numbers": (0..2000).collect::<Vec<_>>()}}
        ]}});
        let short = truncated(&line, 1000);
        let block = json!({"type": "tool_use", "id": "t", "input": {"numbers": []}});
        assert_eq!(short, json!({"type": "assistant", "message": {"id": "m", "content": [block]}}));
    }

    #[test]
    fn value_that_cannot_shrink_still_gives_a_line() {
        let keys: Map<String, Value> = (0..1000).map(|n| (format!("key {n}"), json!(n))).collect();
        truncated(&Value::Object(keys), 500);
        truncated(&json!({"k".repeat(3000): 1}), 500);
        let mut broken = b"{not json".to_vec();
        truncate_line(&mut broken, 0, 100);
        assert_eq!(broken, br#"null"#);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
            (1..3000_usize, any::<char>()).prop_map(|(n, c)| Value::from(c.to_string().repeat(n))),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map("[a-z_\u{1}é]{0,12}", inner, 0..8)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_size_equals_the_serialized_size(value in any_json()) {
            prop_assert_eq!(json_size(&value), value.to_string().len());
        }

        #[test]
        fn any_value_fits_after_truncation(value in any_json(), limit in 100_usize..4000) {
            truncated(&value, limit);
        }
    }
}
