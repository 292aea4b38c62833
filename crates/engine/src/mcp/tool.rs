//! Tool of an MCP server as one of the engine's tools, whatever the transport.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult};
use serde_json::Value;
use tokio::time::timeout;
use whimbrel_models::ToolSpec;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::permission::McpServerProvenance;

use super::connection::{CallContext, Connection, RequestTimeouts};
use super::error::McpError;
use super::limits::{self, McpLimits};
use super::listing::ListedTool;
use super::local::LocalToolFn;
use super::server::ServerHandle;
use super::tool_result::{OutputLimits, fit_blocks, to_tool_output};
use crate::deferred_tools::ToolLoading;
use crate::tool_api::{AnyTool, Effects, Example, ToolContext, ToolError, ToolOutput, ToolResult};

/// Tool of a server. It does not keep the server alive.
pub struct McpTool {
    /// Full name.
    name: String,
    owner: ToolOwner,
    listed: ListedTool,
    offer: ToolLoading,
    backend: ToolBackend,
    limits: McpLimits,
}

/// Server that a tool belongs to.
#[derive(Clone)]
pub(super) struct ToolOwner {
    /// Server name.
    pub(super) name: Arc<str>,
    /// Prefix of the server in its tool names.
    pub(super) prefix: String,
    /// Source of the server for the host, e.g. `project`.
    pub(super) source: &'static str,
}

/// Where a call is executed.
pub(super) enum ToolBackend {
    /// At a server, by request.
    Remote(Weak<ServerHandle>),
    /// In this process, with a timeout.
    InProcess { work: LocalToolFn, timeout: Duration },
}

impl McpTool {
    /// `usual` is `alwaysLoad` of the server's entry.
    pub(super) fn new(
        name: String,
        owner: ToolOwner,
        listed: ListedTool,
        usual: Option<bool>,
        backend: ToolBackend,
        limits: McpLimits,
    ) -> Self {
        let offer = choose_loading(usual, listed.always_load);
        Self { name, owner, listed, offer, backend, limits }
    }

    async fn call_server(
        &self,
        server: &Weak<ServerHandle>,
        arguments: JsonObject,
        call: &ToolContext,
    ) -> Result<ServerResult, McpError> {
        let Some(server) = server.upgrade() else {
            return Err(McpError::Disconnected("it no longer exists.".into()));
        };
        let timeouts = request_timeouts(&server.config, self.limits);
        let connected = call.cancel.run_until_cancelled(server.connection()).await;
        // A call in flight must not keep the server alive either.
        drop(server);
        let connection = connected.ok_or(McpError::Cancelled)??;
        let caller = CallContext { tool: &self.name, tool_use_id: &call.id, cancel: &call.cancel };
        call_tool(&connection, &self.listed.name, arguments, timeouts, caller).await
    }

    async fn call_local(
        &self,
        work: &LocalToolFn,
        limit: Duration,
        input: Value,
        call: &ToolContext,
    ) -> ToolResult {
        let work = timeout(limit, work(input));
        let worked = call
            .cancel
            .run_until_cancelled(work)
            .await
            .ok_or_else(|| self.to_tool_error(&McpError::Cancelled))?;
        let blocks =
            worked.map_err(|_| self.to_tool_error(&McpError::Timeout(limit)))?.map_err(ToolError::Failed)?;
        let blocks = fit_blocks(blocks, self.output_limits(call)).await;
        let meta = serde_json::to_value(&blocks).unwrap_or_default();
        Ok(ToolOutput { content: ResultContent::Blocks(blocks), meta })
    }

    fn output_limits(&self, call: &ToolContext) -> OutputLimits {
        OutputLimits {
            spill_dir: call.workspace.output_dir().to_path_buf(),
            max_text_bytes: self.limits.max_output_bytes,
        }
    }

    fn to_tool_error(&self, error: &McpError) -> ToolError {
        ToolError::Failed(match error {
            // The server's own text, unprefixed.
            McpError::ErrorResponse(text) => text.clone(),
            error => format!("MCP server {}: {error}", self.owner.name),
        })
    }
}

/// Loading of a tool, from `alwaysLoad` of the server's entry and of the tool.
fn choose_loading(entry: Option<bool>, tool: Option<bool>) -> ToolLoading {
    match (entry, tool) {
        (Some(false), _) => ToolLoading::Deferred,
        (Some(true), Some(true) | None) | (None, Some(true)) => ToolLoading::Eager,
        (Some(true), Some(false)) | (None, Some(false) | None) => ToolLoading::IfFits,
    }
}

/// Sends `tools/call` with the tool's name at the server.
pub(super) async fn call_tool(
    connection: &Connection,
    tool: &str,
    arguments: JsonObject,
    timeouts: RequestTimeouts,
    caller: CallContext<'_>,
) -> Result<ServerResult, McpError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    connection.request(request, timeouts, caller).await
}

/// Timeouts of a call. The idle timeout applies only to remote servers, whose connection may be dead without notice.
pub(super) fn request_timeouts(config: &McpServerConfig, limits: McpLimits) -> RequestTimeouts {
    let (own, silence) = match config {
        McpServerConfig::Stdio(server) => (server.timeout, None),
        McpServerConfig::Sdk(server) => (server.timeout, None),
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => {
            (server.timeout, Some(limits.idle_timeout))
        }
    };
    let own = limits::entry_timeout(own);
    // An explicit timeout replaces the idle timeout.
    RequestTimeouts { total: own.unwrap_or(limits.call_timeout), idle: silence.filter(|_| own.is_none()) }
}

/// Tool input must be an object; null means an empty one.
fn parse_arguments(name: &str, input: &Value) -> Result<JsonObject, ToolError> {
    match input {
        Value::Object(fields) => Ok(fields.clone()),
        Value::Null => Ok(JsonObject::new()),
        _ => {
            Err(ToolError::Rejected(format!("InputValidationError: the input of {name} must be an object.")))
        }
    }
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.listed.description.clone(),
            input_schema: self.listed.schema.clone(),
        }
    }

    fn loading(&self) -> ToolLoading {
        self.offer
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        parse_arguments(&self.name, input)?;
        Ok(if self.listed.read_only { Effects::Reads(Vec::new()) } else { Effects::RunsProgram })
    }

    fn run<'a>(
        &'a self,
        input: Value,
        call: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let arguments = parse_arguments(&self.name, &input)?;
            match &self.backend {
                ToolBackend::Remote(server) => {
                    let asked = self.call_server(server, arguments, &call).await;
                    to_tool_output(
                        asked.map_err(|error| self.to_tool_error(&error))?,
                        self.output_limits(&call),
                    )
                    .await
                }
                ToolBackend::InProcess { work, timeout } => {
                    self.call_local(work, *timeout, Value::Object(arguments), &call).await
                }
            }
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.owner.prefix)
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        let details = [("source".to_owned(), self.owner.source.into())].into();
        Some(McpServerProvenance { name: Some(self.owner.name.to_string()), details })
    }

    fn needs_user(&self) -> bool {
        self.listed.interactive
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
