//! Tools that run in the host (`external_tools` of `initialize`).

use std::sync::Arc;

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::tools;

/// A tool of the host.
#[derive(Debug, Clone)]
pub(crate) struct ExternalTool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    pub(crate) parameters: Map<String, Value>,
    validator: Arc<Validator>,
}

/// The tools of the host, of all `initialize` requests so far.
#[derive(Debug, Default)]
pub(crate) struct ExternalTools(Vec<ExternalTool>);

#[derive(Deserialize)]
struct ToolRequest {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Value,
}

impl ExternalTools {
    /// Adds and replaces tools. Returns what `initialize` answers.
    pub(crate) fn add(&mut self, list: &Value) -> Result<Value, String> {
        let requests: Vec<ToolRequest> =
            serde_json::from_value(list.clone()).map_err(|error| format!("`external_tools`: {error}."))?;
        let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
        for request in requests {
            let name = request.name.clone();
            match ExternalTool::new(request) {
                Ok(tool) => {
                    self.0.retain(|known| known.name != tool.name);
                    accepted.push(tool.name.clone());
                    self.0.push(tool);
                }
                Err(reason) => rejected.push(json!({"name": name, "reason": reason})),
            }
        }
        Ok(json!({"accepted": accepted, "rejected": rejected}))
    }

    pub(crate) fn as_slice(&self) -> &[ExternalTool] {
        &self.0
    }
}

impl ExternalTool {
    fn new(request: ToolRequest) -> Result<Self, String> {
        let ToolRequest { name, description, parameters } = request;
        if tools::is_builtin(&name) {
            return Err(format!("{name} is a built-in tool. Choose another name."));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 50 || !name.chars().all(is_name) || name.contains("__") {
            let text = "A name has 1 to 50 letters, digits, `-` or `_`, and no two `_` in a row.";
            return Err(text.to_owned());
        }
        let validator = jsonschema::validator_for(&parameters)
            .map_err(|error| format!("`parameters` is not a schema: {error}."))?;
        match parameters {
            Value::Object(parameters) if parameters.get("type").is_none_or(|kind| kind == "object") => {
                Ok(Self { name, description, parameters, validator: Arc::new(validator) })
            }
            _ => Err("`parameters` must be the schema of an object.".into()),
        }
    }

    /// Compares arguments with the schema. The error is for the model.
    pub(crate) fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        let errors: Vec<String> =
            self.validator.iter_errors(&arguments).take(3).map(|error| error.to_string()).collect();
        match errors.is_empty() {
            true => Ok(()),
            false => {
                Err(format!("The arguments do not match the schema of {}: {}.", self.name, errors.join("; ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_accepted_or_rejected_with_a_reason() {
        let object =
            || json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tool = |name: &str, parameters: Value| json!({"name": name, "description": "d", "parameters": parameters});
        let mut tools = ExternalTools::default();
        let list = json!([
            tool("fine", object()),
            tool("Shell", object()),
            tool("list", json!({"type": "array"})),
            tool("broken", json!({"type": "no type"})),
            tool("two words", object()),
        ]);
        let answer = tools.add(&list).unwrap();
        assert_eq!(answer["accepted"], json!(["fine"]));
        let rejected: Vec<&str> =
            answer["rejected"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(rejected, ["Shell", "list", "broken", "two words"]);
        assert!(tools.add(&json!(7)).is_err());
        let fine = &tools.as_slice()[0];
        let arguments = |value: Value| value.as_object().cloned().unwrap();
        assert_eq!(fine.check(&arguments(json!({"path": "a"}))), Ok(()));
        assert!(fine.check(&arguments(json!({"path": 7}))).unwrap_err().contains("fine"));
    }
}
