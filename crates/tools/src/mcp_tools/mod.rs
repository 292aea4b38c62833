//! Tools and resources of MCP servers as tools for the model.
//!
//! `tool`: a tool of a server; `resources`: tools that list and read resources; `server_instructions`:
//! instructions of servers for the model; [`ToolCache`]: the tools, prompts and instructions of all servers of a session.

mod resources;
mod server_instructions;
#[cfg(test)]
mod tests;
mod tool;
mod tool_cache;

use std::sync::Arc;

use self::resources::{ListMcpResources, ReadMcpResource};
use self::tool::McpTool;
pub use self::tool_cache::ToolCache;
use crate::api::AnyTool;
use whimbrel_mcp::ServerRegistry;

/// The tools of all servers, in a stable order, and the resource tools if a server has resources.
pub fn build_tools(registry: &ServerRegistry) -> Vec<Arc<dyn AnyTool>> {
    let mut tools: Vec<Arc<dyn AnyTool>> = Vec::new();
    tools.extend(registry.tools().into_iter().map(|tool| Arc::new(McpTool(tool)) as Arc<dyn AnyTool>));
    if registry.has_resources() {
        tools.push(Arc::new(ListMcpResources(registry.downgrade())));
        tools.push(Arc::new(ReadMcpResource(registry.downgrade())));
    }
    tools
}
