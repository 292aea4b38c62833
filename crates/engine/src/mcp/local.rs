//! Servers that are code in this process: their tools are functions, and no message is written on the way to them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;
use whimbrel_models::ToolSpec;
use whimbrel_wire::RawJson;
use whimbrel_wire::content::{Block, ResultContent};
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations, McpToolInfo};
use whimbrel_wire::permission::McpServerProvenance;

use super::connection::Patience;
use super::fault::Fault;
use super::result::{Shelf, fitted};
use crate::tools::{AnyTool, Call, Done, Example, Output, Touches, Trouble};

/// Does the work of a tool. The error is for the model.
pub type LocalWork = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Vec<Block>, String>> + Send + Sync>;

/// A server in this process. Cheap to clone.
#[derive(Clone)]
pub struct LocalServer(Arc<Local>);

struct Local {
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
    /// The function.
    pub work: LocalWork,
}

impl LocalServer {
    /// A server with these tools.
    pub fn new(info: McpServerInfo, instructions: Option<String>, tools: Vec<LocalTool>) -> Self {
        Self(Arc::new(Local { info, instructions, tools }))
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
    /// The tool as a host sees it.
    pub(super) fn info(&self) -> McpToolInfo {
        McpToolInfo {
            name: self.name.clone(),
            description: Some(self.description.clone()).filter(|text| !text.is_empty()),
            annotations: Some(self.annotations.clone()),
        }
    }

    /// Calls it, and gives what a server would answer.
    pub(super) async fn answer(&self, arguments: Value) -> Value {
        match (self.work)(arguments).await {
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

/// One tool of a server in this process, as the engine's other tools are.
pub(super) struct OwnTool {
    /// The whole name.
    pub(super) name: String,
    /// The server, and how it stands in the name.
    pub(super) server: String,
    pub(super) prefix: String,
    pub(super) tool: LocalTool,
    pub(super) patience: Patience,
    /// How many bytes of text the model is shown.
    pub(super) limit: usize,
}

impl AnyTool for OwnTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.tool.description.clone(),
            input_schema: self.tool.schema.clone(),
        }
    }

    fn touches(&self, _: &Value) -> Result<Touches, Trouble> {
        let harmless = self.tool.annotations.read_only == Some(true);
        Ok(if harmless { Touches::Reads(Vec::new()) } else { Touches::Runs })
    }

    fn run<'a>(&'a self, input: Value, call: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async move {
            let told = |fault: Fault| Trouble::Failed(format!("MCP server {}: {fault}", self.server));
            let work = timeout(self.patience.total, (self.tool.work)(input));
            let worked = call.cancel.run_until_cancelled(work).await.ok_or_else(|| told(Fault::Cancelled))?;
            let blocks = worked.map_err(|_| told(Fault::Late(self.patience.total)))?;
            let blocks = blocks.map_err(Trouble::Failed)?;
            let shelf = Shelf { spill: call.workspace.spill().to_path_buf(), limit: self.limit };
            let blocks = fitted(blocks, shelf).await;
            let meta = serde_json::to_value(&blocks).unwrap_or_default();
            Ok(Done { content: ResultContent::Blocks(blocks), meta })
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.prefix)
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        let details = [("source".to_owned(), "sdk".into())].into();
        Some(McpServerProvenance { name: Some(self.server.clone()), details })
    }
}
