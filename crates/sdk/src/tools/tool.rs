//! One tool: an async function with its description and input schema.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use whimbrel_wire::RawJson;
use whimbrel_wire::control::McpToolAnnotations;

use super::context::ToolContext;
use super::handler::{NoState, ToolHandler};
use super::input::InputFormat;
use super::output::ToolOutput;

type ToolFn = Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// A tool that is an async function of this program; made by [`tool()`] or by the attribute
/// [`macro@crate::tool`]. Cheap to clone.
#[derive(Clone)]
pub struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: RawJson,
    pub(super) annotations: McpToolAnnotations,
    pub(super) always_load: Option<bool>,
    pub(super) function: ToolFn,
}

/// Creates a tool from an async function. The model sees its name, its description and the schema of its input: derive
/// `schemars::JsonSchema` for the input, whose doc comments the model reads. `whimbrel::schemars` is that crate; a derive
/// finds it after `use whimbrel::schemars;`, and `whimbrel::serde_json` has the values.
///
/// The function takes the input, the [`ToolContext`], both in this order, or neither. See [`tool_with_state`] for one
/// that shares something with others.
///
/// Invalid input is rejected before the function is called, with the reason for the model. Calls run concurrently only
/// if the tool is [`read_only`](Tool::read_only). The future is dropped when the turn is interrupted.
///
/// Models send an object. An input of another type, such as a `String`, becomes the field `value` of one. An enum
/// becomes one object with the fields of all variants, and the description lists the variants.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, ToolServer, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     /// The first number.
///     a: f64,
///     /// The second one.
///     b: f64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let add = tool("add", "Adds two numbers", |sum: Sum| async move { (sum.a + sum.b).to_string() });
/// let agent = Agent::new()
///     .tool_server(ToolServer::new("calculator").tool(add.read_only()))
///     .allowed_tools(["mcp__calculator__add"]);
/// # let call = json!([{"type": "tool_use", "name": "mcp__calculator__add", "input": {"a": 2, "b": 3}}]);
/// # let script = std::sync::Arc::new(Scripted::replies(json!([call, "Five."]))?);
/// # let agent = agent.cwd(std::env::temp_dir()).persist_session(false).script(script.clone());
/// let answer = whimbrel::query("What is two and three?", &agent).await?;
/// assert_eq!(answer.text(), "Five.");
/// # assert!(script.requests().last().unwrap().to_string().contains(r#""text":"5""#));
/// # Ok(())
/// # }
/// ```
pub fn tool<Args>(
    name: impl Into<String>,
    description: impl Into<String>,
    handler: impl ToolHandler<Args>,
) -> Tool {
    build(NoState, name.into(), description.into(), handler)
}

/// Like [`tool()`], with a state that each call gets a clone of, before the other arguments: a connection pool, or
/// something in an [`Arc`].
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use whimbrel::{ToolContext, ToolServer, tool_with_state};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Note {
///     text: String,
/// }
///
/// type Notes = Arc<Mutex<Vec<String>>>;
///
/// async fn count(notes: Notes) -> String {
///     notes.lock().expect("no panic while locked").len().to_string()
/// }
///
/// let notes = Notes::default();
/// let server = ToolServer::new("notes")
///     .tool(tool_with_state(notes.clone(), "add", "Adds a note", |notes: Notes, note: Note| async move {
///         notes.lock().expect("no panic while locked").push(note.text);
///     }))
///     .tool(tool_with_state(notes, "count", "Counts the notes", count).read_only());
/// ```
pub fn tool_with_state<State, Args>(
    state: State,
    name: impl Into<String>,
    description: impl Into<String>,
    handler: impl ToolHandler<Args, State>,
) -> Tool
where
    State: Clone + Send + Sync + 'static,
{
    build(state, name.into(), description.into(), handler)
}

/// Creates a tool from a schema that is known only at run time, for example that of a tool of another program. The
/// function gets the input as the model sent it; it is not compared with the schema.
///
/// ```
/// use serde_json::{Map, Value, json};
/// use whimbrel::{ToolContext, ToolServer, tool_with_schema};
///
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
/// let Value::Object(schema) = schema else { unreachable!() };
/// let open = |input: Map<String, Value>, _: ToolContext| async move { format!("Opened {}.", input["path"]) };
/// let server = ToolServer::new("editor").tool(tool_with_schema("open", "Opens a file", &schema, open));
/// ```
pub fn tool_with_schema<F, A, O>(
    name: impl Into<String>,
    description: impl Into<String>,
    schema: &Map<String, Value>,
    function: F,
) -> Tool
where
    F: Fn(Map<String, Value>, ToolContext) -> A + Send + Sync + 'static,
    A: Future<Output = O> + Send + 'static,
    O: Into<ToolOutput>,
{
    let call = move |input: Value, context: ToolContext| -> BoxFuture<'static, ToolOutput> {
        let Value::Object(input) = input else {
            let text = "InputValidationError: the input is not a JSON object.";
            return Box::pin(std::future::ready(ToolOutput::failed(text)));
        };
        let output = function(input, context);
        Box::pin(async move { output.await.into() })
    };
    Tool {
        name: name.into(),
        description: description.into(),
        // A map with text keys can always be serialized.
        schema: RawJson::from_value(schema).unwrap_or_else(|_| unreachable!("a map is JSON")),
        annotations: McpToolAnnotations::default(),
        always_load: None,
        function: Arc::new(call),
    }
}

fn build<State, Args, Handler>(state: State, name: String, description: String, handler: Handler) -> Tool
where
    State: Clone + Send + Sync + 'static,
    Handler: ToolHandler<Args, State>,
{
    let format = InputFormat::of::<Handler::Input>();
    let (schema, description) = (format.schema.clone(), format.describe(description));
    let function = move |input: Value, context: ToolContext| match format.parse::<Handler::Input>(input) {
        Ok(input) => handler.call(state.clone(), input, context),
        Err(error) => {
            let text = format!("InputValidationError: the input does not match the schema: {error}.");
            Box::pin(std::future::ready(ToolOutput::failed(text)))
        }
    };
    Tool {
        name,
        description,
        schema,
        annotations: McpToolAnnotations::default(),
        always_load: None,
        function: Arc::new(function),
    }
}

impl Tool {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the model reads about it; for an input with several forms with a list of them.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Schema of its input, as the model gets it.
    pub fn input_schema(&self) -> &RawJson {
        &self.schema
    }

    /// Declares that the tool changes nothing: calls may run concurrently, and while the model is still streaming.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.annotations.read_only = Some(true);
        self
    }

    /// Always sends the tool's schema to the model. Otherwise, among many tools, the model has to search for it first.
    #[must_use]
    pub fn always_loaded(mut self) -> Self {
        self.always_load = Some(true);
        self
    }

    /// Declares that its changes cannot be undone.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.annotations.destructive = Some(true);
        self
    }

    /// Declares that it accesses the outside world, such as the web.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.annotations.open_world = Some(true);
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
