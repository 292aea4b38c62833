//! Callbacks of the host, as async closures, and the responses that they give to the engine.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{
    CancelReason, ControlRequest, ControlResponse, Elicitation, ElicitationReply, McpMessage,
    McpMessageReply, Request,
};
use whimbrel_wire::permission::PermissionResult;

use crate::client::{EngineClient, new_uuid};
use crate::extensions::Extensions;
use crate::hook::{HookContext, HookList};
use crate::permission::{PermissionRequest, Withdrawal, WithdrawalSender};
use crate::tools::{NotifyFn, ToolServers};
use crate::warning::WarningFn;

/// Callbacks that answer requests of the engine.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) can_use_tool:
        Option<Arc<dyn Fn(PermissionRequest) -> BoxFuture<'static, PermissionResult> + Send + Sync>>,
    pub(crate) elicitation:
        Option<Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync>>,
    pub(crate) on_warning: Option<WarningFn>,
    pub(crate) hooks: HookList,
    pub(crate) tool_servers: ToolServers,
    pub(crate) extensions: Extensions,
}

impl Callbacks {
    pub(crate) fn set_can_use_tool<F, A>(&mut self, callback: F)
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
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

/// A callback that answers a request in a task of its own. Dropping it aborts the task.
pub(crate) struct CallbackTask {
    withdrawal: Arc<WithdrawalSender>,
    task: AbortOnDropHandle<()>,
}

impl CallbackTask {
    /// Starts answering a request, until the session is stopped.
    pub(crate) fn spawn(
        id: String,
        request: Request,
        callbacks: Callbacks,
        client: Arc<EngineClient>,
    ) -> Self {
        let withdrawal = Arc::new(WithdrawalSender::new());
        let sender = Arc::clone(&withdrawal);
        let task = tokio::spawn(async move {
            // The reason is set before the callback's future is dropped.
            let stopped = async {
                client.stop.cancelled().await;
                sender.withdraw(CancelReason::SessionEnded);
            };
            let response = tokio::select! {
                response = answer_request(id, request, callbacks, sender.subscribe(), &client) => response,
                () = stopped => return,
            };
            sender.answer();
            // An engine that has ended needs no response.
            let _ = client.send(response).await;
        });
        Self { withdrawal, task: AbortOnDropHandle::new(task) }
    }

    /// Ends the task because the engine has withdrawn the request.
    pub(crate) fn withdraw(self, reason: CancelReason) {
        self.withdrawal.withdraw(reason);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for CallbackTask {
    fn drop(&mut self) {
        self.withdrawal.withdraw(CancelReason::SessionEnded);
    }
}

/// Answers a request with the host's callbacks. A panicking callback gives an error response.
async fn answer_request(
    id: String,
    request: Request,
    callbacks: Callbacks,
    withdrawal: Withdrawal,
    client: &Arc<EngineClient>,
) -> ControlResponse {
    let extensions = callbacks.extensions;
    match request {
        Request::CanUseTool(request) => match callbacks.can_use_tool {
            Some(callback) => {
                let input = request.input.clone();
                let request = PermissionRequest::new(request, withdrawal, extensions, client);
                match AssertUnwindSafe(async { callback(request).await }).catch_unwind().await {
                    Ok(answer) => ControlResponse::success(id, &with_input(answer, input)),
                    Err(_) => ControlResponse::error(id, "the permission callback panicked"),
                }
            }
            None => ControlResponse::error(id, "the host has no permission callback"),
        },
        Request::HookCallback(request) => match callbacks.hooks.find_callback(&request.callback_id) {
            Some(callback) => {
                let context = HookContext::new(request.input.base.clone(), extensions);
                match AssertUnwindSafe(async { callback(request.input, context).await }).catch_unwind().await
                {
                    Ok(answer) => ControlResponse::success(id, &answer),
                    Err(_) => ControlResponse::error(id, "the hook panicked"),
                }
            }
            None => ControlResponse::error(id, format!("the host has no hook {}", request.callback_id)),
        },
        Request::McpMessage(request) => {
            let notify = notify_fn(&request.server_name, client);
            let handling = callbacks.tool_servers.handle_message(
                &request.server_name,
                &request.message,
                extensions,
                notify,
            );
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

/// Sends messages of a tool server to the engine. A message is dropped if the engine does not keep up.
fn notify_fn(server_name: &str, client: &Arc<EngineClient>) -> NotifyFn {
    let (server_name, client) = (server_name.to_owned(), Arc::downgrade(client));
    Arc::new(move |message: RawJson| {
        if let Some(client) = client.upgrade() {
            let message = McpMessage { server_name: server_name.clone(), message };
            let _ = client.send_now(ControlRequest::new(new_uuid(), message));
        }
    })
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
