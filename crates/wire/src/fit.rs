//! Makes a line that is too long fit, and says in the line itself that something is missing.
//!
//! Long strings give way first, the longest most; pictures and documents go as a whole, because half of one is none.
//! Names, kinds and ids stay. Only when strings are not the reason are whole lists and objects emptied.

use serde_json::{Map, Value, json};

/// What stands where a string was cut, around the number of bytes.
const NOTE_BEGINS: &str = " [... ";
const NOTE_ENDS: &str = " bytes left out to keep the line short]";

/// No string is cut below this many bytes: it would not gain much.
const WORTH_CUTTING: usize = 128;

/// Shortens the JSON object at `line[start..]` until it has fewer than `limit` bytes.
pub(crate) fn shorten(line: &mut Vec<u8>, start: usize, limit: usize) {
    let mut value: Value = serde_json::from_slice(line.get(start..).unwrap_or_default()).unwrap_or_default();
    cut_strings(&mut value, limit);
    while size(&value) >= limit && empty_the_largest(&mut value) {}
    if size(&value) >= limit {
        value = json!({ "type": value.get("type").filter(|kind| size(kind) < WORTH_CUTTING) });
    }
    line.truncate(start);
    line.extend(value.to_string().into_bytes());
}

/// Cuts the longest strings to the largest common length with which the value fits.
fn cut_strings(value: &mut Value, limit: usize) {
    let mut strings = Vec::new();
    visit(value, "", &mut |text, kind| strings.push((escaped(text), kind, note(text.len()).len())));
    let total = size(value);
    let fits = |longest: usize| {
        let saved: usize =
            strings.iter().map(|(size, kind, note)| size - left(*size, *kind, *note, longest)).sum();
        total - saved < limit
    };
    let (mut fitting, mut beyond) = (WORTH_CUTTING, limit);
    while fitting + 1 < beyond {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    visit(value, "", &mut |text, kind| {
        if escaped(text) > fitting {
            *text = cut(text, kind, fitting);
        }
    });
}

/// Makes cut strings whole again where the beginning that is left fits the original.
pub(crate) fn restore(given_back: &mut Value, original: &Value) {
    match (given_back, original) {
        (Value::String(text), Value::String(whole)) if is_cut_of(text, whole) => whole.clone_into(text),
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

/// Whether a text is the beginning of another with our note behind it.
fn is_cut_of(text: &str, whole: &str) -> bool {
    let Some((kept, _)) = text.rsplit_once(NOTE_BEGINS).filter(|_| text.ends_with(NOTE_ENDS)) else {
        return false;
    };
    text.len() != whole.len() && whole.starts_with(kept)
}

/// What becomes of a string that is too long.
#[derive(Clone, Copy)]
enum Kind {
    /// Its beginning is kept.
    Text,
    /// It is no use in parts.
    Whole,
}

/// The bytes that a string of `size` bytes has after it was cut to `longest`.
fn left(size: usize, kind: Kind, note: usize, longest: usize) -> usize {
    match kind {
        _ if size <= longest => size,
        Kind::Text => longest,
        Kind::Whole => note.min(size),
    }
}

/// Shows every string that may be cut, with the name of the field that it stands in.
fn visit(value: &mut Value, field: &str, seen: &mut impl FnMut(&mut String, Kind)) {
    match value {
        Value::String(text) if is_name(field) && text.len() <= 4 * WORTH_CUTTING => {}
        Value::String(text) if text.len() <= WORTH_CUTTING => {}
        Value::String(text) => {
            let kind = if is_data(field, text) { Kind::Whole } else { Kind::Text };
            seen(text, kind);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| visit(value, field, seen)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| visit(value, name, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a field names something rather than saying something.
fn is_name(field: &str) -> bool {
    let named = ["type", "subtype", "uuid", "id", "role", "model", "name", "toolUseID"];
    named.contains(&field) || field.ends_with("_id") || field.ends_with("_uuid") || field.ends_with("_name")
}

/// Whether a string is the bytes of a picture or document.
fn is_data(field: &str, text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    matches!(field, "data" | "base64" | "blob") && text.bytes().all(base64)
}

fn note(bytes: usize) -> String {
    format!("{NOTE_BEGINS}{bytes}{NOTE_ENDS}")
}

/// The string with at most `longest` bytes in JSON, the note included.
fn cut(text: &str, kind: Kind, longest: usize) -> String {
    let room = match kind {
        Kind::Text => longest.saturating_sub(note(text.len()).len() + 2),
        Kind::Whole => 0,
    };
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += escaped_char(*c);
        used > room
    });
    let kept = &text[..end.map_or(text.len(), |(at, _)| at)];
    format!("{kept}{}", note(text.len() - kept.len()))
}

/// The bytes of a string in JSON, quotes included.
fn escaped(text: &str) -> usize {
    2 + text.chars().map(escaped_char).sum::<usize>()
}

fn escaped_char(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// The bytes of a value in JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(flag) => 5 - usize::from(*flag),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => escaped(text),
        Value::Array(values) => list(values.iter().map(size)),
        Value::Object(fields) => list(fields.iter().map(|(name, value)| escaped(name) + 1 + size(value))),
    }
}

/// The bytes of a list: its parts, commas and brackets.
fn list(parts: impl ExactSizeIterator<Item = usize>) -> usize {
    parts.len().saturating_sub(1) + 2 + parts.sum::<usize>()
}

/// Empties the list or object that makes the value long: the largest, as deep down as most of the length goes.
/// False when there is nothing left to empty.
fn empty_the_largest(value: &mut Value) -> bool {
    let whole = size(value);
    let largest = match value {
        Value::Array(values) => values.iter_mut().max_by_key(|value| size(value)),
        Value::Object(fields) => fields.values_mut().max_by_key(|value| size(value)),
        _ => return false,
    };
    if let Some(part) = largest
        && size(part) * 2 > whole
        && empty_the_largest(part)
    {
        return true;
    }
    match value {
        Value::Array(values) => !std::mem::take(values).is_empty(),
        Value::Object(fields) => strip(fields),
        _ => false,
    }
}

/// Leaves only the short fields of an object. False when that changes nothing.
fn strip(fields: &mut Map<String, Value>) -> bool {
    let before = fields.len();
    fields.retain(|name, value| size(value) <= WORTH_CUTTING && name.len() <= WORTH_CUTTING);
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

    fn shortened(value: &Value, limit: usize) -> Value {
        let mut line = b"before\n".to_vec();
        let start = line.len();
        line.extend(value.to_string().into_bytes());
        shorten(&mut line, start, limit);
        assert!(line.starts_with(b"before\n"));
        assert!(line.len() - start < limit, "{} bytes", line.len() - start);
        serde_json::from_slice(&line[start..]).unwrap()
    }

    #[test]
    fn what_was_cut_is_whole_again_when_it_is_given_back_and_changes_stay() {
        let original = json!({"type": "x", "content": "z".repeat(5_000), "path": "a"});
        let mut line = original.to_string().into_bytes();
        shorten(&mut line, 0, 1_000);
        let mut echo: Value = serde_json::from_slice(&line).unwrap();
        assert_ne!(echo, original);
        restore(&mut echo, &original);
        assert_eq!(echo, original);
        let mut changed = json!({"content": "something else", "path": "b"});
        restore(&mut changed, &original);
        assert_eq!(changed, json!({"content": "something else", "path": "b"}));
    }

    #[test]
    fn the_longest_string_is_cut_and_says_so() {
        let line = json!({"type": "user", "uuid": "u", "short": "s".repeat(200), "long": "l".repeat(5000)});
        let short = shortened(&line, 2000);
        assert_eq!(short["short"], line["short"]);
        assert_eq!((&short["type"], &short["uuid"]), (&json!("user"), &json!("u")));
        let long = short["long"].as_str().unwrap();
        assert!(
            long.starts_with("lll") && long.ends_with(" bytes left out to keep the line short]"),
            "{long}"
        );
        assert!(size(&short) > 1900, "no more than needed is cut: {}", size(&short));
    }

    #[test]
    fn the_note_tells_how_much_is_missing() {
        let short = shortened(&json!({"text": "ä".repeat(3000)}), 1000);
        let text = short["text"].as_str().unwrap();
        let kept = text.chars().take_while(|c| *c == 'ä').count();
        assert!(text.ends_with(&note(6000 - 2 * kept)));
    }

    #[test]
    fn a_picture_goes_as_a_whole() {
        let line =
            json!({"source": {"type": "base64", "data": "QUJD".repeat(1000)}, "text": "t".repeat(300)});
        let short = shortened(&line, 1000);
        assert_eq!(short["source"]["data"], json!(note(4000)));
        assert_eq!(short["text"], line["text"]);
    }

    #[test]
    fn strings_that_grow_when_written_are_counted_as_written() {
        shortened(&json!({"text": "\u{1}\n\"".repeat(2000)}), 1500);
    }

    #[test]
    fn a_line_that_is_long_without_long_strings_is_emptied_where_it_is_long() {
        let line = json!({"type": "assistant", "message": {"id": "m", "content": [
            {"type": "tool_use", "id": "t", "input": {"numbers": (0..2000).collect::<Vec<_>>()}}
        ]}});
        let short = shortened(&line, 1000);
        let block = json!({"type": "tool_use", "id": "t", "input": {"numbers": []}});
        assert_eq!(short, json!({"type": "assistant", "message": {"id": "m", "content": [block]}}));
    }

    #[test]
    fn what_cannot_be_saved_is_still_a_line() {
        let keys: Map<String, Value> = (0..1000).map(|n| (format!("key {n}"), json!(n))).collect();
        shortened(&Value::Object(keys), 500);
        shortened(&json!({"k".repeat(3000): 1}), 500);
        let mut broken = b"{not json".to_vec();
        shorten(&mut broken, 0, 100);
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
        fn the_counted_size_is_the_written_size(value in any_json()) {
            prop_assert_eq!(size(&value), value.to_string().len());
        }

        #[test]
        fn anything_fits_afterwards(value in any_json(), limit in 100_usize..4000) {
            shortened(&value, limit);
        }
    }
}
