//! A tool of a server: what the server says about it, and how it is called, whatever the transport.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Block;

use super::connection::{Connection, RequestOrigin};
use super::content::{OutputLimits, convert_call_result, fit_blocks};
use super::error::McpError;
use super::in_process::InProcessToolFn;
use super::limits::{McpLimits, RequestTimeouts, request_timeouts};
use super::listing::ListedTool;
use super::server_lifecycle::ServerHandle;

/// Tool of a server. It does not keep the server alive.
pub struct ServerTool {
    /// Full name, with the prefix of the server.
    pub name: String,
    pub owner: ToolOwner,
    pub listed: ListedTool,
    /// `alwaysLoad` of the server's entry.
    pub always_load: Option<bool>,
    pub(super) backend: ToolBackend,
    pub(super) limits: McpLimits,
}

/// Server that a tool belongs to.
#[derive(Debug, Clone)]
pub struct ToolOwner {
    /// Server name.
    pub name: Arc<str>,
    /// Prefix of the server in its tool names.
    pub prefix: String,
    /// Source of the server for the host, e.g. `project`.
    pub source: &'static str,
}

/// Where a call is executed.
pub(super) enum ToolBackend {
    /// At a server, by request.
    Remote(Weak<ServerHandle>),
    /// In this process, with a timeout.
    InProcess { function: InProcessToolFn, timeout: Duration },
}

/// One call of a tool.
pub struct ToolRequest<'a> {
    pub arguments: JsonObject,
    pub tool_use_id: &'a str,
    /// Directory for output that is too long or that models cannot read.
    pub output_dir: PathBuf,
    pub cancel: &'a CancellationToken,
}

impl ServerTool {
    /// Calls the tool. The error is the text of a failed call.
    pub async fn call(&self, request: ToolRequest<'_>) -> Result<Vec<Block>, String> {
        let limits = OutputLimits {
            output_dir: request.output_dir.clone(),
            max_text_bytes: self.limits.max_output_bytes,
        };
        match &self.backend {
            ToolBackend::Remote(server) => {
                let result = self.call_server(server, request).await;
                convert_call_result(result.map_err(|error| self.describe_error(&error))?, limits).await
            }
            ToolBackend::InProcess { function, timeout } => {
                let blocks = self.call_function(function, *timeout, request).await?;
                Ok(fit_blocks(blocks, limits).await)
            }
        }
    }

    async fn call_server(
        &self,
        server: &Weak<ServerHandle>,
        request: ToolRequest<'_>,
    ) -> Result<ServerResult, McpError> {
        let Some(server) = server.upgrade() else {
            return Err(McpError::Disconnected("it no longer exists.".into()));
        };
        let timeouts = request_timeouts(&server.config, self.limits);
        let connected = request.cancel.run_until_cancelled(server.connection()).await;
        // A call in flight must not keep the server alive either.
        drop(server);
        let connection = connected.ok_or(McpError::Cancelled)??;
        let caller =
            RequestOrigin { tool: &self.name, tool_use_id: request.tool_use_id, cancel: request.cancel };
        call_tool(&connection, &self.listed.name, request.arguments, timeouts, caller).await
    }

    async fn call_function(
        &self,
        function: &InProcessToolFn,
        limit: Duration,
        request: ToolRequest<'_>,
    ) -> Result<Vec<Block>, String> {
        let call = timeout(limit, function(Value::Object(request.arguments)));
        let result = request.cancel.run_until_cancelled(call).await;
        let result = result.ok_or_else(|| self.describe_error(&McpError::Cancelled))?;
        result.map_err(|_| self.describe_error(&McpError::Timeout(limit)))?
    }

    fn describe_error(&self, error: &McpError) -> String {
        match error {
            // The server's own text, unprefixed.
            McpError::ErrorResponse(text) => text.clone(),
            error => format!("MCP server {}: {error}", self.owner.name),
        }
    }
}

/// Sends `tools/call` with the tool's name at the server.
pub(super) async fn call_tool(
    connection: &Connection,
    tool: &str,
    arguments: JsonObject,
    timeouts: RequestTimeouts,
    caller: RequestOrigin<'_>,
) -> Result<ServerResult, McpError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    connection.request(request, timeouts, caller).await
}
