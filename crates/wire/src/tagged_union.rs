//! Schema of a union that a field selects; shared by frames, requests, system events and hooks.

use schemars::{Schema, json_schema};

/// Builds the schema of an object whose type one field selects: the listed variants, or anything under another name.
pub(crate) fn tagged_union(field: &str, description: &str, variants: Vec<(&str, Schema)>) -> Schema {
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    let unlisted = json_schema!({ "properties": { field: { "not": { "enum": names } } } });
    let listed = variants.into_iter().map(
        |(name, variant)| json_schema!({ "allOf": [variant], "properties": { field: { "const": name } } }),
    );
    json_schema!({
        "description": description,
        "type": "object",
        "properties": { field: { "type": "string" } },
        "required": [field],
        "anyOf": listed.chain([unlisted]).collect::<Vec<_>>(),
    })
}
