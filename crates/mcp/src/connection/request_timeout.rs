//! Sends one request and waits for its response within the total and the idle timeout; the idle timeout pauses while
//! the user answers a question of the server.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonObject, MetaObject, RequestMetaObject, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{CLOSE_TIMEOUT, CallDetails, Connection, RequestOrigin};
use crate::client_handler::InFlightCall;
use crate::error::McpError;
use crate::limits::RequestTimeouts;

impl Connection {
    /// Sends a request and waits for the response within the timeouts. Dropping the future cancels the request at the
    /// server.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        timeouts: RequestTimeouts,
        caller: RequestOrigin<'_>,
    ) -> Result<ServerResult, McpError> {
        let deadline = Instant::now() + timeouts.total;
        let options = PeerRequestOptions::no_options().with_meta(request_meta(caller));
        let sent = self.peer.send_request_with_option(request, options);
        let sent = timeout_at(deadline, sent).await.map_err(|_| McpError::Timeout(timeouts.total))?;
        let mut cancel_guard = CancelOnDrop(Some(sent.map_err(|error| self.map_error(&error))?));
        let Some(handle) = &mut cancel_guard.0 else { return Err(McpError::Cancelled) };
        let (progress_sender, mut progress) = watch::channel(());
        let (tool, tool_use_id) = (caller.tool.into(), caller.tool_use_id.into());
        let call = InFlightCall { tool, tool_use_id, started: Instant::now(), progress: progress_sender };
        let _watch = self.tracker.track(handle.progress_token.clone(), call);
        let mut elicitations = self.tracker.open_elicitations.subscribe();
        let mut last_activity = Instant::now();
        loop {
            // The idle timeout pauses while the server waits for the user's answer.
            let waits_for_user = *elicitations.borrow_and_update() > 0;
            let idle_timeout = timeouts.idle.filter(|_| !waits_for_user);
            tokio::select! {
                biased;
                response = &mut handle.rx => {
                    cancel_guard.0 = None;
                    return match response {
                        Ok(response) => response.map_err(|error| self.map_error(&error)),
                        Err(_) => Err(self.state.loss_error()),
                    };
                }
                () = self.state.wait_lost() => {
                    cancel_guard.0 = None;
                    return Err(self.state.loss_error());
                }
                () = caller.cancel.cancelled() => return Err(McpError::Cancelled),
                () = sleep_until(deadline) => return Err(McpError::Timeout(timeouts.total)),
                () = wait_idle(last_activity, idle_timeout) => return Err(McpError::Timeout(idle_timeout.unwrap_or_default())),
                _ = progress.changed() => last_activity = Instant::now(),
                _ = elicitations.changed() => last_activity = Instant::now(),
            }
        }
    }
}

/// Waits until `limit` has passed since the last activity; forever without a limit.
async fn wait_idle(since: Instant, limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

/// Request metadata: the tool use id, by which servers can tell calls apart, and details of the caller.
fn request_meta(caller: RequestOrigin<'_>) -> RequestMetaObject {
    let mut fields = JsonObject::new();
    if !caller.tool_use_id.is_empty() {
        fields.insert("claudecode/toolUseId".into(), caller.tool_use_id.into());
    }
    if let Some(CallDetails { session_id, agent_id, cwd }) = caller.details {
        fields.insert("whimbrel/sessionId".into(), (&**session_id).into());
        fields.insert("whimbrel/cwd".into(), cwd.to_string_lossy().into());
        fields.extend(agent_id.as_ref().map(|id| ("whimbrel/agentId".to_owned(), id.as_str().into())));
    }
    RequestMetaObject(MetaObject::from(fields))
}

/// Sends a cancellation when dropped before the response.
struct CancelOnDrop(Option<RequestHandle<RoleClient>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            let cancel = handle.cancel(Some("the response is no longer needed".into()));
            runtime.spawn(async move { timeout(CLOSE_TIMEOUT, cancel).await.map(drop) });
        }
    }
}
