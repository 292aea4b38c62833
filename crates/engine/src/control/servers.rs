//! Requests about MCP servers. What takes a server's time is answered later, beside everything else.

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_policy::Decision;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{
    ControlResponse, McpCall, McpMessage, McpSetServers, McpStatusReply, SetMcpPermissionModeOverride,
};
use whimbrel_wire::permission::PermissionMode;

use crate::mcp::{Roster, Switch};
use crate::serve::Session;

/// How the servers are.
pub(super) fn status(session: &Session, id: String) -> ControlResponse {
    let mcp_servers = session.crew.hired().map(Roster::status).unwrap_or_default();
    ControlResponse::success(id, &McpStatusReply { mcp_servers })
}

/// Connects to a server anew; answered when that has been tried.
pub(super) fn reconnect(session: &mut Session, id: String, name: String) -> Option<ControlResponse> {
    let Some(roster) = session.crew.hired().cloned() else { return Some(no_server(id, &name)) };
    session.crew.later(async move { done(id, roster.reconnect(&name).await) });
    None
}

/// Switches a server on or off.
pub(super) fn toggle(
    session: &mut Session,
    id: String,
    name: String,
    switch: Switch,
) -> Option<ControlResponse> {
    let Some(roster) = session.crew.hired().cloned() else { return Some(no_server(id, &name)) };
    let turns = session.crew.turns();
    session.crew.expect_some();
    session.crew.later(async move {
        let _turn = turns.lock().await;
        done(id, roster.toggle(&name, switch).await)
    });
    None
}

/// Uses other servers from now on.
pub(super) fn set(session: &mut Session, id: String, wanted: McpSetServers) -> Option<ControlResponse> {
    let roster = session.crew.roster();
    let turns = session.crew.turns();
    session.crew.expect_some();
    session.crew.later(async move {
        let _turn = turns.lock().await;
        ControlResponse::success(id, &roster.set_servers(&wanted.servers).await)
    });
    None
}

/// Gives the tools of a server a mode of their own, or takes it away again.
pub(super) fn set_mode(
    session: &Session,
    id: String,
    SetMcpPermissionModeOverride { server_name, mode }: SetMcpPermissionModeOverride,
) -> ControlResponse {
    let prefix = session.crew.hired().and_then(|roster| roster.prefix(&server_name));
    let Some(prefix) = prefix else { return no_server(id, &server_name) };
    match mode {
        None | Some(PermissionMode::Default | PermissionMode::Auto) => {
            session.setup.rights.set_mode_for(&prefix, mode);
            ControlResponse::ok(id)
        }
        Some(other) => {
            ControlResponse::error(id, format!("A server's own mode is default or auto, not {other}."))
        }
    }
}

/// Takes what a server in the host's process says by itself.
pub(super) fn hear(session: &Session, id: String, heard: &McpMessage) -> ControlResponse {
    let Some(roster) = session.crew.hired() else { return no_server(id, &heard.server_name) };
    match roster.hosted_message(&heard.server_name, &heard.message) {
        Ok(reply) => ControlResponse::success(id, &reply),
        Err(error) => ControlResponse::error(id, error),
    }
}

/// Reads a resource.
pub(super) fn read(
    session: &mut Session,
    id: String,
    server: String,
    uri: String,
) -> Option<ControlResponse> {
    let Some(roster) = session.crew.hired().cloned() else { return Some(no_server(id, &server)) };
    session.crew.later(async move {
        match roster.read_resource(&server, &uri).await {
            Ok(reply) => ControlResponse::success(id, &reply),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

/// Calls a tool beside the conversation. The model hears nothing of it.
pub(super) fn call(session: &mut Session, id: String, call: McpCall) -> Option<ControlResponse> {
    let McpCall { tool, arguments, timeout_ms, check_permissions, .. } = call;
    if call.input_files.is_some() || call.output_files.is_some() {
        return Some(ControlResponse::error(id, "mcp_call cannot pass files on in this version."));
    }
    let arguments = arguments.unwrap_or_default();
    if check_permissions == Some(true)
        && let Err(error) = may_call(session, &tool, &Value::Object(arguments.clone()))
    {
        return Some(ControlResponse::error(id, error));
    }
    let supply = session.setup.supply.clone();
    session.crew.later(async move {
        let never = CancellationToken::new();
        let calling = supply.call(&tool, arguments, &never);
        let answer = match timeout_ms.map(Duration::from_millis) {
            Some(limit) => tokio::time::timeout(limit, calling)
                .await
                .unwrap_or_else(|_| Err(format!("{tool} did not answer within {} ms.", limit.as_millis()))),
            None => calling.await,
        };
        match answer.and_then(|answer| RawJson::of(&answer).map_err(|error| error.to_string())) {
            Ok(answer) => ControlResponse::success(id, &answer),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

/// Whether the rules let a tool be called without a question.
fn may_call(session: &Session, tool: &str, input: &Value) -> Result<(), String> {
    let listed = session.setup.toolbox.find(tool).ok_or_else(|| format!("Tool not found: {tool}"))?;
    let rights = &session.setup.rights;
    let mode = rights.mode_for(listed.tool().server());
    match rights.judge_in(mode, tool, listed.facts(), input, None).decision {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => Err(format!("{tool} is not permitted here. {}", reason.text())),
        Decision::Ask(_) => {
            Err(format!("{tool} needs a permission that it does not have. Allow it by a rule."))
        }
    }
}

fn done(id: String, result: Result<(), String>) -> ControlResponse {
    match result {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, error),
    }
}

fn no_server(id: String, name: &str) -> ControlResponse {
    ControlResponse::error(id, format!("Server not found: {name}"))
}
