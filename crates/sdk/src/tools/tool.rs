//! One tool: an async function with its description and input schema.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use whimbrel_wire::RawJson;
use whimbrel_wire::control::McpToolAnnotations;

use super::output::ToolOutput;

type ToolFn = Arc<dyn Fn(Value) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// A tool that is an async function of this program; made by [`tool`]. Cheap to clone.
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
/// `schemars::JsonSchema` for the input, whose doc comments the model reads.
///
/// Invalid input is rejected before the function is called, with the reason for the model. Calls run concurrently only
/// if the tool is [`read_only`](Tool::read_only). The future is dropped when the turn is interrupted.
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
/// # async fn main() -> Result<(), whimbrel::Error> {
/// let add = tool("add", "Adds two numbers", |sum: Sum| async move { (sum.a + sum.b).to_string() });
/// let agent = Agent::new()
///     .tool_server(ToolServer::new("calculator").tool(add.read_only()))
///     .allowed_tools(["mcp__calculator__add"]);
/// # let call = json!([{"type": "tool_use", "name": "mcp__calculator__add", "input": {"a": 2, "b": 3}}]);
/// # let script = std::sync::Arc::new(Scripted::replies(json!([call, "Five."]))?);
/// # let agent = agent.cwd(std::env::temp_dir()).persist_session(false).script(script.clone());
/// let result = whimbrel::query("What is two and three?", &agent).result().await?;
/// assert_eq!(result.result.as_deref(), Some("Five."));
/// # assert!(script.requests().last().unwrap().to_string().contains(r#""text":"5""#));
/// # Ok(())
/// # }
/// ```
pub fn tool<I, F, A, O>(name: impl Into<String>, description: impl Into<String>, function: F) -> Tool
where
    I: DeserializeOwned + JsonSchema,
    F: Fn(I) -> A + Send + Sync + 'static,
    A: Future<Output = O> + Send + 'static,
    O: Into<ToolOutput>,
{
    let function = move |input: Value| -> BoxFuture<'static, ToolOutput> {
        match serde_json::from_value::<I>(input) {
            Ok(input) => {
                let answer = function(input);
                Box::pin(async move { answer.await.into() })
            }
            Err(error) => Box::pin(std::future::ready(ToolOutput::failed(format!(
                "InputValidationError: the input does not match the schema: {error}."
            )))),
        }
    };
    Tool {
        name: name.into(),
        description: description.into(),
        schema: input_schema::<I>(),
        annotations: McpToolAnnotations::default(),
        always_load: None,
        function: Arc::new(function),
    }
}

impl Tool {
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

/// Returns the schema of an input with inlined definitions, without metadata that is useless to a model.
fn input_schema<I: JsonSchema>() -> RawJson {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<I>().to_value();
    if let Value::Object(fields) = &mut schema {
        fields.remove("title");
        // A tool without input, `()` for instance, still takes an object.
        fields.insert("type".into(), "object".into());
        fields.entry("properties").or_insert_with(|| Map::new().into());
    } else {
        schema = json!({"type": "object", "properties": {}});
    }
    RawJson::from_value(&schema).unwrap_or_else(|_| unreachable!("a value can be serialized"))
}
