//! Tool inputs: schema generation and parsing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::InvalidField;

use super::{Tool, ToolError};

/// Generates a minimal input schema: titles, formats and `$schema` only cost tokens.
pub(crate) fn input_schema<T: JsonSchema>() -> RawJson {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    prune_schema(&mut schema);
    // Some servers reject an object schema without `properties`.
    if let Value::Object(fields) = &mut schema {
        fields.entry("properties").or_insert_with(|| Map::new().into());
    }
    RawJson::from_value(&schema).unwrap_or_else(|_| empty_object())
}

/// Message about a required field that is absent.
const IS_MISSING: &str = "is missing";

fn empty_object() -> RawJson {
    RawJson::from_value(&Map::new()).unwrap_or_else(|_| unreachable!("an empty map is JSON"))
}

fn prune_schema(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.contains_key("type") || fields.contains_key("properties");
            if is_schema {
                fields.retain(|key, value| match key.as_str() {
                    "title" | "format" | "minimum" | "default" | "$schema" => false,
                    "description" => value != "",
                    _ => true,
                });
                // Drop `null` from the type of an optional field: `required` already says that it may be omitted.
                if let Some(Value::Array(types)) = fields.get_mut("type") {
                    types.retain(|kind| kind != "null");
                    if let [only] = types.as_slice() {
                        let only = only.clone();
                        fields.insert("type".into(), only);
                    }
                }
                // The doc comment of the input type itself is for developers; the model reads DESCRIPTION.
            }
            fields.values_mut().for_each(prune_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_schema),
        _ => {}
    }
}

/// Parses an input; the error names every invalid field.
pub(crate) fn parse_input<T: Tool>(input: &Value) -> Result<T::Input, ToolError> {
    T::Input::deserialize(input).map_err(|_| {
        let errors: Vec<String> =
            find_invalid_fields::<T::Input>(input).iter().map(render_invalid_field).collect();
        let errors = errors.join("; ");
        ToolError::Rejected(format!("InputValidationError: the input of {} is not valid: {errors}.", T::NAME))
    })
}

/// Collects all errors of an input. Deserialization stops at the first error, so each invalid field is replaced by a
/// placeholder and the input is parsed again.
pub(crate) fn find_invalid_fields<I: DeserializeOwned + JsonSchema>(input: &Value) -> Vec<InvalidField> {
    let schema: Value = input_schema::<I>().decode().unwrap_or_default();
    let (mut rest, mut errors, mut seen_fields) = (input.clone(), Vec::new(), Vec::new());
    while let Err(error) = serde_path_to_error::deserialize::<_, I>(&rest) {
        let (path, reason) = (error.path().to_string(), error.inner().to_string());
        let missing = reason.strip_prefix("missing field `").and_then(|name| name.strip_suffix('`'));
        let field = match (error.path().iter().next(), missing) {
            (Some(Segment::Map { key }), _) => key.clone(),
            (_, Some(name)) => name.to_owned(),
            _ => String::new(),
        };
        errors.push(match missing {
            Some(name) if path == "." => InvalidField { field: name.into(), message: IS_MISSING.into() },
            Some(name) => InvalidField { field: format!("{path}.{name}"), message: IS_MISSING.into() },
            None if path == "." => InvalidField { field: String::new(), message: reason },
            None => InvalidField { field: path, message: reason },
        });
        let Value::Object(fields) = &mut rest else { break };
        if field.is_empty() || seen_fields.contains(&field) {
            break;
        }
        match placeholder_value(&schema, &field) {
            Some(value) => drop(fields.insert(field.clone(), value)),
            None => drop(fields.remove(&field)),
        }
        seen_fields.push(field);
    }
    errors
}

fn render_invalid_field(InvalidField { field, message }: &InvalidField) -> String {
    match field.as_str() {
        "" => message.clone(),
        _ if message == IS_MISSING => format!("`{field}` {message}"),
        _ => format!("`{field}`: {message}"),
    }
}

/// Returns a valid value for a required field.
fn placeholder_value(schema: &Value, field: &str) -> Option<Value> {
    let required = schema["required"].as_array()?;
    if !required.iter().any(|name| name == field) {
        return None;
    }
    let field = &schema["properties"][field];
    if let Some(choice) = field["enum"].get(0) {
        return Some(choice.clone());
    }
    Some(match field["type"].as_str()? {
        "string" => json!(""),
        "integer" | "number" => json!(0),
        "boolean" => json!(false),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::AnyTool;

    #[test]
    fn every_invalid_field_is_named() {
        for (tool, input, named) in [
            (
                "Edit",
                json!({}),
                &["`file_path` is missing", "`old_string` is missing", "`new_string` is missing"][..],
            ),
            (
                "Edit",
                json!({"file_path": 5, "old_string": "a", "new_string": 7}),
                &["`file_path`: ", "`new_string`: "],
            ),
            (
                "Bash",
                json!({"command": 5, "timeout": "abc", "description": 7}),
                &["`command`", "`timeout`", "`description`"],
            ),
            (
                "Read",
                json!({"file_path": "x", "offset": "3", "limit": "abc"}),
                &["`limit`: \"abc\" is not a number"],
            ),
            ("Grep", json!({"output_mode": "all"}), &["`pattern` is missing", "`output_mode`: "]),
            ("Read", json!("x"), &["expected struct ReadInput"]),
        ] {
            let tool =
                crate::builtin::builtin_tools().into_iter().find(|known| known.name() == tool).unwrap();
            let error = AnyTool::effects(&*tool, &input).unwrap_err();
            let errors = error.reason().split("; ").count();
            assert!(named.iter().all(|name| error.reason().contains(name)), "{input}: {error:?}");
            assert_eq!(errors, named.len(), "{input}: {error:?}");
        }
    }
}
