//! ToolSearch: loads deferred tools.

mod rank;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::rank::{SearchableTool, rank_tools};
use super::TOOL_SEARCH;
use crate::api::ToolEntry;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};

pub(super) struct ToolSearchTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ToolSearchInput {
    /// `select:NAME,NAME`, or keywords; `+word` must occur.
    query: String,
    #[serde(default, deserialize_with = "lenient::count")]
    max_results: Option<usize>,
}

/// Default number of tools loaded by a keyword search.
const DEFAULT_RESULTS: usize = 5;

const MAX_RESULTS: usize = 50;

impl Tool for ToolSearchTool {
    type Input = ToolSearchInput;

    const NAME: &'static str = TOOL_SEARCH;

    const DESCRIPTION: &'static str =
        "Loads deferred tools by name or keywords. You can call them in your next reply.";

    fn effects(_: &ToolSearchInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: ToolSearchInput, call: ToolContext) -> ToolResult {
        let query = input.query.trim();
        if query.is_empty() {
            return Err(ToolError::Rejected(
                "The query is empty: name tools or describe what they do.".into(),
            ));
        }
        let tools = call.deferred_tools.deferred_in(&call.tool_set);
        let found = match query.strip_prefix("select:") {
            Some(names) => select_by_name(names, &call),
            None => {
                let candidates: Vec<SearchableTool> =
                    tools.iter().map(|tool| SearchableTool::from_spec(&tool.spec())).collect();
                let limit = input.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
                ToolMatches { matches: rank_tools(query, &candidates, limit), missing: Vec::new() }
            }
        };
        call.deferred_tools.load(found.matches.iter().cloned());
        let text = found.render(tools.iter().map(|tool| tool.tool().name()));
        let meta = json!({
            "matches": found.matches,
            "query": query,
            "total_deferred_tools": tools.len(),
        });
        Ok(ToolOutput::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("tools are loaded by name", json!({"query": "select:NotebookEdit"}))
                .expect_output(&["Loaded: NotebookEdit."]),
            Example::new("tools are loaded by keyword", json!({"query": "jupyter cell", "max_results": 1}))
                .expect_output(&["Loaded: NotebookEdit."]),
            Example::new("a loaded tool is accepted", json!({"query": "select:Read"}))
                .expect_output(&["Read"]),
            Example::new("an unknown name is reported", json!({"query": "select:NotebookEdit,Telepathy"}))
                .expect_output(&["Loaded: NotebookEdit.", "No tool is named Telepathy."]),
            Example::new("without a match the names are listed", json!({"query": "+xylophone"}))
                .expect_output(&["No tool matches", "NotebookEdit"]),
            Example::new("an empty query is rejected", json!({"query": " "}))
                .expect_error(&["The query is empty"]),
        ]
    }
}

struct ToolMatches {
    matches: Vec<String>,
    /// Unknown names.
    missing: Vec<String>,
}

impl ToolMatches {
    fn render<'a>(&self, all: impl Iterator<Item = &'a str>) -> String {
        let mut lines = Vec::new();
        if !self.matches.is_empty() {
            lines.push(format!("Loaded: {}.", self.matches.join(", ")));
        }
        if !self.missing.is_empty() {
            lines.push(format!("No tool is named {}.", self.missing.join(" or ")));
        }
        if self.matches.is_empty() {
            let all: Vec<&str> = all.collect();
            lines.push(format!("No tool matches. Deferred tools: {}.", all.join(", ")));
        }
        lines.join("\n")
    }
}

/// Finds tools by name, ignoring case. Tools that are not deferred are found, too.
fn select_by_name(names: &str, call: &ToolContext) -> ToolMatches {
    let mut found = ToolMatches { matches: Vec::new(), missing: Vec::new() };
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let has_name = |tool: &Arc<ToolEntry>| tool.tool().name().eq_ignore_ascii_case(name);
        match call.tool_set.find(name).or_else(|| call.tool_set.tools().into_iter().find(has_name)) {
            Some(tool) => found.matches.push(tool.tool().name().to_owned()),
            None => found.missing.push(name.to_owned()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn matches_are_loaded_and_reported_to_the_host() {
        let fixture = TestWorkspace::new(&[]);
        let call = fixture.context();
        let output = fixture.run_tool("ToolSearch", json!({"query": "select:notebookedit"})).await.unwrap();
        let all = call.deferred_tools.deferred_in(&call.tool_set).len();
        assert_eq!(
            output.meta,
            json!({"matches": ["NotebookEdit"], "query": "select:notebookedit", "total_deferred_tools": all})
        );
        assert_eq!(call.deferred_tools.loaded(), ["NotebookEdit"]);
    }

    #[test]
    fn the_specification_is_small() {
        assert!(serde_json::to_string(&crate::api::AnyTool::spec(&ToolSearchTool)).unwrap().len() <= 400);
    }
}
