//! Path of the value at a position in a JSON text, for error messages.
//!
//! The path is computed from the position of a parse error. A deserializer that tracks the path would have to be
//! compiled for every type of the protocol a second time.

/// Returns the path of the value that an error is about, such as `hooks.Stop[0].timeout`; `.` is the whole text.
pub(crate) fn path_of_error(json: &str, error: &serde_json::Error) -> String {
    let parsed = &json.as_bytes()[..byte_offset(json, error.line(), error.column())];
    // After an invalid element the parser still reads the comma or bracket behind it.
    let parsed = parsed.trim_ascii_end();
    let parsed = parsed.strip_suffix(b",").or_else(|| parsed.strip_suffix(b"]")).unwrap_or(parsed);
    path_at(json, parsed.len())
}

/// Converts a line and a column, both counted from one, to a number of bytes.
fn byte_offset(json: &str, line: usize, column: usize) -> usize {
    let line_start: usize = json.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    line_start.saturating_add(column).min(json.len())
}

/// An object or array that is open at a position.
enum Level<'a> {
    /// With the key of the current member, once it was read.
    Object(Option<&'a str>),
    /// With the index of the current element.
    Array(usize),
}

/// Returns the path of the last value that begins or ends in the first `end` bytes.
fn path_at(json: &str, end: usize) -> String {
    let bytes = json.as_bytes();
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    while at < end {
        match bytes[at] {
            b'{' => levels.push(Level::Object(None)),
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => drop(levels.pop()),
            b',' => match levels.last_mut() {
                Some(Level::Object(key)) => *key = None,
                Some(Level::Array(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let text_end = string_end(bytes, at + 1);
                if let Some(Level::Object(key @ None)) = levels.last_mut() {
                    *key = json.get(at + 1..text_end);
                }
                at = text_end;
            }
            _ => {}
        }
        at += 1;
    }
    render_path(&levels)
}

/// Returns the position of the closing quote of a string, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

fn render_path(levels: &[Level<'_>]) -> String {
    let mut path = String::new();
    for level in levels {
        match level {
            Level::Object(Some(key)) if path.is_empty() => path.push_str(key),
            Level::Object(Some(key)) => path.extend([".", key]),
            Level::Object(None) => {}
            Level::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    if path.is_empty() { ".".into() } else { path }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only parsed")]
    struct Outer {
        name: Option<String>,
        items: Option<Vec<Inner>>,
        inner: Option<Inner>,
        tagged: Option<Vec<Tagged>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only parsed")]
    enum Tagged {
        A { n: u32 },
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only parsed")]
    struct Inner {
        count: u32,
        color: Option<Color>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
    }

    #[test]
    fn path_names_the_invalid_field() {
        for (row, json, path) in [
            ("wrong scalar", r#"{"name":1}"#, "name"),
            ("wrong scalar behind another field", r#"{"x":"a,\"]","name":true}"#, "name"),
            ("array for a text", r#"{"name":[1,2]}"#, "name"),
            ("object for a text", r#"{"name":{"a":1}}"#, "name"),
            ("missing field of the element", r#"{"items":[{"count":1},{}]}"#, "items[1]"),
            ("wrong field of the element", r#"{"items":[{"count":1},{"count":"x"}]}"#, "items[1].count"),
            ("unknown variant", r#"{"inner":{"count":1,"color":"blue"}}"#, "inner.color"),
            ("missing field", r#"{"inner":{"color":"red"},"name":"a"}"#, "inner"),
            (
                "element that is parsed twice",
                r#"{"tagged":[{"kind":"a","n":1},{"kind":"a","n":"x"}]}"#,
                "tagged[1]",
            ),
            (
                "not the last element",
                r#"{"tagged":[{"kind":"a","n":"x"} , {"kind":"a","n":1}]}"#,
                "tagged[0]",
            ),
            ("not an object", "7", "."),
            ("several lines", "{\n \"name\": \"ä\",\n \"inner\": {\"count\": -1}}", "inner.count"),
        ] {
            let error = serde_json::from_str::<Outer>(json).unwrap_err();
            assert_eq!(path_of_error(json, &error), path, "{row}: {error}");
        }
    }

    #[test]
    fn any_position_has_a_path() {
        let json = r#"{"a":[{"b":"\\\"x"},[]],"ä":{"c":null}}"#;
        for end in 0..=json.len() {
            assert!(!path_at(json, end).is_empty());
        }
    }
}
