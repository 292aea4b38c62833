//! A tool of a server: what the server says about it, and how it is called, whatever the transport.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::content::Block;

use super::connection::{CallDetails, Connection, RequestOrigin};
use super::content::{FailedCall, OutputLimits, convert_call_result, fit_blocks};
use super::deps::{McpCallProgress, NotifyFn, ServerNotification};
use super::error::McpError;
use super::in_process::{InProcessCall, InProcessToolFn, ProgressFn};
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
    Remote {
        server: Weak<ServerHandle>,
        /// The host, if it runs the server and reads the details of calls.
        details_reader: Option<HostRequests>,
    },
    /// In this process.
    InProcess(InProcessFunction),
}

/// A function of the host.
pub(super) struct InProcessFunction {
    pub(super) function: InProcessToolFn,
    /// Time limit of a call.
    pub(super) timeout: Duration,
    /// Knows the id of the session.
    pub(super) host: Option<HostRequests>,
    /// Receives progress.
    pub(super) notify: Option<NotifyFn>,
}

/// One call of a tool.
pub struct ToolRequest<'a> {
    pub arguments: JsonObject,
    pub tool_use_id: &'a str,
    /// Id of the calling subagent; `None` for the main agent.
    pub agent_id: Option<&'a str>,
    /// Working directory of the calling agent.
    pub cwd: PathBuf,
    /// Directory for output that is too long or that models cannot read.
    pub output_dir: PathBuf,
    pub cancel: &'a CancellationToken,
}

impl ServerTool {
    /// Calls the tool.
    pub async fn call(&self, request: ToolRequest<'_>) -> Result<Vec<Block>, FailedCall> {
        let limits = OutputLimits {
            output_dir: request.output_dir.clone(),
            max_text_bytes: self.limits.max_output_bytes,
        };
        match &self.backend {
            ToolBackend::Remote { server, details_reader } => {
                let result = self.call_server(server, details_reader.as_ref(), request).await;
                convert_call_result(result.map_err(|error| self.describe_error(&error))?, limits).await
            }
            ToolBackend::InProcess(function) => match self.call_function(function, request).await {
                Ok(blocks) => Ok(fit_blocks(blocks, limits).await),
                Err(failed) => Err(FailedCall::from_content(fit_blocks(failed.into_content(), limits).await)),
            },
        }
    }

    async fn call_server(
        &self,
        server: &Weak<ServerHandle>,
        details_reader: Option<&HostRequests>,
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
        let details = details_reader.map(|host| CallDetails {
            session_id: host.session_id(),
            agent_id: request.agent_id.map(str::to_owned),
            cwd: request.cwd,
        });
        let caller = RequestOrigin {
            tool: &self.name,
            tool_use_id: request.tool_use_id,
            cancel: request.cancel,
            details: details.as_ref(),
        };
        call_tool(&connection, &self.listed.name, request.arguments, timeouts, caller).await
    }

    async fn call_function(
        &self,
        InProcessFunction { function, timeout: limit, host, notify }: &InProcessFunction,
        request: ToolRequest<'_>,
    ) -> Result<Vec<Block>, FailedCall> {
        let cancel = request.cancel.child_token();
        let call = InProcessCall {
            session_id: host.as_ref().map(|host| host.session_id().to_string()).unwrap_or_default(),
            tool_use_id: Some(request.tool_use_id.to_owned()),
            agent_id: request.agent_id.map(str::to_owned),
            cwd: request.cwd,
            cancel: cancel.clone(),
            progress: notify.clone().map(|notify| self.progress_fn(notify, request.tool_use_id)),
        };
        // Work that the function has started elsewhere learns that the call is over.
        let cancel_on_drop = cancel.drop_guard();
        let call = timeout(*limit, function(Value::Object(request.arguments), call));
        let result = request.cancel.run_until_cancelled(call).await;
        let result = result.ok_or_else(|| self.describe_error(&McpError::Cancelled))?;
        let result = result.map_err(|_| self.describe_error(&McpError::Timeout(*limit)))?;
        cancel_on_drop.disarm();
        result
    }

    /// Reports the progress of a call in this process.
    fn progress_fn(&self, notify: NotifyFn, tool_use_id: &str) -> ProgressFn {
        let (server, tool) = (self.owner.name.to_string(), self.name.clone());
        let (tool_use_id, started) = (tool_use_id.to_owned(), Instant::now());
        Arc::new(move |progress, total, message| {
            notify(ServerNotification::Progress(McpCallProgress {
                server: server.clone(),
                tool: tool.clone(),
                tool_use_id: tool_use_id.clone(),
                elapsed: started.elapsed(),
                progress,
                total,
                message,
            }));
        })
    }

    fn describe_error(&self, error: &McpError) -> FailedCall {
        match error {
            // The server's own text, unprefixed.
            McpError::ErrorResponse(text) => text.as_str().into(),
            error => format!("MCP server {}: {error}", self.owner.name).into(),
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
