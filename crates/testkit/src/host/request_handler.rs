//! Responses of the test host to control requests of the engine.

use serde_json::Value;
use whimbrel_wire::control::{CanUseTool, ControlResponse, Request};
use whimbrel_wire::permission::PermissionResult;

/// A response to a control request.
#[derive(Debug, Clone, PartialEq)]
pub enum HostResponse {
    /// Success, with this response body.
    Success(Value),
    /// An error.
    Error(String),
    /// No response; the test may send one later.
    NoResponse,
}

/// Responds to the engine's control requests.
pub(crate) type RequestHandler = Box<dyn FnMut(&Request) -> HostResponse + Send>;

/// Rejects every request; the default.
pub(crate) fn reject_all() -> RequestHandler {
    Box::new(|request| HostResponse::Error(format!("The test host does not handle {}.", request.subtype())))
}

/// Responds to permission requests and rejects all others.
pub(crate) fn permissions_only(
    mut decide: impl FnMut(&CanUseTool) -> PermissionResult + Send + 'static,
) -> RequestHandler {
    let mut reject = reject_all();
    Box::new(move |request| match request {
        Request::CanUseTool(permission) => match serde_json::to_value(decide(permission)) {
            Ok(reply) => HostResponse::Success(reply),
            Err(error) => HostResponse::Error(error.to_string()),
        },
        other => reject(other),
    })
}

impl HostResponse {
    /// Converts to the frame; `None` for [`Self::NoResponse`].
    pub(crate) fn into_control_response(self, request_id: &str) -> Option<ControlResponse> {
        match self {
            Self::Success(reply) => Some(ControlResponse::success(request_id, &reply)),
            Self::Error(error) => Some(ControlResponse::error(request_id, error)),
            Self::NoResponse => None,
        }
    }
}
