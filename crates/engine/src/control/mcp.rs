//! Control requests about MCP servers. Requests that wait for a server are answered asynchronously.

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_policy::Decision;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{
    ControlResponse, McpCall, McpMessage, McpSetServers, McpStatusReply, SetMcpPermissionModeOverride,
};
use whimbrel_wire::permission::PermissionMode;

use crate::event_loop::Session;
use crate::mcp::{ServerRegistry, Toggle};

pub(super) fn status(session: &Session, id: String) -> ControlResponse {
    let mcp_servers = session.mcp.registry().map(ServerRegistry::status).unwrap_or_default();
    ControlResponse::success(id, &McpStatusReply { mcp_servers })
}

/// Reconnects a server; responds when the attempt has ended.
pub(super) fn reconnect(session: &mut Session, id: String, name: String) -> Option<ControlResponse> {
    let Some(roster) = session.mcp.registry().cloned() else { return Some(unknown_server_error(id, &name)) };
    session.mcp.respond_later(async move { to_response(id, roster.reconnect(&name).await) });
    None
}

/// Enables or disables a server.
pub(super) fn toggle(
    session: &mut Session,
    id: String,
    name: String,
    switch: Toggle,
) -> Option<ControlResponse> {
    let Some(roster) = session.mcp.registry().cloned() else { return Some(unknown_server_error(id, &name)) };
    let turns = session.mcp.change_lock();
    session.mcp.mark_starting();
    session.mcp.respond_later(async move {
        let _turn = turns.lock().await;
        to_response(id, roster.toggle(&name, switch).await)
    });
    None
}

/// Replaces the set of servers.
pub(super) fn set_servers(
    session: &mut Session,
    id: String,
    wanted: McpSetServers,
) -> Option<ControlResponse> {
    let roster = session.mcp.ensure_registry();
    let turns = session.mcp.change_lock();
    session.mcp.mark_starting();
    session.mcp.respond_later(async move {
        let _turn = turns.lock().await;
        ControlResponse::success(id, &roster.set_servers(&wanted.servers).await)
    });
    None
}

/// Sets or clears the permission mode override of a server's tools.
pub(super) fn set_mode_override(
    session: &Session,
    id: String,
    SetMcpPermissionModeOverride { server_name, mode }: SetMcpPermissionModeOverride,
) -> ControlResponse {
    let prefix = session.mcp.registry().and_then(|roster| roster.tool_prefix(&server_name));
    let Some(prefix) = prefix else { return unknown_server_error(id, &server_name) };
    match mode {
        None | Some(PermissionMode::Default | PermissionMode::Auto) => {
            session.setup.permission_state.set_server_mode(&prefix, mode);
            ControlResponse::ok(id)
        }
        Some(other) => {
            ControlResponse::error(id, format!("A server's own mode is default or auto, not {other}."))
        }
    }
}

/// Handles a message that a server in the host's process sends on its own.
pub(super) fn handle_message(session: &Session, id: String, heard: &McpMessage) -> ControlResponse {
    let Some(roster) = session.mcp.registry() else { return unknown_server_error(id, &heard.server_name) };
    match roster.handle_host_message(&heard.server_name, &heard.message) {
        Ok(reply) => ControlResponse::success(id, &reply),
        Err(error) => ControlResponse::error(id, error),
    }
}

pub(super) fn read_resource(
    session: &mut Session,
    id: String,
    server: String,
    uri: String,
) -> Option<ControlResponse> {
    let Some(roster) = session.mcp.registry().cloned() else {
        return Some(unknown_server_error(id, &server));
    };
    session.mcp.respond_later(async move {
        match roster.read_resource(&server, &uri).await {
            Ok(reply) => ControlResponse::success(id, &reply),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

/// Calls a tool outside the conversation. The model does not see it.
pub(super) fn call_tool(session: &mut Session, id: String, call: McpCall) -> Option<ControlResponse> {
    let McpCall { tool, arguments, timeout_ms, check_permissions, .. } = call;
    if call.input_files.is_some() || call.output_files.is_some() {
        return Some(ControlResponse::error(id, "mcp_call cannot pass files on in this version."));
    }
    let arguments = arguments.unwrap_or_default();
    if check_permissions == Some(true)
        && let Err(error) = check_permission(session, &tool, &Value::Object(arguments.clone()))
    {
        return Some(ControlResponse::error(id, error));
    }
    let supply = session.setup.mcp_tool_cache.clone();
    session.mcp.respond_later(async move {
        let never = CancellationToken::new();
        let calling = supply.call_tool(&tool, arguments, &never);
        let answer = match timeout_ms.map(Duration::from_millis) {
            Some(limit) => tokio::time::timeout(limit, calling)
                .await
                .unwrap_or_else(|_| Err(format!("{tool} did not answer within {} ms.", limit.as_millis()))),
            None => calling.await,
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
    let listed = session.setup.tool_set.find(tool).ok_or_else(|| format!("Tool not found: {tool}"))?;
    let rights = &session.setup.permission_state;
    let mode = rights.mode_for_server(listed.tool().server());
    match rights.decide_in_mode(mode, tool, listed.facts(), input, None).decision {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => Err(format!("{tool} is not permitted here. {}", reason.text())),
        Decision::Ask(_) => {
            Err(format!("{tool} needs a permission that it does not have. Allow it by a rule."))
        }
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
