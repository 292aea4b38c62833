//! Servers implemented in this process, whose tools are Rust functions, called without JSON-RPC messages.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::RawJson;
use whimbrel_wire::content::Block;
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations};

use super::content::FailedCall;

/// Function behind a tool.
pub type InProcessToolFn =
    Arc<dyn Fn(Value, InProcessCall) -> BoxFuture<'static, Result<Vec<Block>, FailedCall>> + Send + Sync>;

/// Reports the progress of a call: the amount done, the total if it is known, and a text.
pub type ProgressFn = Arc<dyn Fn(f64, Option<f64>, Option<String>) + Send + Sync>;

/// Call of a function, besides its input.
#[derive(Clone)]
pub struct InProcessCall {
    /// Empty if the session is unknown.
    pub session_id: String,
    /// `None` if the host makes the call, outside the conversation.
    pub tool_use_id: Option<String>,
    /// Id of the calling subagent; `None` for the main agent.
    pub agent_id: Option<String>,
    /// Working directory of the calling agent.
    pub cwd: PathBuf,
    /// Fires when the call ends before the function has returned.
    pub cancel: CancellationToken,
    /// `None` outside the conversation, where no host waits for progress.
    pub progress: Option<ProgressFn>,
}

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
    pub(super) async fn call(&self, arguments: Value, call: InProcessCall) -> Value {
        match (self.function)(arguments, call).await {
            Ok(blocks) => json!({"content": blocks}),
            Err(failed) => json!({"content": failed.into_content(), "isError": true}),
        }
    }
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools().iter().map(|tool| &tool.name).collect::<Vec<_>>();
        f.debug_struct("InProcessServer").field("tools", &tools).finish_non_exhaustive()
    }
}
