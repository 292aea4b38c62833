//! What a host answers when the engine asks.

use serde_json::Value;
use whimbrel_wire::control::{CanUseTool, ControlResponse, Request};
use whimbrel_wire::permission::PermissionResult;

/// An answer to a question of the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It worked, and this came of it.
    Reply(Value),
    /// It did not work.
    Error(String),
    /// No answer, at least not now.
    Silence,
}

/// What answers the engine's questions.
pub(crate) type Answers = Box<dyn FnMut(&Request) -> Answer + Send>;

/// A host that was not told what to answer.
pub(crate) fn none() -> Answers {
    Box::new(|request| Answer::Error(format!("The test host has no answer to {}.", request.subtype())))
}

/// A host that only answers permission questions.
pub(crate) fn permissions(
    mut decide: impl FnMut(&CanUseTool) -> PermissionResult + Send + 'static,
) -> Answers {
    let mut otherwise = none();
    Box::new(move |request| match request {
        Request::CanUseTool(ask) => match serde_json::to_value(decide(ask)) {
            Ok(reply) => Answer::Reply(reply),
            Err(error) => Answer::Error(error.to_string()),
        },
        other => otherwise(other),
    })
}

impl Answer {
    /// The answer as it is sent; none for silence.
    pub(crate) fn response(self, request_id: &str) -> Option<ControlResponse> {
        match self {
            Self::Reply(reply) => Some(ControlResponse::success(request_id, &reply)),
            Self::Error(error) => Some(ControlResponse::error(request_id, error)),
            Self::Silence => None,
        }
    }
}
