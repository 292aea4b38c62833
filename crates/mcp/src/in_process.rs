//! Servers implemented in this process, whose tools are Rust functions, called without JSON-RPC messages.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use whimbrel_wire::RawJson;
use whimbrel_wire::content::Block;
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations};

/// Function behind a tool. The error text is shown to the model.
pub type InProcessToolFn = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Vec<Block>, String>> + Send + Sync>;

/// Server in this process. Cheap to clone.
#[derive(Clone)]
pub struct InProcessServer(Arc<Inner>);

struct Inner {
    info: McpServerInfo,
    instructions: Option<String>,
    tools: Vec<InProcessTool>,
}

/// Tool of a server in this process. Cheap to clone.
#[derive(Clone)]
pub struct InProcessTool {
    pub name: String,
    /// Description for the model: purpose and when to use the tool.
    pub description: String,
    /// JSON Schema of the input.
    pub schema: RawJson,
    pub annotations: McpToolAnnotations,
    /// Overrides deferred loading: true shows the tool to the model from the start.
    pub always_load: Option<bool>,
    pub function: InProcessToolFn,
}

impl InProcessServer {
    pub fn new(info: McpServerInfo, instructions: Option<String>, tools: Vec<InProcessTool>) -> Self {
        Self(Arc::new(Inner { info, instructions, tools }))
    }

    pub(super) fn info(&self) -> &McpServerInfo {
        &self.0.info
    }

    /// Instructions for the model, if they are not blank.
    pub(super) fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref().filter(|text| !text.trim().is_empty())
    }

    pub(super) fn tools(&self) -> &[InProcessTool] {
        &self.0.tools
    }
}

impl InProcessTool {
    /// Calls the tool and returns a `tools/call` result.
    pub(super) async fn call(&self, arguments: Value) -> Value {
        match (self.function)(arguments).await {
            Ok(blocks) => json!({"content": blocks}),
            Err(text) => json!({"content": [{"type": "text", "text": text}], "isError": true}),
        }
    }
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools().iter().map(|tool| &tool.name).collect::<Vec<_>>();
        f.debug_struct("InProcessServer").field("tools", &tools).finish_non_exhaustive()
    }
}
