//! Callbacks of the host, as async closures, and the responses that they give to the engine.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use whimbrel_wire::control::{
    CanUseTool, ControlResponse, Elicitation, ElicitationReply, McpMessageReply, Request,
};
use whimbrel_wire::permission::PermissionResult;

use crate::hook::HookList;
use crate::tools::ToolServers;

/// Callbacks that answer requests of the engine.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) can_use_tool:
        Option<Arc<dyn Fn(CanUseTool) -> BoxFuture<'static, PermissionResult> + Send + Sync>>,
    pub(crate) elicitation:
        Option<Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync>>,
    pub(crate) hooks: HookList,
    pub(crate) tool_servers: ToolServers,
}

impl Callbacks {
    pub(crate) fn set_can_use_tool<F, A>(&mut self, callback: F)
    where
        F: Fn(CanUseTool) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionResult> + Send + 'static,
    {
        self.can_use_tool = Some(Arc::new(move |request| Box::pin(callback(request))));
    }

    pub(crate) fn set_elicitation<F, A>(&mut self, callback: F)
    where
        F: Fn(Elicitation) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |request| Box::pin(callback(request))));
    }
}

/// Answers a request with the host's callbacks. A panicking callback gives an error response.
pub(crate) async fn answer_request(id: String, request: Request, callbacks: Callbacks) -> ControlResponse {
    match request {
        Request::CanUseTool(request) => match callbacks.can_use_tool {
            Some(callback) => {
                let input = request.input.clone();
                match AssertUnwindSafe(async { callback(request).await }).catch_unwind().await {
                    Ok(answer) => ControlResponse::success(id, &with_input(answer, input)),
                    Err(_) => ControlResponse::error(id, "the permission callback panicked"),
                }
            }
            None => ControlResponse::error(id, "the host has no permission callback"),
        },
        Request::HookCallback(request) => match callbacks.hooks.find_callback(&request.callback_id) {
            Some(callback) => {
                match AssertUnwindSafe(async { callback(request.input).await }).catch_unwind().await {
                    Ok(answer) => ControlResponse::success(id, &answer),
                    Err(_) => ControlResponse::error(id, "the hook panicked"),
                }
            }
            None => ControlResponse::error(id, format!("the host has no hook {}", request.callback_id)),
        },
        Request::McpMessage(request) => {
            let handling = callbacks.tool_servers.handle_message(&request.server_name, &request.message);
            match AssertUnwindSafe(handling).catch_unwind().await {
                Ok(Ok(mcp_response)) => ControlResponse::success(id, &McpMessageReply { mcp_response }),
                Ok(Err(error)) => ControlResponse::error(id, error),
                Err(_) => ControlResponse::error(id, "the tool panicked"),
            }
        }
        Request::Elicitation(request) if let Some(callback) = callbacks.elicitation => {
            match AssertUnwindSafe(async { callback(request).await }).catch_unwind().await {
                Ok(answer) => ControlResponse::success(id, &answer),
                Err(_) => ControlResponse::error(id, "the elicitation callback panicked"),
            }
        }
        other => ControlResponse::unsupported(id, other.subtype()),
    }
}

/// Adds the input to an allow that has none, because some engines reject it otherwise.
fn with_input(
    mut answer: PermissionResult,
    input: serde_json::Map<String, serde_json::Value>,
) -> PermissionResult {
    if let PermissionResult::Allow { updated_input: updated @ None, .. } = &mut answer {
        *updated = Some(input);
    }
    answer
}
