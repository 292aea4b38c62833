//! Servers that are code in this process: their tools are functions, and no message is written on the way to them.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use whimbrel_wire::RawJson;
use whimbrel_wire::content::Block;
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations};

use super::listing::ListedTool;

/// Does the work of a tool. The error is for the model.
pub type LocalToolFn = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Vec<Block>, String>> + Send + Sync>;

/// A server in this process. Cheap to clone.
#[derive(Clone)]
pub struct LocalServer(Arc<Inner>);

struct Inner {
    info: McpServerInfo,
    instructions: Option<String>,
    tools: Vec<LocalTool>,
}

/// A tool of a server in this process. Cheap to clone.
#[derive(Clone)]
pub struct LocalTool {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its input.
    pub schema: RawJson,
    /// What it promises.
    pub annotations: McpToolAnnotations,
    /// Whether the model is always shown it, if somebody has said anything about that.
    pub always_load: Option<bool>,
    /// The function.
    pub function: LocalToolFn,
}

impl LocalServer {
    /// A server with these tools.
    pub fn new(info: McpServerInfo, instructions: Option<String>, tools: Vec<LocalTool>) -> Self {
        Self(Arc::new(Inner { info, instructions, tools }))
    }

    /// What it calls itself.
    pub(super) fn info(&self) -> &McpServerInfo {
        &self.0.info
    }

    /// What it wants the model to know.
    pub(super) fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref().filter(|text| !text.trim().is_empty())
    }

    pub(super) fn tools(&self) -> &[LocalTool] {
        &self.0.tools
    }
}

impl LocalTool {
    /// The tool as a server would list it.
    pub(super) fn to_listed_tool(&self) -> ListedTool {
        ListedTool {
            name: self.name.clone(),
            description: self.description.clone(),
            schema: self.schema.clone(),
            read_only: self.annotations.read_only == Some(true),
            interactive: false,
            always_load: self.always_load,
            annotations: Some(self.annotations.clone()),
        }
    }

    /// Calls it, and gives what a server would answer.
    pub(super) async fn call(&self, arguments: Value) -> Value {
        match (self.function)(arguments).await {
            Ok(blocks) => json!({"content": blocks}),
            Err(text) => json!({"content": [{"type": "text", "text": text}], "isError": true}),
        }
    }
}

impl fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools().iter().map(|tool| &tool.name).collect::<Vec<_>>();
        f.debug_struct("LocalServer").field("tools", &tools).finish_non_exhaustive()
    }
}
