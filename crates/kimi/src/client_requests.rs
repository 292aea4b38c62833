//! Requests to the client that have no answer yet.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use whimbrel::{PermissionResult, ToolOutput};

use crate::callbacks::ToolCall;

/// A request to the client.
pub(crate) enum ClientRequest {
    /// May this call run?
    Approval { action: String, is_subagent: bool, answer: oneshot::Sender<PermissionResult> },
    /// Questions of the model. The input of the call becomes the answer.
    Question { input: Map<String, Value>, answer: oneshot::Sender<PermissionResult> },
    /// Is the plan approved?
    Plan { is_subagent: bool, answer: oneshot::Sender<PermissionResult> },
    /// A tool of the host runs.
    Tool { call: ToolCall, answer: oneshot::Sender<ToolOutput> },
    /// One answer of a batch of hooks.
    Hook { batch: u64 },
}

impl ClientRequest {
    /// Whether the engine no longer waits for the answer.
    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Approval { answer, .. } | Self::Question { answer, .. } | Self::Plan { answer, .. } => {
                answer.is_closed()
            }
            Self::Tool { answer, .. } => answer.is_closed(),
            // The batch knows.
            Self::Hook { .. } => false,
        }
    }
}

/// All open requests, by their id on the wire.
#[derive(Default)]
pub(crate) struct ClientRequests(HashMap<String, ClientRequest>);

impl ClientRequests {
    pub(crate) fn insert(&mut self, id: String, request: ClientRequest) {
        self.0.insert(id, request);
    }

    pub(crate) fn take(&mut self, id: &str) -> Option<ClientRequest> {
        self.0.remove(id)
    }

    /// Takes the approvals of an action, which the client has approved for the session.
    pub(crate) fn take_approvals(&mut self, action: &str) -> Vec<(String, ClientRequest)> {
        self.take_if(
            |request| matches!(request, ClientRequest::Approval { action: other, .. } if other == action),
        )
    }

    /// Takes the requests that the engine has withdrawn.
    pub(crate) fn take_withdrawn(&mut self) -> Vec<(String, ClientRequest)> {
        self.take_if(ClientRequest::is_withdrawn)
    }

    fn take_if(&mut self, matches: impl Fn(&ClientRequest) -> bool) -> Vec<(String, ClientRequest)> {
        let mut ids: Vec<String> =
            self.0.iter().filter(|(_, request)| matches(request)).map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids.into_iter().filter_map(|id| self.0.remove_entry(&id)).collect()
    }
}
