//! A server in the host's own process: every message is a question to the host, and what the server says by itself
//! comes as a request of the host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{McpMessage, McpMessageReply};

use super::fate::Fate;
use super::message::{Heard, failed, read, unreadable};
use crate::ask::{Ask, NoAnswer};
use crate::mcp::fault::Fault;

/// Where the host puts what a server says by itself. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Letterbox(Arc<Mutex<Option<UnboundedSender<ServerJsonRpcMessage>>>>);

impl Letterbox {
    /// Takes a message of the server. False if nobody listens, or if it is none.
    pub(crate) fn put(&self, message: &RawJson) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(open), Heard::Messages(messages)) = (&*open, read(message.as_str().as_bytes())) else {
            return false;
        };
        messages.into_iter().all(|message| open.send(message).is_ok())
    }
}

/// A server of the host.
pub(super) struct Hosted {
    line: Line,
    heard: UnboundedReceiver<ServerJsonRpcMessage>,
}

/// The way to the server and back.
#[derive(Clone)]
struct Line {
    server: Arc<str>,
    ask: Ask,
    back: UnboundedSender<ServerJsonRpcMessage>,
    /// Requests that wait for an answer of the host.
    open: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    fate: Fate,
}

impl Hosted {
    pub(super) fn new(server: &str, ask: Ask, letterbox: &Letterbox, fate: Fate) -> Self {
        let (back, heard) = unbounded_channel();
        *letterbox.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(back.clone());
        Self { line: Line { server: server.into(), ask, back, open: Arc::default(), fate }, heard }
    }

    /// Sends a message, and waits until the host has taken it; a request until it has answered.
    pub(super) fn send(&self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Fault>> + use<> {
        self.line.clone().send(item)
    }

    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.heard.recv() => message,
            // There is no way back from a host that is gone.
            () = self.line.fate.lost() => None,
        }
    }
}

impl Line {
    async fn send(self, item: ClientJsonRpcMessage) -> Result<(), Fault> {
        let message = RawJson::of(&item).map_err(|error| Fault::Refused(error.to_string()))?;
        let question = McpMessage { server_name: self.server.to_string(), message };
        match item {
            JsonRpcMessage::Request(request) => self.request(request.id, question).await,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    self.withdraw(cancelled.params.request_id.as_ref());
                }
                self.tell(question).await
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.tell(question).await,
        }
    }

    async fn request(&self, id: RequestId, question: McpMessage) -> Result<(), Fault> {
        let withdrawn = CancellationToken::new();
        self.open().insert(id.clone(), withdrawn.clone());
        let answer = withdrawn.run_until_cancelled(self.ask.ask(question)).await;
        self.open().remove(&id);
        let message = match answer {
            // Nobody waits for it.
            None => return Ok(()),
            Some(Ok(McpMessageReply { mcp_response })) => answer_to(id, &mcp_response),
            Some(Err(NoAnswer::Deaf)) => return Err(self.deaf()),
            Some(Err(fault @ (NoAnswer::Failed(_) | NoAnswer::Withdrawn))) => failed(id, fault.to_string()),
        };
        // The connection may have ended meanwhile.
        let _ = self.back.send(message);
        Ok(())
    }

    /// What needs no answer. The host only says that it has it.
    async fn tell(&self, question: McpMessage) -> Result<(), Fault> {
        match self.ask.ask(question).await {
            Err(NoAnswer::Deaf) => Err(self.deaf()),
            Ok(_) | Err(NoAnswer::Failed(_) | NoAnswer::Withdrawn) => Ok(()),
        }
    }

    fn deaf(&self) -> Fault {
        let fault = Fault::Hopeless("the host that runs it has closed its input.".into());
        self.fate.note(fault.clone());
        self.fate.lose();
        fault
    }

    fn withdraw(&self, id: Option<&RequestId>) {
        if let Some(token) = id.and_then(|id| self.open().remove(id)) {
            token.cancel();
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host's reply to a request. Whatever it says, it is the answer to that request.
fn answer_to(id: RequestId, reply: &RawJson) -> ServerJsonRpcMessage {
    let Heard::Messages(messages) = read(reply.as_str().as_bytes()) else {
        return unreadable(id, "it is no JSON-RPC message");
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
        _ => unreadable(id, "it is no JSON-RPC response"),
    }
}
