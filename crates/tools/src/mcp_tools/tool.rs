//! Tool of an MCP server as one of the engine's tools.

use std::pin::Pin;

use serde_json::{Map, Value};
use whimbrel_models::ToolSpec;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::McpServerProvenance;

use crate::api::{AnyTool, Effects, Example, ToolContext, ToolError, ToolLoading, ToolOutput, ToolResult};
use whimbrel_mcp::{FailedCall, ServerTool, ToolRequest};

/// Adapts a tool of a server.
pub(super) struct McpTool(pub(super) ServerTool);

/// Loading of a tool, from `alwaysLoad` of the server's entry and of the tool.
fn choose_loading(entry: Option<bool>, tool: Option<bool>) -> ToolLoading {
    match (entry, tool) {
        (Some(false), _) => ToolLoading::Deferred,
        (Some(true), Some(true) | None) | (None, Some(true)) => ToolLoading::Eager,
        (Some(true), Some(false)) | (None, Some(false) | None) => ToolLoading::IfFits,
    }
}

/// Tool input must be an object; null means an empty one.
fn parse_arguments(name: &str, input: &Value) -> Result<Map<String, Value>, ToolError> {
    match input {
        Value::Object(fields) => Ok(fields.clone()),
        Value::Null => Ok(Map::new()),
        _ => {
            Err(ToolError::Rejected(format!("InputValidationError: the input of {name} must be an object.")))
        }
    }
}

fn to_tool_error(failed: FailedCall) -> ToolError {
    let text = failed.text();
    match failed.is_text() {
        true => ToolError::Failed(text),
        false => ToolError::FailedWithContent { text, content: failed.into_content() },
    }
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.0.name.clone(),
            description: self.0.listed.description.clone(),
            input_schema: self.0.listed.schema.clone(),
        }
    }

    fn loading(&self) -> ToolLoading {
        choose_loading(self.0.always_load, self.0.listed.always_load)
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        parse_arguments(&self.0.name, input)?;
        Ok(if self.0.listed.read_only { Effects::Reads(Vec::new()) } else { Effects::RunsProgram })
    }

    fn run<'a>(
        &'a self,
        input: Value,
        call: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let request = ToolRequest {
                arguments: parse_arguments(&self.0.name, &input)?,
                tool_use_id: &call.id,
                agent_id: call.hooks.agent_id(),
                cwd: call.workspace.cwd(),
                output_dir: call.workspace.output_dir().to_path_buf(),
                cancel: &call.cancel,
            };
            let blocks = self.0.call(request).await.map_err(to_tool_error)?;
            let meta = serde_json::to_value(&blocks).unwrap_or_default();
            Ok(ToolOutput { content: ResultContent::Blocks(blocks), meta })
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.0.owner.prefix)
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        let owner = &self.0.owner;
        let details = [("source".to_owned(), owner.source.into())].into();
        Some(McpServerProvenance { name: Some(owner.name.to_string()), details })
    }

    fn needs_user(&self) -> bool {
        self.0.listed.interactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_depends_on_entry_and_server() {
        for (entry, tool, expected) in [
            (None, None, ToolLoading::IfFits),
            (None, Some(true), ToolLoading::Eager),
            (None, Some(false), ToolLoading::IfFits),
            (Some(true), None, ToolLoading::Eager),
            (Some(true), Some(false), ToolLoading::IfFits),
            (Some(false), None, ToolLoading::Deferred),
            (Some(false), Some(true), ToolLoading::Deferred),
        ] {
            assert_eq!(choose_loading(entry, tool), expected, "{entry:?} {tool:?}");
        }
    }
}
