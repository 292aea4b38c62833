//! Whether a value looks like a pattern, pure: for waiting for "a frame like this".

use serde_json::Value;

/// Whether `value` looks like `pattern`: an object must have the pattern's fields, and may have more; a list must have
/// as many items, each like its own; anything else must be equal.
///
/// ```
/// use serde_json::json;
/// use whimbrel_testkit::pattern::looks_like;
///
/// let frame = json!({"type": "result", "subtype": "success", "num_turns": 1});
/// assert!(looks_like(&frame, &json!({"type": "result"})));
/// assert!(!looks_like(&frame, &json!({"type": "result", "is_error": true})));
/// ```
pub fn matches_pattern(value: &Value, pattern: &Value) -> bool {
    match (value, pattern) {
        (Value::Object(fields), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, pattern)| fields.get(name).is_some_and(|value| matches_pattern(value, pattern))),
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len()
                && items.iter().zip(wanted).all(|(item, pattern)| matches_pattern(item, pattern))
        }
        _ => value == pattern,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_looks_like_what_it_contains() {
        let table = [
            ("everything", json!({}), true),
            ("one field", json!({"a": 1}), true),
            ("a field inside", json!({"b": {"c": 2}}), true),
            ("a wrong field", json!({"a": 2}), false),
            ("a missing field", json!({"z": 1}), false),
            ("an item's field", json!({"l": [{"x": 1}, 2]}), true),
            ("too few items", json!({"l": [{"x": 1}]}), false),
            ("another type", json!([]), false),
        ];
        let value = json!({"a": 1, "b": {"c": 2, "d": 3}, "l": [{"x": 1, "y": 2}, 2]});
        for (name, pattern, expected) in table {
            assert_eq!(matches_pattern(&value, &pattern), expected, "{name}");
        }
    }
}
