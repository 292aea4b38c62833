//! Control requests about MCP servers. Requests that wait for a server are answered asynchronously.

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_mcp::{ServerRegistry, Toggle};
use whimbrel_policy::Decision;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{
    ControlResponse, McpCall, McpMessage, McpSetServers, McpStatusReply, SetMcpPermissionModeOverride,
};
use whimbrel_wire::permission::PermissionMode;

use crate::event_loop::Session;

pub(crate) fn status(session: &Session, id: String) -> ControlResponse {
    let mcp_servers = session.mcp.registry().map(ServerRegistry::status).unwrap_or_default();
    ControlResponse::success(id, &McpStatusReply { mcp_servers })
}

/// Reconnects a server; responds when the attempt has ended.
pub(crate) fn reconnect(session: &mut Session, id: String, name: String) -> Option<ControlResponse> {
    let Some(registry) = session.mcp.registry().cloned() else {
        return Some(unknown_server_error(id, &name));
    };
    session.mcp.respond_later(async move { to_response(id, registry.reconnect(&name).await) });
    None
}

/// Enables or disables a server.
pub(crate) fn toggle(
    session: &mut Session,
    id: String,
    name: String,
    switch: Toggle,
) -> Option<ControlResponse> {
    let Some(registry) = session.mcp.registry().cloned() else {
        return Some(unknown_server_error(id, &name));
    };
    let lock = session.mcp.change_lock();
    session.mcp.mark_starting();
    session.mcp.respond_later(async move {
        let _guard = lock.lock().await;
        to_response(id, registry.toggle(&name, switch).await)
    });
    None
}

/// Replaces the set of servers.
pub(crate) fn set_servers(
    session: &mut Session,
    id: String,
    request: McpSetServers,
) -> Option<ControlResponse> {
    let registry = session.mcp.ensure_registry();
    let lock = session.mcp.change_lock();
    session.mcp.mark_starting();
    session.mcp.respond_later(async move {
        let _guard = lock.lock().await;
        ControlResponse::success(id, &registry.set_servers(&request.servers).await)
    });
    None
}

/// Sets or clears the permission mode override of a server's tools.
pub(crate) fn set_mode_override(
    session: &Session,
    id: String,
    SetMcpPermissionModeOverride { server_name, mode }: SetMcpPermissionModeOverride,
) -> ControlResponse {
    let prefix = session.mcp.registry().and_then(|registry| registry.tool_prefix(&server_name));
    let Some(prefix) = prefix else { return unknown_server_error(id, &server_name) };
    match mode {
        None | Some(PermissionMode::Default | PermissionMode::Auto) => {
            session.setup.permissions.state.set_server_mode(&prefix, mode);
            ControlResponse::ok(id)
        }
        Some(other) => ControlResponse::error(
            id,
            format!("The permission mode of a server must be default or auto, not {other}."),
        ),
    }
}

/// Handles a message that a server in the host's process sends on its own.
pub(crate) fn handle_message(session: &Session, id: String, message: &McpMessage) -> ControlResponse {
    let Some(registry) = session.mcp.registry() else {
        return unknown_server_error(id, &message.server_name);
    };
    match registry.handle_host_message(&message.server_name, &message.message) {
        Ok(reply) => ControlResponse::success(id, &reply),
        Err(error) => ControlResponse::error(id, error),
    }
}

pub(crate) fn read_resource(
    session: &mut Session,
    id: String,
    server: String,
    uri: String,
) -> Option<ControlResponse> {
    let Some(registry) = session.mcp.registry().cloned() else {
        return Some(unknown_server_error(id, &server));
    };
    session.mcp.respond_later(async move {
        match registry.read_resource(&server, &uri).await {
            Ok(reply) => ControlResponse::success(id, &reply),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

/// Calls a tool outside the conversation. The model does not see it.
pub(crate) fn call_tool(session: &mut Session, id: String, call: McpCall) -> Option<ControlResponse> {
    let McpCall { tool, arguments, timeout_ms, check_permissions, .. } = call;
    if call.input_files.is_some() || call.output_files.is_some() {
        return Some(ControlResponse::error(id, "mcp_call does not support files in this version."));
    }
    let arguments = arguments.unwrap_or_default();
    if check_permissions == Some(true)
        && let Err(error) = check_permission(session, &tool, &Value::Object(arguments.clone()))
    {
        return Some(ControlResponse::error(id, error));
    }
    let tool_cache = session.setup.mcp.tool_cache.clone();
    session.mcp.respond_later(async move {
        let cancel = CancellationToken::new();
        let pending_call = tool_cache.call_tool(&tool, arguments, &cancel);
        let answer = match timeout_ms.map(Duration::from_millis) {
            Some(limit) => tokio::time::timeout(limit, pending_call)
                .await
                .unwrap_or_else(|_| Err(format!("{tool} did not answer within {} ms.", limit.as_millis()))),
            None => pending_call.await,
        };
        match answer.and_then(|answer| RawJson::from_value(&answer).map_err(|error| error.to_string())) {
            Ok(answer) => ControlResponse::success(id, &answer),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

/// Returns an error unless the rules allow the tool without a permission request.
fn check_permission(session: &Session, tool: &str, input: &Value) -> Result<(), String> {
    let entry = session.setup.tools.tool_set.find(tool).ok_or_else(|| format!("Tool not found: {tool}"))?;
    let permissions = &session.setup.permissions.state;
    let mode = permissions.mode_for_server(entry.tool().server());
    match permissions.decide_in_mode(mode, tool, entry.properties(), input, None).decision {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => Err(format!("{tool} is denied. {}", reason.text())),
        Decision::Ask(_) => Err(format!("{tool} needs permission. Add an allow rule for it.")),
    }
}

fn to_response(id: String, result: Result<(), String>) -> ControlResponse {
    match result {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, error),
    }
}

fn unknown_server_error(id: String, name: &str) -> ControlResponse {
    ControlResponse::error(id, format!("Server not found: {name}"))
}
