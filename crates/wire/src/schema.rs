//! JSON Schema of the whole wire, generated from the types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::hook::HookOutput;
use crate::options::Options;
use crate::tagged_union::tagged_union;
use crate::{control, frame};

/// Builds one document for all frames. Replies to control requests and the options are listed under `replies` and
/// `options`, because the frames themselves do not name their type.
pub fn wire_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let frames = frame::frame_schemas(&mut generator);
    let mut document =
        tagged_union("type", "One line. A type that is not listed is passed on unread.", frames);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn checked_in_schema_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/wire.schema.json");
        let current = format!("{:#}\n", wire_schema());
        if std::env::var_os("WHIMBREL_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &current).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            stored == current,
            "the wire has changed; run the tests with WHIMBREL_BLESS=1 and look at the difference"
        );
    }

    #[test]
    fn every_reference_has_a_definition() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                        assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = wire_schema();
        check(&document, &document);
    }
}
