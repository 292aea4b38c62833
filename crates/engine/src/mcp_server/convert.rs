//! The tools that `whimbrel mcp serve` offers, and the mapping of tools and results to MCP types. Pure.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool, ToolAnnotations};
use whimbrel_tools::api::ToolEntry;
use whimbrel_wire::content::{Block, ResultContent, Source};

use crate::tool_scheduler::ToolCallResult;

/// Tools that make sense without a conversation.
pub(super) const TOOLS: [(&str, ToolAccess); 10] = [
    ("Read", ToolAccess::ReadOnly),
    ("Glob", ToolAccess::ReadOnly),
    ("Grep", ToolAccess::ReadOnly),
    ("Write", ToolAccess::Writes),
    ("Edit", ToolAccess::Writes),
    ("NotebookEdit", ToolAccess::Writes),
    ("Bash", ToolAccess::Unrestricted),
    ("TaskOutput", ToolAccess::ReadOnly),
    ("TaskStop", ToolAccess::Writes),
    ("WebFetch", ToolAccess::ReadOnlyNetwork),
];

/// Access of a tool, for its MCP annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAccess {
    ReadOnly,
    /// Changes nothing here, but sends requests to the network.
    ReadOnlyNetwork,
    /// Changes local files or processes.
    Writes,
    Unrestricted,
}

pub(super) fn tool_names() -> Vec<String> {
    TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Converts a tool to its `tools/list` entry.
pub(super) fn to_listed_tool(tool: &ToolEntry) -> Tool {
    let spec = tool.spec();
    let schema: JsonObject = serde_json::from_str(spec.input_schema.as_str()).unwrap_or_default();
    let access = TOOLS.iter().find(|(name, _)| *name == spec.name).map(|(_, access)| *access);
    let is_read_only = matches!(access, Some(ToolAccess::ReadOnly | ToolAccess::ReadOnlyNetwork));
    let is_open_world = !matches!(access, Some(ToolAccess::ReadOnly | ToolAccess::Writes));
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
        .with_annotations(ToolAnnotations::new().read_only(is_read_only).open_world(is_open_world))
}

/// Converts the outcome of a call to a `tools/call` result.
pub(super) fn to_call_result(result: ToolCallResult) -> CallToolResult {
    let mut content = match result.content {
        ResultContent::Text(text) => vec![ContentBlock::text(strip_error_tag(text))],
        ResultContent::Blocks(blocks) => blocks.into_iter().map(to_content_block).collect(),
    };
    content.extend(result.notes.into_iter().map(ContentBlock::text));
    if result.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// Result of an interrupted call.
pub(super) fn interrupted_result() -> CallToolResult {
    let text = "Interrupted before it finished; changes made so far remain.";
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Strips the `<tool_use_error>` tag, which only the models of a session know.
fn strip_error_tag(text: String) -> String {
    let inner = text.strip_prefix("<tool_use_error>").and_then(|text| text.strip_suffix("</tool_use_error>"));
    inner.map(str::to_owned).unwrap_or(text)
}

fn to_content_block(block: Block) -> ContentBlock {
    match block {
        Block::Text { text, .. } => ContentBlock::text(text),
        Block::Image { source: Source::Base64 { media_type, data } } => ContentBlock::image(data, media_type),
        Block::Document { source: Source::Base64 { media_type, data }, title } => {
            let name = title.unwrap_or_else(|| "document".into());
            let contents = ResourceContents::blob(data, format!("whimbrel:{name}"));
            ContentBlock::resource(contents.with_mime_type(media_type))
        }
        other => ContentBlock::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}
