//! Serves the engine's tools over MCP.
//!
//! Calls go through the same permission checker, hooks and tool scheduler as in a session that cannot request
//! permission. `session` builds that environment, `convert` lists the tools and maps them and their results to the
//! protocol.

mod convert;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;

use self::session::HeadlessSession;
use crate::engine::Engine;
use crate::setup::{SessionRequest, SetupError};
use crate::tool_scheduler::{ToolCall, ToolCallResult, ToolEnv, ToolScheduler};

/// Serves the tools over a pair of streams until the client disconnects or `stop` fires. Calls in flight get a few
/// seconds to finish; then every process started by them is ended. `warn` receives warnings for the user.
pub async fn serve_tools(
    engine: Engine,
    request: SessionRequest,
    streams: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stop: CancellationToken,
    warn: impl Fn(&str) + Send + 'static,
) -> Result<(), SetupError> {
    let session = HeadlessSession::open(&engine, request, &stop)?;
    if let Some(warning) = &session.warning {
        warn(warning);
    }
    let server =
        McpToolServer { env: session.env.clone(), root: session.root(), call_lock: RwLock::default() };
    match stop.run_until_cancelled(server.serve_with_ct(streams, stop.child_token())).await {
        Some(Ok(running)) => {
            // The client has disconnected, whatever the result.
            let _ = running.waiting().await;
        }
        None | Some(Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled)) => {}
        Some(Err(error)) => warn(&format!("The MCP handshake failed: {error}.")),
    }
    session.close().await;
    Ok(())
}

/// rmcp handler of the server side.
struct McpToolServer {
    env: ToolEnv,
    /// Working directory.
    root: String,
    /// Read lock: parallel-safe calls run concurrently. Write lock: other calls run alone.
    call_lock: RwLock<()>,
}

impl McpToolServer {
    /// Runs one call through permission check, hooks and tool.
    async fn run_call(&self, tool_call: ToolCall, cancel: &CancellationToken) -> Option<ToolCallResult> {
        let mut tool_env = self.env.clone();
        tool_env.context.cancel = cancel.clone();
        let tool = tool_env.tool_set.find(&tool_call.tool)?;
        let effects = tool.tool().effects(&tool_call.input);
        let is_exclusive = effects.is_ok_and(|effects| !effects.is_parallel_safe());
        let (_shared, _exclusive) = match is_exclusive {
            true => (None, Some(self.call_lock.write().await)),
            false => (Some(self.call_lock.read().await), None),
        };
        // Each call is a turn of its own: a hook that stops one does not stop the next.
        tool_env.checker.hooks.begin_turn();
        let mut scheduler = ToolScheduler::new(Arc::new(tool_env));
        scheduler.submit(tool_call);
        scheduler.mark_reply_complete();
        scheduler.next_result().await
    }
}

impl ServerHandler for McpToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("whimbrel", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!(
                "These tools work in {}. Read a file before you change it. A denied call stays denied until the permission rules change.",
                self.root
            ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.env.tool_set.tools();
        Ok(ListToolsResult::with_all_items(tools.iter().map(|tool| convert::to_listed_tool(tool)).collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let names = || self.env.tool_set.names().join(", ");
        let unknown = || format!("No such tool: {}. Available: {}.", call.name, names());
        if self.env.tool_set.find(&call.name).is_none() {
            return Err(ErrorData::invalid_params(unknown(), None));
        }
        let tool_call = ToolCall {
            id: ids::new_uuid(),
            tool: call.name.to_string(),
            input: Value::Object(call.arguments.unwrap_or_default()),
            bad_input: None,
        };
        // Dropping the future ends the call and the processes that it started.
        let result = context.ct.run_until_cancelled(self.run_call(tool_call, &context.ct)).await.flatten();
        Ok(result.map_or_else(convert::interrupted_result, convert::to_call_result).into())
    }
}
