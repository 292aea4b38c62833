//! Requests to single servers outside the model's tool calls: prompts, resources, and calls by the host.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use rmcp::model::{
    ClientRequest, CustomResult, JsonObject, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Block;
use whimbrel_wire::control::{McpReadResourceReply, McpResourceContents};

use super::connection::RequestOrigin;
use super::content::OutputLimits;
use super::error::McpError;
use super::in_process::{InProcessCall, InProcessTool};
use super::limits::request_timeouts;
use super::prompts::{self, PromptCommand};
use super::registry::ServerRegistry;
use super::server_lifecycle::ServerHandle;
use super::server_tool;
use super::{listing, names};

impl ServerRegistry {
    /// Fetches a prompt with the arguments written after its command. Large contents are saved under `output_dir`.
    pub async fn get_prompt(
        &self,
        command: &PromptCommand,
        argument_text: &str,
        output_dir: &Path,
    ) -> Result<Vec<Block>, String> {
        let server = self.find_server(&command.server)?;
        let limits = self.inner().deps.limits;
        let output_limits =
            OutputLimits { output_dir: output_dir.to_path_buf(), max_text_bytes: limits.max_output_bytes };
        let request = async {
            let connection = server.connection().await?;
            let timeouts = request_timeouts(&server.config, limits);
            prompts::get_prompt(
                &connection,
                &command.prompt,
                command.parse_arguments(argument_text),
                timeouts,
                output_limits,
            )
            .await
        };
        request.await.map_err(|error| describe_error(&server, &error))
    }

    /// Lists the resources of one server or of all. Returns the resources and the errors of servers that failed.
    pub async fn list_resources(&self, server: Option<&str>) -> Result<(Vec<Value>, Vec<String>), String> {
        let servers = match server {
            Some(name) => vec![self.find_server(name)?],
            None => self
                .connected_features()
                .into_iter()
                .filter(|(_, _, features)| features.has_resources)
                .map(|(server, ..)| server)
                .collect(),
        };
        let limit = self.inner().deps.limits.connect_timeout;
        let responses = join_all(servers.iter().map(async |server| {
            let connection = server.connection().await?;
            listing::list_resources(&connection, limit).await
        }));
        let (mut resources, mut errors) = (Vec::new(), Vec::new());
        for (server, result) in servers.iter().zip(responses.await) {
            match result {
                Ok(list) => resources.extend(list.into_iter().filter_map(|resource| {
                    let value = serde_json::to_value(&resource).ok()?;
                    let fields = ["uri", "name", "mimeType", "description"];
                    let fields =
                        fields.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone())));
                    let server = ("server".to_owned(), Value::from(&*server.name));
                    Some(Value::Object(fields.chain([server]).collect()))
                })),
                Err(error) => errors.push(describe_error(server, &error)),
            }
        }
        Ok((resources, errors))
    }

    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<McpReadResourceReply, String> {
        let server = self.find_server(server)?;
        let response = async {
            let connection = server.connection().await?;
            let params = ReadResourceRequestParams::new(uri);
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            let never = CancellationToken::new();
            let caller = RequestOrigin { tool: uri, tool_use_id: "", cancel: &never, details: None };
            let limits = self.inner().deps.limits;
            parse_contents(
                connection.request(request, request_timeouts(&server.config, limits), caller).await?,
            )
        };
        response.await.map_err(|error| describe_error(&server, &error))
    }

    /// Calls a tool by its full name, for a host and outside the conversation. Returns the server's own result.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        for (_, prefix, _, server) in self.in_process_servers() {
            let is_called = |in_process_tool: &&InProcessTool| {
                tool == format!("mcp__{prefix}__{}", names::normalize(&in_process_tool.name))
            };
            if let Some(in_process_tool) = server.tools().iter().find(is_called) {
                let call = in_process_tool.call(Value::Object(arguments), self.host_call(cancel));
                let output = cancel.run_until_cancelled(call).await;
                return output.ok_or_else(|| McpError::Cancelled.to_string());
            }
        }
        let mut taken = HashSet::new();
        let mut all = self.connected_features().into_iter().flat_map(|(server, prefix, features)| {
            let names = features
                .tools
                .iter()
                .map(|listed| (names::tool_name(&prefix, &listed.name, &mut taken), listed.name.clone()));
            names.map(|(full_name, name)| (full_name, name, Arc::clone(&server))).collect::<Vec<_>>()
        });
        let found = all.find(|(full_name, ..)| full_name == tool);
        let (_, name, server) = found.ok_or_else(|| format!("Tool not found: {tool}"))?;
        let call = async {
            let connection = server.connection().await?;
            let timeouts = request_timeouts(&server.config, self.inner().deps.limits);
            let caller = RequestOrigin { tool, tool_use_id: "", cancel, details: None };
            server_tool::call_tool(&connection, &name, arguments, timeouts, caller).await
        };
        let result = call.await.map_err(|error| describe_error(&server, &error))?;
        serde_json::to_value(result).map_err(|error| error.to_string())
    }
}

impl ServerRegistry {
    /// A call that the host makes, outside the conversation.
    fn host_call(&self, cancel: &CancellationToken) -> InProcessCall {
        let deps = &self.inner().deps;
        InProcessCall {
            session_id: deps.host.as_ref().map(|host| host.session_id().to_string()).unwrap_or_default(),
            tool_use_id: None,
            agent_id: None,
            cwd: deps.cwd.clone(),
            cancel: cancel.child_token(),
            progress: None,
        }
    }
}

fn describe_error(server: &ServerHandle, error: &McpError) -> String {
    format!("MCP server {}: {error}", server.name)
}

fn parse_contents(result: ServerResult) -> Result<McpReadResourceReply, McpError> {
    let value = match result {
        ServerResult::ReadResourceResult(result) => serde_json::to_value(result.contents).ok(),
        ServerResult::CustomResult(CustomResult(mut value)) => value.get_mut("contents").map(Value::take),
        _ => None,
    };
    let Some(Value::Array(parts)) = value else {
        return Err(McpError::InvalidResponse("not a resource response.".into()));
    };
    let parts = parts.into_iter().filter_map(|part| serde_json::from_value::<McpResourceContents>(part).ok());
    Ok(McpReadResourceReply { contents: parts.collect() })
}
