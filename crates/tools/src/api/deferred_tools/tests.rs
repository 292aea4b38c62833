use std::pin::Pin;

use serde_json::{Map, Value, json};
use whimbrel_wire::RawJson;

use super::*;
use crate::api::{AnyTool, Effects, Example, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::builtin::builtin_tools;

/// An MCP tool with a description of `bytes` bytes.
struct ServerTool {
    name: String,
    bytes: usize,
}

impl AnyTool for ServerTool {
    fn name(&self) -> &str {
        &self.name
    }
    fn aliases(&self) -> &[&str] {
        &[]
    }
    fn spec(&self) -> ToolSpec {
        let (name, description) = (self.name.clone(), "x".repeat(self.bytes));
        ToolSpec { name, description, input_schema: RawJson::from_value(&Map::new()).unwrap() }
    }
    fn effects(&self, _: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::None)
    }
    fn run<'a>(&'a self, _: Value, _: ToolContext) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async { Ok(ToolOutput::text("", json!({}))) })
    }
    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
    fn server(&self) -> Option<&str> {
        Some("server")
    }
}

fn with_server_tools(bytes: &[usize]) -> AgentToolSet {
    let server_tools = bytes.iter().enumerate().map(|(nth, bytes)| {
        Arc::new(ServerTool { name: format!("mcp__server__{nth}"), bytes: *bytes }) as Arc<dyn AnyTool>
    });
    AgentToolSet::from_tools(builtin_tools().into_iter().chain(server_tools).collect())
}

fn visible_names(deferred_tools: &DeferredTools, tool_set: &AgentToolSet) -> Vec<String> {
    deferred_tools.visible_specs(tool_set).iter().map(|spec| spec.name.clone()).collect()
}

#[test]
fn deferred_tools_are_hidden_until_loaded() {
    let (tool_set, deferred_tools) = (with_server_tools(&[]), DeferredTools::default());
    let before = visible_names(&deferred_tools, &tool_set);
    assert!(
        before.contains(&"Read".to_owned()) && !before.contains(&"NotebookEdit".to_owned()),
        "{before:?}"
    );
    assert!(
        deferred_tools.is_unloaded(&tool_set, "NotebookEdit")
            && !deferred_tools.is_unloaded(&tool_set, "Read")
    );
    deferred_tools.load(["NotebookEdit".to_owned(), "Unknown".to_owned(), "NotebookEdit".to_owned()]);
    let after = visible_names(&deferred_tools, &tool_set);
    assert_eq!(after[..before.len()], before, "the beginning of a request must stay the same");
    assert_eq!(after[before.len()..], ["NotebookEdit"]);
    assert!(!deferred_tools.is_unloaded(&tool_set, "NotebookEdit"));
}

#[test]
fn server_tools_are_shown_while_all_fit_the_budget() {
    let rows = [
        ("a few", [100, 200], 1000, true),
        ("too many", [100, 2000], 1000, false),
        ("zero budget", [1, 1], 0, false),
    ];
    for (name, bytes, budget, shown) in rows {
        let tool_set = with_server_tools(&bytes);
        let deferred_tools = DeferredTools::with_schema_budget(budget);
        let found = visible_names(&deferred_tools, &tool_set);
        let visible = found.iter().filter(|name| name.starts_with("mcp__")).count();
        assert_eq!(visible, if shown { 2 } else { 0 }, "{name}");
        assert!(found.contains(&"Read".to_owned()), "{name}");
    }
}

#[test]
fn without_tool_search_everything_is_shown() {
    let tool_set = with_server_tools(&[90_000]).without_tools(&[TOOL_SEARCH]);
    assert_eq!(visible_names(&DeferredTools::default(), &tool_set), tool_set.names());
}

#[test]
fn without_deferred_tools_there_is_no_tool_search() {
    let tool_set = AgentToolSet::from_tools(
        builtin_tools().into_iter().filter(|tool| ["Read", TOOL_SEARCH].contains(&tool.name())).collect(),
    );
    assert_eq!(visible_names(&DeferredTools::default(), &tool_set), ["Read"]);
}

#[test]
fn names_are_announced_once_and_new_ones_later() {
    let deferred_tools = DeferredTools::with_schema_budget(0);
    let first = deferred_tools.take_announcement(&with_server_tools(&[])).unwrap();
    assert!(first.contains("NotebookEdit") && first.contains("ToolSearch"), "{first}");
    assert_eq!(deferred_tools.take_announcement(&with_server_tools(&[])), None);
    let second = deferred_tools.take_announcement(&with_server_tools(&[1])).unwrap();
    assert!(second.contains("mcp__server__0") && !second.contains("NotebookEdit"), "{second}");
    deferred_tools.reset_announced();
    assert!(deferred_tools.take_announcement(&with_server_tools(&[1])).is_some());
    let many = DeferredTools::with_schema_budget(0).take_announcement(&with_server_tools(&[1; 400])).unwrap();
    assert!(many.len() < 6_000 && many.contains(" more, which ToolSearch finds"), "{}", many.len());
}

#[test]
fn the_variable_sets_the_schema_budget() {
    let rows = [
        (None, Ok(Some(DEFAULT_SCHEMA_BYTES))),
        (Some("true"), Ok(Some(0))),
        (Some("False"), Ok(None)),
        (Some("auto"), Ok(Some(80_000))),
        (Some("auto:25"), Ok(Some(200_000))),
        (Some("auto:0"), Ok(Some(0))),
    ];
    let env_with = |value: Option<&str>| -> BTreeMap<String, String> {
        value.map(|value| (TOOL_SEARCH_VARIABLE.to_owned(), value.to_owned())).into_iter().collect()
    };
    for (value, expected) in rows {
        assert_eq!(schema_budget(&env_with(value), Some(200_000)), expected, "{value:?}");
    }
    for wrong in ["auto:101", "auto:x", "perhaps"] {
        assert!(
            schema_budget(&env_with(Some(wrong)), None).unwrap_err().contains(TOOL_SEARCH_VARIABLE),
            "{wrong}"
        );
    }
}
