//! Input schemas of strangers, kept within bounds. Pure.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use whimbrel_wire::RawJson;

use super::limits;

/// A schema as the model gets it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SanitizedSchema {
    /// As the server wrote it, or nearly so.
    Accepted(RawJson),
    /// It was too large or too deep: anything goes, and the server must judge.
    Replaced(RawJson),
    /// It has a field that no model can fill in.
    Unusable(String),
}

/// Keys that models do not take at the top of a schema.
const FORBIDDEN_TOP_LEVEL_KEYS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Fits a schema. References are never followed, so that one that refers to itself does no harm.
pub(super) fn sanitize(schema: &JsonObject) -> SanitizedSchema {
    let fields = schema.get("properties").and_then(Value::as_object);
    let strange = fields.and_then(|fields| fields.keys().find(|name| !is_field_name(name)));
    if let Some(name) = strange {
        return SanitizedSchema::Unusable(name.clone());
    }
    let open = || {
        RawJson::from_value(&json!({"type": "object"}))
            .map_or_else(|error| SanitizedSchema::Unusable(error.to_string()), SanitizedSchema::Replaced)
    };
    if depth(schema) > limits::MAX_SCHEMA_DEPTH || !is_valid(schema) {
        return open();
    }
    let text = if is_plain_object(schema) { RawJson::from_value(schema) } else { RawJson::from_value(&strip_top_level(schema.clone())) };
    match text {
        Ok(text) if text.as_str().len() <= limits::MAX_SCHEMA_BYTES => SanitizedSchema::Accepted(text),
        Ok(_) | Err(_) => open(),
    }
}

/// Whether the parts that every provider looks at are of the right kind. One that is not would cost the whole request.
fn is_valid(schema: &JsonObject) -> bool {
    let names = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    schema.get("properties").is_none_or(Value::is_object) && schema.get("required").is_none_or(names)
}

/// Names of fields that models take.
fn is_field_name(name: &str) -> bool {
    let sign = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(sign)
}

fn is_plain_object(schema: &JsonObject) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && !FORBIDDEN_TOP_LEVEL_KEYS.iter().any(|key| schema.contains_key(*key))
}

/// At the top a schema is an object and nothing else.
fn strip_top_level(mut schema: JsonObject) -> JsonObject {
    schema.retain(|key, _| !FORBIDDEN_TOP_LEVEL_KEYS.contains(&key.as_str()));
    schema.insert("type".into(), "object".into());
    schema
}

/// How deep a schema is, counted without going deep ourselves.
fn depth(schema: &JsonObject) -> usize {
    let mut deepest = 0;
    let mut left: Vec<(&Value, usize)> = schema.values().map(|value| (value, 1)).collect();
    while let Some((value, depth)) = left.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => left.extend(fields.values().map(|field| (field, depth + 1))),
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
    fn schemas_stay_as_they_are_as_far_as_models_take_them() {
        let usual = json!({"type": "object", "properties": {"z": {"type": "string"}, "a": {"$ref": "#"}}, "required": ["z"]});
        let whole = |schema: Value| SanitizedSchema::Accepted(RawJson::from_value(&schema).unwrap());
        let open = SanitizedSchema::Replaced(RawJson::from_value(&json!({"type": "object"})).unwrap());
        for (name, schema, expected) in [
            ("a usual one, in its order", usual.clone(), whole(usual)),
            ("an empty one", json!({}), whole(json!({"type": "object"}))),
            ("of another type", json!({"type": ["object", "null"]}), whole(json!({"type": "object"}))),
            (
                "a choice at the top",
                json!({"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"anyOf": []}}}),
                whole(json!({"type": "object", "properties": {"a": {"anyOf": []}}})),
            ),
            ("too deep", json!({"type": "object", "not": nested(100)}), open.clone()),
            ("too large", json!({"type": "object", "description": "x".repeat(limits::MAX_SCHEMA_BYTES)}), open.clone()),
            ("fields as a list", json!({"type": "object", "properties": []}), open.clone()),
            ("what is required as a word", json!({"type": "object", "required": "a"}), open.clone()),
            ("a field with a space", json!({"properties": {"a b": {}}}), SanitizedSchema::Unusable("a b".into())),
        ] {
            let schema = schema.as_object().unwrap();
            let fitted = sanitize(schema);
            assert_eq!(fitted, expected, "{name}");
            if let (SanitizedSchema::Accepted(text), Some(_)) = (&fitted, schema.get("required")) {
                assert!(text.as_str().find("\"z\"") < text.as_str().find("\"a\""), "{name}: {text:?}");
            }
        }
    }
}
