//! Control responses, and the cancellation of a request.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Empty, TypedRequest};
use crate::error::{WireError, parse_body};
use crate::raw::RawJson;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlResponse {
    /// What was answered.
    pub response: Response,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Response {
    /// It worked.
    Success {
        /// The question.
        request_id: String,
        /// The answer; its type goes by the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<RawJson>,
        /// Permission questions that are still open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pending_permission_requests: Option<Vec<RawJson>>,
        /// Dialogs that are still open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pending_user_dialog_requests: Option<Vec<RawJson>>,
    },
    /// It did not.
    Error {
        /// The question.
        request_id: String,
        /// Why not.
        error: String,
        /// Why not, as a word: `unsupported_request`, ...
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// Permission questions that are still open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pending_permission_requests: Option<Vec<RawJson>>,
        /// Dialogs that are still open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pending_user_dialog_requests: Option<Vec<RawJson>>,
    },
}

impl ControlResponse {
    /// Creates a success response with this reply.
    pub fn success(request_id: impl Into<String>, reply: &impl Serialize) -> Self {
        match RawJson::from_value(reply) {
            Ok(reply) => Self::from_reply(request_id.into(), Some(reply)),
            Err(error) => Self::error(request_id, format!("the reply cannot be serialized: {error}")),
        }
    }

    /// Adds the requests that are still pending, so that a host that reconnects can show them again.
    #[must_use]
    pub fn with_pending_requests(mut self, permissions: Vec<RawJson>, dialogs: Vec<RawJson>) -> Self {
        let (Response::Success { pending_permission_requests, pending_user_dialog_requests, .. }
        | Response::Error { pending_permission_requests, pending_user_dialog_requests, .. }) =
            &mut self.response;
        *pending_permission_requests = Some(permissions);
        *pending_user_dialog_requests = Some(dialogs);
        self
    }

    /// Creates a success response with an empty object, which hosts expect even if there is nothing to report.
    pub fn ok(request_id: impl Into<String>) -> Self {
        Self::success(request_id, &Empty {})
    }

    /// Creates an error response.
    pub fn error(request_id: impl Into<String>, error: impl Into<String>) -> Self {
        Self::from_error(request_id.into(), error.into(), None)
    }

    /// Creates an error response with a text for users and a code for programs.
    pub fn error_with_code(
        request_id: impl Into<String>,
        error: impl Into<String>,
        code: impl Into<String>,
    ) -> Self {
        Self {
            response: Response::Error {
                request_id: request_id.into(),
                error: error.into(),
                error_code: Some(code.into()),
                pending_permission_requests: None,
                pending_user_dialog_requests: None,
            },
        }
    }

    /// Creates the error response to a request of an unknown subtype.
    pub fn unsupported(request_id: impl Into<String>, subtype: &str) -> Self {
        let error = format!("Unsupported control request subtype: {subtype}");
        Self::from_error(request_id.into(), error, Some("unsupported_request".into()))
    }

    fn from_reply(request_id: String, response: Option<RawJson>) -> Self {
        let (pending_permission_requests, pending_user_dialog_requests) = (None, None);
        Self {
            response: Response::Success {
                request_id,
                response,
                pending_permission_requests,
                pending_user_dialog_requests,
            },
        }
    }

    fn from_error(request_id: String, error: String, error_code: Option<String>) -> Self {
        let (pending_permission_requests, pending_user_dialog_requests) = (None, None);
        Self {
            response: Response::Error {
                request_id,
                error,
                error_code,
                pending_permission_requests,
                pending_user_dialog_requests,
            },
        }
    }
}

/// Reason why a request has no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The other side answered with an error.
    #[error("{error}")]
    Rejected {
        /// The error text.
        error: String,
        /// The error code.
        code: Option<String>,
    },
    /// The reply does not have the type that the request asks for.
    #[error(transparent)]
    InvalidReply(#[from] WireError),
}

impl Response {
    /// Id of the request that is answered.
    pub fn request_id(&self) -> &str {
        match self {
            Self::Success { request_id, .. } | Self::Error { request_id, .. } => request_id,
        }
    }

    /// Parses the reply as the type that the request asks for. A missing or null reply counts as an empty object.
    pub fn parse_reply<A: TypedRequest>(&self) -> Result<A::Reply, ControlError> {
        match self {
            Self::Success { response, .. } => {
                let json =
                    response.as_ref().map(RawJson::as_str).filter(|json| *json != "null").unwrap_or("{}");
                Ok(parse_body(&format!("control_response/{}", A::SUBTYPE), json)?)
            }
            Self::Error { error, error_code, .. } => {
                Err(ControlError::Rejected { error: error.clone(), code: error_code.clone() })
            }
        }
    }
}

/// A response as received: all fields in one struct, because raw JSON cannot be read through a serde tag.
#[derive(Deserialize)]
struct RawResponse {
    subtype: ResponseKind,
    request_id: String,
    response: Option<RawJson>,
    #[serde(default)]
    error: Option<String>,
    error_code: Option<String>,
    pending_permission_requests: Option<Vec<RawJson>>,
    pending_user_dialog_requests: Option<Vec<RawJson>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResponseKind {
    Success,
    Error,
}

impl<'de> Deserialize<'de> for Response {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawResponse {
            subtype,
            request_id,
            response,
            error,
            error_code,
            pending_permission_requests,
            pending_user_dialog_requests,
        } = RawResponse::deserialize(deserializer)?;
        Ok(match subtype {
            ResponseKind::Success => Self::Success {
                request_id,
                response,
                pending_permission_requests,
                pending_user_dialog_requests,
            },
            ResponseKind::Error => Self::Error {
                request_id,
                error: error.unwrap_or_else(|| "the error response has no text".into()),
                error_code,
                pending_permission_requests,
                pending_user_dialog_requests,
            },
        })
    }
}

/// Withdraws a question: its answer no longer matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancel {
    /// The question.
    pub request_id: String,
    /// Why it was withdrawn; only for hosts that asked to be told.
    #[serde(default, skip_serializing_if = "CancelReason::is_unspecified")]
    pub reason: CancelReason,
}

/// Why a question of the engine was withdrawn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelReason {
    /// The turn was interrupted.
    Interrupted,
    /// A hook answered first.
    AnsweredByHook,
    /// A change of the permission rules or of the mode has decided it.
    RulesChanged,
    /// There was no answer in time.
    TimedOut,
    /// The session has ended.
    SessionEnded,
    /// The engine does not say.
    #[default]
    Unspecified,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

impl CancelReason {
    fn is_unspecified(&self) -> bool {
        *self == Self::Unspecified
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "the turn was interrupted",
            Self::AnsweredByHook => "a hook answered first",
            Self::RulesChanged => "a change of the permission rules or of the mode decided it",
            Self::TimedOut => "there was no answer in time",
            Self::SessionEnded => "the session has ended",
            Self::Unspecified => "the engine does not say why",
            Self::Other(reason) => reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::control::{Interrupt, InterruptReply, SetModel, SetModelReply, SetPermissionMode, StopTask};

    #[test]
    fn unknown_request_gets_the_error_that_sdks_expect() {
        let expected = json!({"response": {
            "subtype": "error", "request_id": "r1",
            "error": "Unsupported control request subtype: dance", "error_code": "unsupported_request",
        }});
        assert_eq!(serde_json::to_value(ControlResponse::unsupported("r1", "dance")).unwrap(), expected);
    }

    #[test]
    fn missing_payload_reads_as_an_empty_reply() {
        let done = ControlResponse::ok("r1");
        let expected = json!({"response": {"subtype": "success", "request_id": "r1", "response": {}}});
        assert_eq!(serde_json::to_value(&done).unwrap(), expected);
        let bare = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1"}}"#;
        let Ok(crate::Frame::ControlResponse(bare)) = crate::decode(bare) else { panic!() };
        let response = &bare.response;
        assert_eq!(response.request_id(), "r1");
        assert_eq!(response.parse_reply::<StopTask>(), Ok(Empty {}));
        assert_eq!(response.parse_reply::<Interrupt>(), Ok(InterruptReply::default()));
        assert_eq!(response.parse_reply::<SetModel>(), Ok(SetModelReply::default()));
    }

    #[test]
    fn invalid_reply_names_the_field() {
        let response = ControlResponse::success("r1", &json!({"mode": 7})).response;
        let Err(ControlError::InvalidReply(error)) = response.parse_reply::<SetPermissionMode>() else {
            panic!()
        };
        assert!(error.to_string().contains("`mode`"), "{error}");
    }

    #[test]
    fn error_text_of_the_other_side_is_kept() {
        let error = ControlResponse::error("r1", "busy").response.parse_reply::<Interrupt>().unwrap_err();
        assert_eq!(error.to_string(), "busy");
    }
}
