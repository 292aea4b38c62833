//! Structured output: the model gives its final answer with a tool of the engine, and the input is validated against
//! the host's JSON Schema.

#[cfg(feature = "structured-output")]
mod validator;
#[cfg(not(feature = "structured-output"))]
#[path = "structured_output/validator_unavailable.rs"]
mod validator;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_models::ToolSpec;
use whimbrel_tools::api::{AnyTool, Effects, Example, ToolContext, ToolError, ToolOutput, ToolResult};
use whimbrel_wire::RawJson;
use whimbrel_wire::control::InvalidField;

use self::validator::SchemaValidator;
use crate::next_step;
use crate::tool_scheduler::ToolCallResult;

/// The tool that takes the output.
pub const TOOL_NAME: &str = "StructuredOutput";

/// Default number of attempts; see [`ATTEMPTS_VARIABLE`].
pub const DEFAULT_ATTEMPTS: u32 = 5;

/// Environment variable that sets the number of attempts.
pub const ATTEMPTS_VARIABLE: &str = "MAX_STRUCTURED_OUTPUT_RETRIES";

/// The tool's description for the model.
const DESCRIPTION: &str = "Returns your final answer in the format of this input schema. Call it once, as your last action; a text answer is not accepted.";

/// Sent when the model ends its turn without structured output.
pub const REMINDER: &str =
    "Return the answer by calling StructuredOutput; a text answer is not accepted. Call it now.";

/// Limit on the validation errors in one report.
const MAX_REPORTED_ERRORS: usize = 8;

/// Field of the tool result that holds the output.
const RESULT_FIELD: &str = "structured_output";

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct OutputSchema {
    validator: Arc<SchemaValidator>,
    input_schema: RawJson,
    max_attempts: u32,
}

impl OutputSchema {
    /// Compiles a JSON Schema, which must describe an object. The error says why it cannot be used.
    pub fn new(schema: &Value, attempts: u32) -> Result<Self, String> {
        let unusable = |reason: &str| format!("The JSON Schema of the output is not usable: {reason}");
        let Value::Object(fields) = schema else { return Err(unusable("it is not an object.")) };
        let validator = SchemaValidator::new(schema).map_err(|reason| unusable(&reason))?;
        let input_schema = RawJson::from_value(&to_tool_schema(fields).map_err(|reason| unusable(&reason))?)
            .map_err(|error| unusable(&error.to_string()))?;
        Ok(Self { validator: Arc::new(validator), input_schema, max_attempts: attempts })
    }

    /// The tool that takes the output.
    pub fn tool(&self) -> Arc<dyn AnyTool> {
        Arc::new(self.clone())
    }

    /// Validates an output; the error lists what is wrong, for the model.
    fn validate(&self, answer: &Value) -> Result<(), String> {
        let (errors, omitted) = self.validator.errors(answer, MAX_REPORTED_ERRORS);
        if errors.is_empty() {
            return Ok(());
        }
        let more = match omitted {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        Err(format!(
            "The output does not match the schema. Fix these errors and call {TOOL_NAME} again:\n{}{more}",
            errors.join("\n")
        ))
    }
}

/// Compares an input with the schema of a tool.
pub(crate) fn invalid_fields(schema: &Value, input: &Value) -> Result<Vec<InvalidField>, String> {
    Ok(SchemaValidator::new(schema)?.invalid_fields(input, MAX_REPORTED_ERRORS))
}

/// The schema in the form that providers accept for a tool: with `"type": "object"`.
fn to_tool_schema(schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut schema = schema.clone();
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None => {
            schema.insert("type".into(), "object".into());
        }
        Some(kind) => {
            return Err(format!(
                "its type is {kind}, but the output must be an object. Wrap the value in a field of an object."
            ));
        }
    }
    Ok(schema)
}

impl AnyTool for OutputSchema {
    fn name(&self) -> &str {
        TOOL_NAME
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TOOL_NAME.into(),
            description: DESCRIPTION.into(),
            input_schema: self.input_schema.clone(),
        }
    }

    fn effects(&self, _: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::None)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        _: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            self.validate(&input).map_err(ToolError::Failed)?;
            let mut meta = Map::new();
            meta.insert(RESULT_FIELD.into(), input);
            Ok(ToolOutput::text("The output was accepted.", Value::Object(meta)))
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
}

/// Structured output of an agent: the schema, if one is required, and the progress in the current turn.
#[derive(Default)]
pub struct StructuredOutput {
    schema: Option<OutputSchema>,
    /// Ids of the tool calls that gave an output, valid or not.
    call_ids: Vec<String>,
    /// Number of reminders to call the tool.
    reminders: u32,
    output: Option<Value>,
}

impl StructuredOutput {
    pub fn new(schema: Option<OutputSchema>) -> Self {
        Self { schema, ..Self::default() }
    }

    /// Returns whether this schema is the required one.
    pub fn has_schema(&self, schema: Option<&OutputSchema>) -> bool {
        match (&self.schema, schema) {
            (None, None) => true,
            (Some(required), Some(schema)) => Arc::ptr_eq(&required.validator, &schema.validator),
            _ => false,
        }
    }

    /// Resets the state for a new turn.
    pub fn begin_turn(&mut self) {
        *self = Self::new(self.schema.take());
    }

    /// Records that the model calls a tool.
    pub fn record_call(&mut self, tool: &str, id: &str) {
        if self.schema.is_some() && tool == TOOL_NAME {
            self.call_ids.push(id.to_owned());
        }
    }

    /// Records the result of a tool call.
    pub fn record_result(&mut self, result: &ToolCallResult) {
        if !result.is_error && self.call_ids.contains(&result.id) {
            self.output = result.meta.get(RESULT_FIELD).cloned();
        }
    }

    /// Records that the model was reminded to call the tool.
    pub fn record_reminder(&mut self) {
        self.reminders += 1;
    }

    /// The requirement as the turn's decision needs it.
    pub fn requirement(&self) -> next_step::OutputRequirement {
        match &self.schema {
            None => next_step::OutputRequirement::NotRequired,
            Some(_) if self.output.is_some() => next_step::OutputRequirement::Satisfied,
            Some(schema) => next_step::OutputRequirement::Pending {
                attempts: u32::try_from(self.call_ids.len()).unwrap_or(u32::MAX),
                reminders: self.reminders,
                limit: schema.max_attempts,
            },
        }
    }

    /// Takes the output, if it was given.
    pub fn take_output(&mut self) -> Option<Value> {
        self.output.take()
    }
}

#[cfg(all(test, feature = "structured-output"))]
mod tests;
