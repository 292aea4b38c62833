//! The shape of the final answer, when the host asks for one: the model gives the answer by a tool of the engine's own,
//! and what it gives is checked against the host's JSON Schema.

use std::pin::Pin;
use std::sync::Arc;

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::{Map, Value};
use whimbrel_models::ToolSpec;
use whimbrel_wire::RawJson;

use crate::tools::{AnyTool, ToolContext, ToolOutput, Example, ToolResult, Effects, ToolError};
use crate::next_step;
use crate::tool_scheduler::ToolCallResult;

/// The tool by which the answer is given.
pub const TOOL_NAME: &str = "StructuredOutput";

/// How often a model may try, unless [`LIMIT_VARIABLE`] says otherwise.
pub const DEFAULT_ATTEMPTS: u32 = 5;

/// The variable that says how often a model may try.
pub const ATTEMPTS_VARIABLE: &str = "MAX_STRUCTURED_OUTPUT_RETRIES";

/// What the model reads about the tool.
const DESCRIPTION: &str = "Gives your final answer, in the shape of this input. Call it once, as the last thing you do; an answer in words alone does not count.";

/// What the model is told when it ends without an answer.
pub const REMINDER: &str =
    "The answer has to be given by calling StructuredOutput; words alone do not count. Call it now.";

/// How many mistakes the model is told of at once.
const MAX_REPORTED_ERRORS: usize = 8;

/// Where the answer stands in the result of the call.
const RESULT_FIELD: &str = "structured_output";

/// A shape. Cheap to clone.
#[derive(Clone)]
pub struct OutputSchema {
    validator: Arc<Validator>,
    input_schema: RawJson,
    max_attempts: u32,
}

impl OutputSchema {
    /// A shape after a JSON Schema, which must describe an object. One that makes no sense is refused with the reason.
    pub fn new(schema: &Value, attempts: u32) -> Result<Self, String> {
        let wrong = |why: &str| format!("The JSON Schema of the answer cannot be used: {why}");
        let Value::Object(fields) = schema else { return Err(wrong("it is not an object.")) };
        let validator = jsonschema::options()
            .with_retriever(NoRetrieval)
            .build(schema)
            .map_err(|error| wrong(&format!("{error} (at {}).", display_path(error.instance_path().as_str()))))?;
        let input_schema = RawJson::from_value(&to_tool_schema(fields).map_err(|why| wrong(&why))?)
            .map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { validator: Arc::new(validator), input_schema, max_attempts: attempts })
    }

    /// The tool by which the answer is given.
    pub fn tool(&self) -> Arc<dyn AnyTool> {
        Arc::new(self.clone())
    }

    /// What is wrong with an answer, in words for the model.
    fn validate(&self, answer: &Value) -> Result<(), String> {
        let mut errors = self.validator.iter_errors(answer);
        let told: Vec<String> = errors
            .by_ref()
            .take(MAX_REPORTED_ERRORS)
            .map(|error| format!("- {}: {}", display_path(error.instance_path().as_str()), error.masked()))
            .collect();
        if told.is_empty() {
            return Ok(());
        }
        let more = match errors.count() {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        Err(format!(
            "The answer does not fit the shape that was asked for. Mend this and call {TOOL_NAME} again:\n{}{more}",
            told.join("\n")
        ))
    }
}

/// A place in a document, as a model reads it.
fn display_path(path: &str) -> &str {
    if path.is_empty() { "the top level" } else { path }
}

/// The schema as providers take it for a tool: an object that says so.
fn to_tool_schema(schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut schema = schema.clone();
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None => {
            schema.insert("type".into(), "object".into());
        }
        Some(kind) => {
            return Err(format!(
                "it describes {kind}, and an answer is an object. Put what you want into a field of one."
            ));
        }
    }
    Ok(schema)
}

/// No schema is fetched from anywhere: whoever writes one could make us ask any address or read any file.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("\"$ref\": {uri} is elsewhere and is not fetched; put it under \"$defs\"").into())
    }
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

    fn run<'a>(&'a self, input: Value, _: ToolContext) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            self.validate(&input).map_err(ToolError::Failed)?;
            let mut meta = Map::new();
            meta.insert(RESULT_FIELD.into(), input);
            Ok(ToolOutput::text("The answer has been taken.", Value::Object(meta)))
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
}

/// Whether an agent owes an answer in a shape, and how far it has come in the turn at hand.
#[derive(Default)]
pub struct StructuredOutput {
    schema: Option<OutputSchema>,
    /// The calls that gave an answer, good or bad.
    call_ids: Vec<String>,
    /// How often it had to be told that words alone do not count.
    reminders: u32,
    output: Option<Value>,
}

impl StructuredOutput {
    /// Owes an answer in this shape, if there is one.
    pub fn new(schema: Option<OutputSchema>) -> Self {
        Self { schema, ..Self::default() }
    }

    /// A new turn: the answer is owed anew.
    pub fn begin_turn(&mut self) {
        *self = Self::new(self.schema.take());
    }

    /// The model calls a tool.
    pub fn record_call(&mut self, tool: &str, id: &str) {
        if self.schema.is_some() && tool == TOOL_NAME {
            self.call_ids.push(id.to_owned());
        }
    }

    /// A call has been answered.
    pub fn record_result(&mut self, made: &ToolCallResult) {
        if !made.is_error && self.call_ids.contains(&made.id) {
            self.output = made.meta.get(RESULT_FIELD).cloned();
        }
    }

    /// The model has been told that words alone do not count.
    pub fn record_reminder(&mut self) {
        self.reminders += 1;
    }

    /// How far it has come.
    pub fn requirement(&self) -> next_step::OutputRequirement {
        match &self.schema {
            None => next_step::OutputRequirement::NotRequired,
            Some(_) if self.output.is_some() => next_step::OutputRequirement::Satisfied,
            Some(shape) => next_step::OutputRequirement::Pending {
                attempts: u32::try_from(self.call_ids.len()).unwrap_or(u32::MAX),
                reminders: self.reminders,
                limit: shape.max_attempts,
            },
        }
    }

    /// The answer, if it has been given.
    pub fn take_output(&mut self) -> Option<Value> {
        self.output.take()
    }
}

#[cfg(test)]
mod tests;
