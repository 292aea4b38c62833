//! Transport to a server in the host's process: every message is a control request to the host; messages that the
//! server sends on its own arrive as control requests from the host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{McpMessage, McpMessageReply};

use super::connection_state::ConnectionState;
use super::message::{ParsedInput, error_response, parse_messages, unreadable_response};
use crate::error::McpError;
use whimbrel_transport::host_requests::{HostRequestError, HostRequests};

/// Receives server-initiated messages from the host. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostedInbox(Arc<Mutex<Option<UnboundedSender<ServerJsonRpcMessage>>>>);

impl HostedInbox {
    /// Delivers a message; false if it cannot be parsed or the transport is not open.
    pub(crate) fn deliver(&self, message: &RawJson) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(sender), ParsedInput::Messages(messages)) =
            (&*sender, parse_messages(message.as_str().as_bytes()))
        else {
            return false;
        };
        messages.into_iter().all(|message| sender.send(message).is_ok())
    }
}

pub(super) struct HostedTransport {
    channel: HostChannel,
    incoming: UnboundedReceiver<ServerJsonRpcMessage>,
}

/// Channel to the server through the host.
#[derive(Clone)]
struct HostChannel {
    server: Arc<str>,
    host: HostRequests,
    incoming: UnboundedSender<ServerJsonRpcMessage>,
    /// Requests that wait for the host's response.
    pending: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    state: ConnectionState,
}

impl HostedTransport {
    pub(super) fn new(server: &str, host: HostRequests, inbox: &HostedInbox, state: ConnectionState) -> Self {
        let (sender, incoming) = unbounded_channel();
        *inbox.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
        Self {
            channel: HostChannel {
                server: server.into(),
                host,
                incoming: sender,
                pending: Arc::default(),
                state,
            },
            incoming,
        }
    }

    /// Sends a message and waits until the host has acknowledged it; a request until its response.
    pub(super) fn send(
        &self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + use<> {
        self.channel.clone().send(item)
    }

    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.incoming.recv() => message,
            // A closed host cannot send anything any more.
            () = self.channel.state.wait_lost() => None,
        }
    }
}

impl HostChannel {
    async fn send(self, item: ClientJsonRpcMessage) -> Result<(), McpError> {
        let message =
            RawJson::from_value(&item).map_err(|error| McpError::ErrorResponse(error.to_string()))?;
        let envelope = McpMessage { server_name: self.server.to_string(), message };
        match item {
            JsonRpcMessage::Request(request) => self.request(request.id, envelope).await,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    self.cancel(cancelled.params.request_id.as_ref());
                }
                self.notify(envelope).await
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.notify(envelope).await,
        }
    }

    async fn request(&self, id: RequestId, envelope: McpMessage) -> Result<(), McpError> {
        let cancel = CancellationToken::new();
        self.pending().insert(id.clone(), cancel.clone());
        let reply = cancel.run_until_cancelled(self.host.request(envelope)).await;
        self.pending().remove(&id);
        let message = match reply {
            // The request was cancelled.
            None => return Ok(()),
            Some(Ok(McpMessageReply { mcp_response })) => parse_response(id, &mcp_response),
            Some(Err(HostRequestError::Closed)) => return Err(self.host_closed()),
            Some(Err(error @ HostRequestError::Failed(_))) => error_response(id, error.to_string()),
        };
        // The connection may have ended meanwhile.
        let _ = self.incoming.send(message);
        Ok(())
    }

    /// Sends a notification or response; the host only acknowledges it.
    async fn notify(&self, envelope: McpMessage) -> Result<(), McpError> {
        match self.host.request(envelope).await {
            Err(HostRequestError::Closed) => Err(self.host_closed()),
            Ok(_) | Err(HostRequestError::Failed(_)) => Ok(()),
        }
    }

    fn host_closed(&self) -> McpError {
        let error = McpError::Permanent("the host that runs it has closed its input.".into());
        self.state.record_error(error.clone());
        self.state.mark_lost();
        error
    }

    fn cancel(&self, id: Option<&RequestId>) {
        if let Some(token) = id.and_then(|id| self.pending().remove(id)) {
            token.cancel();
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses the host's response to a request. Its id is replaced by the request's id.
fn parse_response(id: RequestId, reply: &RawJson) -> ServerJsonRpcMessage {
    let ParsedInput::Messages(messages) = parse_messages(reply.as_str().as_bytes()) else {
        return unreadable_response(id, "not a JSON-RPC message");
    };
    match messages.into_iter().next() {
        Some(JsonRpcMessage::Response(mut response)) => {
            response.id = id;
            JsonRpcMessage::Response(response)
        }
        Some(JsonRpcMessage::Error(mut error)) => {
            error.id = Some(id);
            JsonRpcMessage::Error(error)
        }
        _ => unreadable_response(id, "not a JSON-RPC response"),
    }
}
