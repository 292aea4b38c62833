//! Validates values against a JSON Schema.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Retrieve, Uri, Validator};
use serde_json::Value;
use whimbrel_wire::control::InvalidField;

/// A compiled schema.
pub(super) struct SchemaValidator(Validator);

impl SchemaValidator {
    /// Compiles a schema; the error says why it cannot be used.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::options().with_retriever(NoRetrieval).build(schema);
        validator
            .map(Self)
            .map_err(|error| format!("{error} (at {}).", display_path(error.instance_path().as_str())))
    }

    /// The first errors of a value, one line each, and the number of further errors.
    pub(super) fn errors(&self, value: &Value, limit: usize) -> (Vec<String>, usize) {
        let mut errors = self.0.iter_errors(value);
        let shown = errors
            .by_ref()
            .take(limit)
            .map(|error| format!("- {}: {}", display_path(error.instance_path().as_str()), error.masked()))
            .collect();
        (shown, errors.count())
    }

    /// The invalid fields of a value, at most `limit`.
    pub(super) fn invalid_fields(&self, value: &Value, limit: usize) -> Vec<InvalidField> {
        let errors = self.0.iter_errors(value).take(limit);
        errors
            .map(|error| {
                let path = field_path(error.instance_path().as_str());
                match error.kind() {
                    ValidationErrorKind::Required { property: Value::String(name) } => {
                        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        InvalidField { field, message: "is missing".into() }
                    }
                    _ => InvalidField { field: path, message: error.to_string() },
                }
            })
            .collect()
    }
}

/// A JSON pointer as a path: `/edits/0/old` is `edits[0].old`.
fn field_path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path += &format!("[{part}]");
        } else {
            path += if path.is_empty() { "" } else { "." };
            path += &part;
        }
    }
    path
}

/// A JSON pointer as the model reads it.
fn display_path(path: &str) -> &str {
    if path.is_empty() { "the top level" } else { path }
}

/// Rejects remote references: a schema could otherwise make the engine fetch any address or read any file.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("\"$ref\": {uri} is external and is not fetched; put the schema under \"$defs\"").into())
    }
}
