//! Structured output in a build without the feature `structured-output`: every schema is rejected.

use serde_json::Value;
use whimbrel_wire::control::InvalidField;

/// Cannot be created.
pub(super) enum SchemaValidator {}

impl SchemaValidator {
    pub(super) fn new(_: &Value) -> Result<Self, String> {
        Err("this build of the program cannot validate against a JSON Schema. Use a build with the feature structured-output.".into())
    }

    pub(super) fn errors(&self, _: &Value, _: usize) -> (Vec<String>, usize) {
        match *self {}
    }

    pub(super) fn invalid_fields(&self, _: &Value, _: usize) -> Vec<InvalidField> {
        match *self {}
    }
}
