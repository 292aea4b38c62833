//! The input of a tool: its schema for the model, and how an input is read.

use schemars::JsonSchema;
use serde_json::{Map, Value};
use whimbrel_wire::RawJson;

use super::{Tool, Trouble};

/// The input schema in as few bytes as possible: titles, formats and the schema's own address say nothing to a model.
pub(super) fn input_schema<T: JsonSchema>() -> RawJson {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    prune(&mut schema);
    // Some servers refuse an object without a word on its fields.
    if let Value::Object(fields) = &mut schema {
        fields.entry("properties").or_insert_with(|| Map::new().into());
    }
    RawJson::of(&schema).unwrap_or_else(|_| empty_object())
}

fn empty_object() -> RawJson {
    RawJson::of(&Map::new()).unwrap_or_else(|_| unreachable!("an empty map is JSON"))
}

fn prune(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.contains_key("type") || fields.contains_key("properties");
            if is_schema {
                fields.retain(|key, value| match key.as_str() {
                    "title" | "format" | "minimum" | "default" | "$schema" => false,
                    "description" => value != "",
                    _ => true,
                });
                // An optional field reads `["string", "null"]`; that it may be left out is said by `required`.
                if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                    kinds.retain(|kind| kind != "null");
                    if let [only] = kinds.as_slice() {
                        let only = only.clone();
                        fields.insert("type".into(), only);
                    }
                }
                // The input's own doc comment is for us; the model reads DESCRIPTION.
            }
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// Reads an input; one that does not fit is refused with the name of the wrong field.
pub(super) fn read_input<T: Tool>(input: &Value) -> Result<T::Input, Trouble> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let (field, reason) = (error.path().to_string(), error.inner().to_string());
        let place = if field == "." { String::new() } else { format!("`{field}`: ") };
        Trouble::Refused(format!(
            "InputValidationError: {} cannot be called like this: {place}{reason}.",
            T::NAME
        ))
    })
}
