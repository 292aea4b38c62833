//! Tools that the attributes `#[tool]` and `#[tools]` make, as a model sees and calls them.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use whimbrel::{Agent, Json, Scripted, ToolContext, ToolServer, query, tool, tools};

/// Adds two numbers.
///
/// Overflow is an error.
#[tool(read_only)]
async fn add(
    /// The first number.
    a: u8,
    /// The second one.
    #[serde(default)]
    b: u8,
    label: Option<String>,
) -> Result<String, &'static str> {
    let sum = a.checked_add(b).ok_or("the sum is too large")?;
    Ok(format!("{}{sum}", label.unwrap_or_default()))
}

struct Counter {
    count: AtomicU32,
}

#[tools(name = "counter", version = "2.0.0", instructions = "Counts.")]
impl Counter {
    /// Counts on.
    #[tool(destructive)]
    async fn count(&self, context: &ToolContext, r#type: String, step: u32) -> anyhow::Result<Json<Value>> {
        anyhow::ensure!(step > 0, "the step is 0");
        let count = self.count.fetch_add(step, Ordering::SeqCst) + step;
        Ok(Json(json!({"count": count, "type": r#type, "call": context.tool_use_id()})))
    }

    #[tool(name = "help-me", description = "Helps.")]
    fn help() -> &'static str {
        "call count"
    }

    fn current(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }
}

/// Calls a tool with an input; returns what the model got.
async fn call(server: ToolServer, name: &str, input: Value) -> Value {
    let tool = format!("mcp__{}__{name}", server.name());
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": tool, "input": input}]);
    let script = Arc::new(Scripted::replies(json!([call, "done"])).unwrap());
    let agent = Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .allowed_tools([format!("mcp__{}", server.name())])
        .tool_server(server)
        .script(Arc::clone(&script));
    query("go", &agent).await.unwrap();
    let request = script.requests().last().unwrap().clone();
    request["messages"].as_array().unwrap().last().unwrap()["content"][0].clone()
}

fn schema(tool: &whimbrel::Tool) -> Value {
    serde_json::from_str(tool.input_schema().as_str()).unwrap()
}

#[test]
fn arguments_and_their_comments_are_the_schema() {
    let tool = add_tool();
    assert_eq!((tool.name(), tool.description()), ("add", "Adds two numbers.\n\nOverflow is an error."));
    let schema = schema(&tool);
    assert_eq!(schema["required"], json!(["a"]));
    assert_eq!(schema["properties"]["a"]["description"], "The first number.");
    assert_eq!(schema["properties"]["b"]["default"], 0);
    assert_eq!(schema["type"], "object");
}

#[tokio::test]
async fn function_is_called_with_its_arguments() {
    let server = || ToolServer::new("calculator").tool(add_tool());
    let result = call(server(), "add", json!({"a": 2, "b": 3, "label": "sum "})).await;
    assert!(result.to_string().contains("sum 5"), "{result}");
    let result = call(server(), "add", json!({"a": 200, "b": 100})).await;
    assert_eq!((&result["is_error"], result.to_string().contains("too large")), (&json!(true), true));
    let result = call(server(), "add", json!({"a": "two"})).await;
    assert!(result["is_error"] == true && result.to_string().contains("`a`"), "{result}");
    assert_eq!(add(1, 2, None).await, Ok("3".to_owned()));
}

#[tokio::test]
async fn methods_share_the_value_and_see_the_context() {
    let counter = Arc::new(Counter { count: AtomicU32::new(0) });
    let result = call(counter.server(), "count", json!({"type": "sheep", "step": 2})).await;
    assert!(result.to_string().contains("sheep") && result.to_string().contains("toolu_1"), "{result}");
    let result = call(counter.server(), "count", json!({"type": "sheep", "step": 0})).await;
    assert!(result["is_error"] == true && result.to_string().contains("the step is 0"), "{result}");
    assert_eq!(counter.current(), 2);
}

#[tokio::test]
async fn method_without_self_is_a_tool_without_input() {
    let counter = Counter { count: AtomicU32::new(0) };
    let result = call(counter.into_server(), "help-me", json!({})).await;
    assert!(result.to_string().contains("call count"), "{result}");
}

/// A crate that exports this one under a path of its own.
mod facade {
    pub(crate) use whimbrel::{Tool, ToolContext};
    pub(crate) use whimbrel::{ToolServer, macro_support, schemars, tool, tool_with_state};
}

/// Doubles a number.
#[tool(crate = crate::facade)]
async fn double(number: u32) -> String {
    (number * 2).to_string()
}

struct Halver;

#[tools(name = "halver", crate = crate::facade)]
impl Halver {
    /// Halves a number.
    #[tool]
    async fn halve(&self, number: u32) -> String {
        (number / 2).to_string()
    }
}

#[test]
fn generated_code_names_the_crate_by_the_path_that_is_given() {
    assert_eq!((double_tool().name(), double_tool().description()), ("double", "Doubles a number."));
    assert_eq!(Halver.into_server().name(), "halver");
}
