//! The JSON Schema of the whole wire, made from the types.

use schemars::generate::SchemaSettings;
use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

use crate::hook::HookOutput;
use crate::options::Options;
use crate::{control, frame};

/// The schema of an object whose shape goes by one field: the listed shapes, or anything under another name.
pub(crate) fn by_tag(field: &str, description: &str, shapes: Vec<(&str, Schema)>) -> Schema {
    let names: Vec<&str> = shapes.iter().map(|(name, _)| *name).collect();
    let unlisted = json_schema!({ "properties": { field: { "not": { "enum": names } } } });
    let listed = shapes
        .into_iter()
        .map(|(name, shape)| json_schema!({ "allOf": [shape], "properties": { field: { "const": name } } }));
    json_schema!({
        "description": description,
        "type": "object",
        "properties": { field: { "type": "string" } },
        "required": [field],
        "anyOf": listed.chain([unlisted]).collect::<Vec<_>>(),
    })
}

/// One document for everything that can stand on a line; the answers to control requests and the options are listed
/// below `replies` and `options`, because the lines themselves do not tell their type.
pub fn wire_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let frames = frame::schemas(&mut generator);
    let mut document = by_tag("type", "One line. A type that is not listed is passed on unread.", frames);
    let replies = control::reply_schemas(&mut generator).into_iter();
    let replies: Map<String, Value> =
        replies.map(|(subtype, reply)| (subtype.into(), reply.to_value())).collect();
    document.insert("title".into(), "The wire between an agent engine and its host".into());
    document.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    document.insert("replies".into(), replies.into());
    document.insert("options".into(), generator.subschema_for::<Options>().to_value());
    document.insert("hookOutput".into(), generator.subschema_for::<HookOutput>().to_value());
    document.insert("$defs".into(), generator.take_definitions(true).into());
    document.to_value()
}
