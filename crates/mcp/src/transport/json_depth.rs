//! Truncates deeply nested JSON: values below the maximum depth become `null`, so that the rest of a message stays
//! readable. Pure.

/// A little below serde_json's recursion limit.
const MAX_DEPTH: usize = 100;

/// Replaces values that are too deep; `None` if there are none.
pub(super) fn truncate_depth(text: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(text.len());
    let (mut depth, mut quoted, mut escaped, mut truncated) = (0_usize, false, false, false);
    for &byte in text {
        let previous = depth;
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if previous <= MAX_DEPTH && depth <= MAX_DEPTH {
            output.push(byte);
        } else if previous == MAX_DEPTH {
            output.extend_from_slice(b"null");
            truncated = true;
        }
    }
    truncated.then_some(output)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn deep_values_become_null_and_the_rest_stays() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for shallow in [nested(MAX_DEPTH), r#"{"a":"[[{\"\\"}"#.into(), "[".repeat(3), String::new()] {
            assert_eq!(truncate_depth(shallow.as_bytes()), None, "{shallow}");
        }
        let deep = format!(r#"{{"a":{},"b":"]}}\"{{","c":[{},2]}}"#, nested(5000), nested(500));
        let value: Value = serde_json::from_slice(&truncate_depth(deep.as_bytes()).unwrap()).unwrap();
        assert_eq!((&value["b"], &value["c"][1]), (&Value::from("]}\"{"), &Value::from(2)));
        assert!(value["a"].is_array());
    }
}
