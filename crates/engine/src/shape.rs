//! The shape of the final answer, when the host asks for one: the model gives the answer by a tool of the engine's own,
//! and what it gives is checked against the host's JSON Schema.

use std::pin::Pin;
use std::sync::Arc;

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::{Map, Value};
use whimbrel_models::ToolSpec;
use whimbrel_wire::RawJson;

use crate::tools::{AnyTool, Call, Done, Example, Output, Touches, Trouble};
use crate::verdict;
use crate::workshop::Made;

/// The tool by which the answer is given.
pub const NAME: &str = "StructuredOutput";

/// How often a model may try, unless [`LIMIT_VARIABLE`] says otherwise.
pub const ATTEMPTS: u32 = 5;

/// The variable that says how often a model may try.
pub const LIMIT_VARIABLE: &str = "MAX_STRUCTURED_OUTPUT_RETRIES";

/// What the model reads about the tool.
const DESCRIPTION: &str = "Gives your final answer, in the shape of this input. Call it once, as the last thing you do; an answer in words alone does not count.";

/// What the model is told when it ends without an answer.
pub const DEMAND: &str =
    "The answer has to be given by calling StructuredOutput; words alone do not count. Call it now.";

/// How many mistakes the model is told of at once.
const TOLD: usize = 8;

/// Where the answer stands in the result of the call.
const FIELD: &str = "structured_output";

/// A shape. Cheap to clone.
#[derive(Clone)]
pub struct Shape {
    validator: Arc<Validator>,
    input_schema: RawJson,
    attempts: u32,
}

impl Shape {
    /// A shape after a JSON Schema, which must describe an object. One that makes no sense is refused with the reason.
    pub fn new(schema: &Value, attempts: u32) -> Result<Self, String> {
        let wrong = |why: &str| format!("The JSON Schema of the answer cannot be used: {why}");
        let Value::Object(fields) = schema else { return Err(wrong("it is not an object.")) };
        let validator = jsonschema::options()
            .with_retriever(Nowhere)
            .build(schema)
            .map_err(|error| wrong(&format!("{error} (at {}).", place(error.instance_path().as_str()))))?;
        let input_schema = RawJson::of(&as_input(fields).map_err(|why| wrong(&why))?)
            .map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { validator: Arc::new(validator), input_schema, attempts })
    }

    /// The tool by which the answer is given.
    pub fn tool(&self) -> Arc<dyn AnyTool> {
        Arc::new(self.clone())
    }

    /// What is wrong with an answer, in words for the model.
    fn check(&self, answer: &Value) -> Result<(), String> {
        let mut errors = self.validator.iter_errors(answer);
        let told: Vec<String> = errors
            .by_ref()
            .take(TOLD)
            .map(|error| format!("- {}: {}", place(error.instance_path().as_str()), error.masked()))
            .collect();
        if told.is_empty() {
            return Ok(());
        }
        let more = match errors.count() {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        Err(format!(
            "The answer does not fit the shape that was asked for. Mend this and call {NAME} again:\n{}{more}",
            told.join("\n")
        ))
    }
}

/// A place in a document, as a model reads it.
fn place(path: &str) -> &str {
    if path.is_empty() { "the top level" } else { path }
}

/// The schema as providers take it for a tool: an object that says so.
fn as_input(schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
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
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("\"$ref\": {uri} is elsewhere and is not fetched; put it under \"$defs\"").into())
    }
}

impl AnyTool for Shape {
    fn name(&self) -> &str {
        NAME
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            description: DESCRIPTION.into(),
            input_schema: self.input_schema.clone(),
        }
    }

    fn touches(&self, _: &Value) -> Result<Touches, Trouble> {
        Ok(Touches::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async move {
            self.check(&input).map_err(Trouble::Failed)?;
            let mut meta = Map::new();
            meta.insert(FIELD.into(), input);
            Ok(Done::text("The answer has been taken.", Value::Object(meta)))
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
}

/// Whether an agent owes an answer in a shape, and how far it has come in the turn at hand.
#[derive(Default)]
pub struct Owed {
    shape: Option<Shape>,
    /// The calls that gave an answer, good or bad.
    calls: Vec<String>,
    /// How often it had to be told that words alone do not count.
    demands: u32,
    given: Option<Value>,
}

impl Owed {
    /// Owes an answer in this shape, if there is one.
    pub fn new(shape: Option<Shape>) -> Self {
        Self { shape, ..Self::default() }
    }

    /// A new turn: the answer is owed anew.
    pub fn begin_turn(&mut self) {
        *self = Self::new(self.shape.take());
    }

    /// The model calls a tool.
    pub fn called(&mut self, tool: &str, id: &str) {
        if self.shape.is_some() && tool == NAME {
            self.calls.push(id.to_owned());
        }
    }

    /// A call has been answered.
    pub fn settled(&mut self, made: &Made) {
        if !made.failed && self.calls.contains(&made.id) {
            self.given = made.meta.get(FIELD).cloned();
        }
    }

    /// The model has been told that words alone do not count.
    pub fn demanded(&mut self) {
        self.demands += 1;
    }

    /// How far it has come.
    pub fn answer(&self) -> verdict::Answer {
        match &self.shape {
            None => verdict::Answer::Free,
            Some(_) if self.given.is_some() => verdict::Answer::Given,
            Some(shape) => verdict::Answer::Due {
                attempts: u32::try_from(self.calls.len()).unwrap_or(u32::MAX),
                demands: self.demands,
                limit: shape.attempts,
            },
        }
    }

    /// The answer, if it has been given.
    pub fn take(&mut self) -> Option<Value> {
        self.given.take()
    }
}

#[cfg(test)]
mod tests;
