//! Limits on the input schemas of third-party tools. Pure.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use whimbrel_wire::RawJson;

use super::limits;

/// Schema as sent to the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SanitizedSchema {
    /// Unchanged, or without unsupported top-level keys.
    Accepted(RawJson),
    /// Too large, too deep or invalid: replaced by an open object; the server validates the input.
    Replaced(RawJson),
    /// Has a property name that models do not accept.
    Unusable(String),
}

/// Keys that providers reject at the top level of a schema.
const FORBIDDEN_TOP_LEVEL_KEYS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Sanitizes a schema. `$ref` is never followed, so recursive schemas are safe.
pub(super) fn sanitize(schema: &JsonObject) -> SanitizedSchema {
    let fields = schema.get("properties").and_then(Value::as_object);
    let invalid_name = fields.and_then(|fields| fields.keys().find(|name| !is_field_name(name)));
    if let Some(name) = invalid_name {
        return SanitizedSchema::Unusable(name.clone());
    }
    let open_object = || {
        RawJson::from_value(&json!({"type": "object"}))
            .map_or_else(|error| SanitizedSchema::Unusable(error.to_string()), SanitizedSchema::Replaced)
    };
    if depth(schema) > limits::MAX_SCHEMA_DEPTH || !is_valid(schema) {
        return open_object();
    }
    let text = if is_plain_object(schema) {
        RawJson::from_value(schema)
    } else {
        RawJson::from_value(&strip_top_level(schema.clone()))
    };
    match text {
        Ok(text) if text.as_str().len() <= limits::MAX_SCHEMA_BYTES => SanitizedSchema::Accepted(text),
        Ok(_) | Err(_) => open_object(),
    }
}

/// Checks the types of `properties` and `required`: a provider would reject the whole request otherwise.
fn is_valid(schema: &JsonObject) -> bool {
    let is_string_list = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    schema.get("properties").is_none_or(Value::is_object) && schema.get("required").is_none_or(is_string_list)
}

/// Checks a property name against the pattern of the API.
fn is_field_name(name: &str) -> bool {
    let is_allowed =
        |is_allowed: u8| is_allowed.is_ascii_alphanumeric() || matches!(is_allowed, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn is_plain_object(schema: &JsonObject) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && !FORBIDDEN_TOP_LEVEL_KEYS.iter().any(|key| schema.contains_key(*key))
}

/// Removes top-level combinators and sets `type` to `object`.
fn strip_top_level(mut schema: JsonObject) -> JsonObject {
    schema.retain(|key, _| !FORBIDDEN_TOP_LEVEL_KEYS.contains(&key.as_str()));
    schema.insert("type".into(), "object".into());
    schema
}

/// Nesting depth, computed without recursion.
fn depth(schema: &JsonObject) -> usize {
    let mut deepest = 0;
    let mut pending: Vec<(&Value, usize)> = schema.values().map(|value| (value, 1)).collect();
    while let Some((value, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!({"not": inner}))
    }

    #[test]
    fn schemas_change_only_where_models_require_it() {
        let valid = json!({"type": "object", "properties": {"z": {"type": "string"}, "a": {"$ref": "#"}}, "required": ["z"]});
        let accepted = |schema: Value| SanitizedSchema::Accepted(RawJson::from_value(&schema).unwrap());
        let replaced = SanitizedSchema::Replaced(RawJson::from_value(&json!({"type": "object"})).unwrap());
        for (name, schema, expected) in [
            ("a valid schema keeps its order", valid.clone(), accepted(valid)),
            ("an empty schema", json!({}), accepted(json!({"type": "object"}))),
            ("of another type", json!({"type": ["object", "null"]}), accepted(json!({"type": "object"}))),
            (
                "anyOf at the top level",
                json!({"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"anyOf": []}}}),
                accepted(json!({"type": "object", "properties": {"a": {"anyOf": []}}})),
            ),
            ("too deep", json!({"type": "object", "not": nested(100)}), replaced.clone()),
            (
                "too large",
                json!({"type": "object", "description": "x".repeat(limits::MAX_SCHEMA_BYTES)}),
                replaced.clone(),
            ),
            ("properties as a list", json!({"type": "object", "properties": []}), replaced.clone()),
            ("required as a string", json!({"type": "object", "required": "a"}), replaced.clone()),
            (
                "a field with a space",
                json!({"properties": {"a b": {}}}),
                SanitizedSchema::Unusable("a b".into()),
            ),
        ] {
            let schema = schema.as_object().unwrap();
            let sanitized = sanitize(schema);
            assert_eq!(sanitized, expected, "{name}");
            if let (SanitizedSchema::Accepted(text), Some(_)) = (&sanitized, schema.get("required")) {
                assert!(text.as_str().find("\"z\"") < text.as_str().find("\"a\""), "{name}: {text:?}");
            }
        }
    }
}
