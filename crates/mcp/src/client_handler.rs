//! Client side of a connection: handles requests and notifications from the server and tracks calls in flight.
#![expect(deprecated, reason = "current servers still request roots and sampling")]

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
    ElicitRequestParams, ElicitResult, ElicitationAction as RmcpAction, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use whimbrel_models::http::Url;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::deps::{ElicitFn, McpCallProgress, NotifyFn, ServerNotification};
use super::transport::ConnectionState;

/// Notification that a URL elicitation was completed.
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// rmcp handler for one server.
pub(super) struct McpClientHandler {
    pub(super) server: Arc<str>,
    pub(super) roots: Vec<PathBuf>,
    pub(super) elicit: Option<ElicitFn>,
    pub(super) notify: Option<NotifyFn>,
    pub(super) tracker: Arc<CallTracker>,
    pub(super) state: ConnectionState,
}

/// State of a connection that requests wait on: calls in flight, open elicitations, list changes.
#[derive(Debug, Default)]
pub(super) struct CallTracker {
    calls: Mutex<HashMap<ProgressToken, InFlightCall>>,
    /// URL elicitations for which no completion has arrived.
    url_elicitations: Mutex<HashSet<String>>,
    /// Number of elicitations that wait for the user.
    pub(super) open_elicitations: watch::Sender<usize>,
    /// Number of calls in flight.
    in_flight: watch::Sender<usize>,
    /// Counts `list_changed` notifications.
    pub(super) list_changes: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) tool: String,
    pub(super) tool_use_id: String,
    pub(super) started: Instant,
    /// Signals every progress notification.
    pub(super) progress: watch::Sender<()>,
}

impl CallTracker {
    /// Tracks the progress of a call until the guard is dropped.
    pub(super) fn track(self: &Arc<Self>, token: ProgressToken, call: InFlightCall) -> TrackGuard {
        self.calls().insert(token.clone(), call);
        self.in_flight.send_modify(|count| *count += 1);
        TrackGuard { tracker: Arc::clone(self), token }
    }

    /// Waits until no call is in flight; forever if there is none now.
    async fn wait_calls_done(&self) {
        let mut calls = self.in_flight.subscribe();
        if *calls.borrow_and_update() == 0 || calls.wait_for(|count| *count == 0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn url_elicitations(&self) -> MutexGuard<'_, HashSet<String>> {
        self.url_elicitations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, InFlightCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the tracking of a call when dropped.
pub(super) struct TrackGuard {
    tracker: Arc<CallTracker>,
    token: ProgressToken,
}

impl Drop for TrackGuard {
    fn drop(&mut self) {
        self.tracker.calls().remove(&self.token);
        self.tracker.in_flight.send_modify(|count| *count -= 1);
    }
}

/// Counts an elicitation as open while it lives.
struct ElicitationGuard<'a>(&'a watch::Sender<usize>);

impl<'a> ElicitationGuard<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for ElicitationGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let elicitation_capability = || {
            let form = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            form.with_url(UrlElicitationCapability::default())
        };
        capabilities.elicitation = self.elicit.as_ref().map(|_| elicitation_capability());
        let client_info = Implementation::new("whimbrel", env!("CARGO_PKG_VERSION"));
        // Newer protocol versions start without `initialize`, which current servers do not support.
        ClientConfig::new(capabilities, client_info)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(unsupported("This client does not support sampling."))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let root = |dir: &PathBuf| Url::from_file_path(dir).ok().map(|url| Root::new(url.as_str()));
        Ok(ListRootsResult::new(self.roots.iter().filter_map(root).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(elicit) = &self.elicit else {
            return Err(unsupported("This client does not support elicitation in this session."));
        };
        let elicitation = to_elicitation(&self.server, request)?;
        // Registered first: the completion may arrive before the user's answer.
        self.tracker.url_elicitations().extend(elicitation.elicitation_id.clone());
        let _open = ElicitationGuard::new(&self.tracker.open_elicitations);
        let cancelled = async {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = self.state.wait_lost() => {}
                // The call that needed the answer is over.
                () = self.tracker.wait_calls_done() => {}
            }
        };
        let reply = tokio::select! {
            reply = elicit(elicitation) => reply,
            () = cancelled => ElicitationReply { action: ElicitationAction::Cancel, content: None },
        };
        Ok(to_elicit_result(reply))
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let params = {
            let calls = self.tracker.calls();
            // The call may have ended already.
            let Some(call) = calls.get(&notification.progress_token) else { return };
            call.progress.send_replace(());
            McpCallProgress {
                server: self.server.to_string(),
                tool: call.tool.clone(),
                tool_use_id: call.tool_use_id.clone(),
                elapsed: call.started.elapsed(),
                progress: notification.progress,
                total: notification.total,
                message: notification.message,
            }
        };
        if let Some(notify) = &self.notify {
            notify(ServerNotification::Progress(params));
        }
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        let id = match (notification.method.as_str(), &notification.params) {
            (ELICITATION_COMPLETE, Some(params)) => params.get("elicitationId").and_then(Value::as_str),
            _ => None,
        };
        if let (Some(id), Some(notify)) = (id, &self.notify)
            && self.tracker.url_elicitations().remove(id)
        {
            notify(ServerNotification::ElicitationComplete {
                server: self.server.to_string(),
                id: id.to_owned(),
            });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tracker.list_changes.send_modify(|count| *count += 1);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tracker.list_changes.send_modify(|count| *count += 1);
    }
}

fn unsupported(text: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

/// Converts an elicitation to the wire's form.
fn to_elicitation(server: &str, request: ElicitRequestParams) -> Result<Elicitation, ErrorData> {
    let server = server.to_owned();
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => Ok(Elicitation {
            mcp_server_name: server,
            message,
            mode: Some("form".into()),
            requested_schema: serde_json::to_value(requested_schema).ok(),
            ..Elicitation::default()
        }),
        ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => Ok(Elicitation {
            mcp_server_name: server,
            message,
            mode: Some("url".into()),
            url: Some(url),
            elicitation_id: Some(elicitation_id),
            ..Elicitation::default()
        }),
        _ => Err(ErrorData::invalid_params("This client does not support this elicitation mode.", None)),
    }
}

fn to_elicit_result(reply: ElicitationReply) -> ElicitResult {
    let action = match reply.action {
        ElicitationAction::Accept => RmcpAction::Accept,
        ElicitationAction::Decline => RmcpAction::Decline,
        ElicitationAction::Cancel => RmcpAction::Cancel,
    };
    let result = ElicitResult::new(action);
    match reply.content {
        Some(content) => result.with_content(Value::Object(content)),
        None => result,
    }
}
