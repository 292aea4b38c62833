//! A named set of tools for an agent.

#[cfg(feature = "in-process")]
use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_wire::RawJson;
use whimbrel_wire::control::McpServerInfo;

#[cfg(feature = "in-process")]
use super::context::{ContextParts, ToolContext};
use super::json_rpc::{self, NotifyFn};
#[cfg(feature = "in-process")]
use super::output::ToolOutput;
use super::tool::Tool;
use crate::extensions::Extensions;

/// Tools of this program under one name. The model sees each as `mcp__SERVER__TOOL`; subagents have them, too. Cheap to
/// clone.
///
/// With the engine in this process a call is a function call, without serialization. An engine process reaches the
/// tools over its standard streams.
#[derive(Debug, Clone)]
pub struct ToolServer(Arc<ServerParts>);

#[derive(Debug, Clone)]
pub(super) struct ServerParts {
    pub(super) info: McpServerInfo,
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Tool>,
}

impl ToolServer {
    /// Creates a server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        let info = McpServerInfo { name: name.into(), version: "1.0.0".into() };
        Self(Arc::new(ServerParts { info, instructions: None, tools: Vec::new() }))
    }

    /// Sets the version that hosts can display; `1.0.0` by default.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        self.update(|parts| parts.info.version = version.into())
    }

    /// Sets instructions for the model about all tools of the server.
    #[must_use]
    pub fn instructions(self, text: impl Into<String>) -> Self {
        self.update(|parts| parts.instructions = Some(text.into()))
    }

    /// Adds a tool; replaces one of the same name.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.update(|parts| {
            parts.tools.retain(|other| other.name != tool.name);
            parts.tools.push(tool);
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.info.name
    }

    fn update(mut self, change: impl FnOnce(&mut ServerParts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Converts the server for an engine in this process.
    #[cfg(feature = "in-process")]
    fn to_in_process_server(&self, extensions: &Extensions) -> whimbrel_mcp::InProcessServer {
        use whimbrel_mcp::{FailedCall, InProcessCall, InProcessServer, InProcessTool};
        let to_in_process_tool = |tool: &Tool| {
            let (function, extensions) = (Arc::clone(&tool.function), extensions.clone());
            InProcessTool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                schema: tool.schema.clone(),
                annotations: tool.annotations.clone(),
                always_load: tool.always_load,
                function: Arc::new(move |input, call: InProcessCall| {
                    let context = ToolContext::new(ContextParts {
                        session_id: call.session_id,
                        tool_use_id: call.tool_use_id,
                        agent_id: call.agent_id,
                        cwd: call.cwd,
                        cancellation: call.cancel,
                        progress: call.progress,
                        extensions: extensions.clone(),
                    });
                    let output = function(input, context);
                    Box::pin(async move {
                        let ToolOutput { content, failed } = output.await;
                        if failed { Err(FailedCall::from_content(content)) } else { Ok(content) }
                    })
                }),
            }
        };
        let ServerParts { info, instructions, tools } = &*self.0;
        InProcessServer::new(
            info.clone(),
            instructions.clone(),
            tools.iter().map(to_in_process_tool).collect(),
        )
    }
}

/// The servers of an agent, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolServers(Vec<ToolServer>);

impl ToolServers {
    pub(crate) fn add(&mut self, server: ToolServer) {
        self.0.retain(|other| other.name() != server.name());
        self.0.push(server);
    }

    /// Converts all servers for an engine in this process.
    #[cfg(feature = "in-process")]
    pub(crate) fn to_in_process_servers(
        &self,
        extensions: &Extensions,
    ) -> BTreeMap<String, whimbrel_mcp::InProcessServer> {
        let convert =
            |server: &ToolServer| (server.name().to_owned(), server.to_in_process_server(extensions));
        self.0.iter().map(convert).collect()
    }

    /// Answers a message of the engine to a server; fails if there is no such server. `notify` sends a message of the
    /// server to the engine.
    pub(crate) async fn handle_message(
        &self,
        name: &str,
        message: &RawJson,
        extensions: Extensions,
        notify: NotifyFn,
    ) -> Result<RawJson, String> {
        let found = self.0.iter().find(|server| server.name() == name);
        let server = found.ok_or_else(|| format!("SDK MCP server not found: {name}"))?;
        json_rpc::handle_message(&server.0, message, extensions, notify).await
    }
}
