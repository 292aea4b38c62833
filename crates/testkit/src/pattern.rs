//! Partial matching of JSON values, for waiting for frames with certain fields.

use serde_json::Value;

/// Returns whether `value` has everything in `pattern`. Objects may have more fields than the pattern; arrays must have
/// the same length and match item by item; anything else must be equal.
///
/// ```
/// use serde_json::json;
/// use whimbrel_testkit::pattern::matches_pattern;
///
/// let frame = json!({"type": "result", "subtype": "success", "num_turns": 1});
/// assert!(matches_pattern(&frame, &json!({"type": "result"})));
/// assert!(!matches_pattern(&frame, &json!({"type": "result", "is_error": true})));
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
    fn partial_patterns_match() {
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
