//! What a host answers when the engine asks.

use serde_json::Value;
use whimbrel_wire::control::{CanUseTool, ControlResponse, Request};
use whimbrel_wire::permission::PermissionResult;

/// An answer to a question of the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum HostResponse {
    /// It worked, and this came of it.
    Success(Value),
    /// It did not work.
    Error(String),
    /// No answer, at least not now.
    NoResponse,
}

/// What answers the engine's questions.
pub(crate) type RequestHandler = Box<dyn FnMut(&Request) -> HostResponse + Send>;

/// A host that was not told what to answer.
pub(crate) fn reject_all() -> RequestHandler {
    Box::new(|request| HostResponse::Error(format!("The test host has no answer to {}.", request.subtype())))
}

/// A host that only answers permission questions.
pub(crate) fn permissions_only(
    mut decide: impl FnMut(&CanUseTool) -> PermissionResult + Send + 'static,
) -> RequestHandler {
    let mut otherwise = reject_all();
    Box::new(move |request| match request {
        Request::CanUseTool(ask) => match serde_json::to_value(decide(ask)) {
            Ok(reply) => HostResponse::Success(reply),
            Err(error) => HostResponse::Error(error.to_string()),
        },
        other => otherwise(other),
    })
}

impl HostResponse {
    /// The answer as it is sent; none for silence.
    pub(crate) fn into_control_response(self, request_id: &str) -> Option<ControlResponse> {
        match self {
            Self::Success(reply) => Some(ControlResponse::success(request_id, &reply)),
            Self::Error(error) => Some(ControlResponse::error(request_id, error)),
            Self::NoResponse => None,
        }
    }
}
