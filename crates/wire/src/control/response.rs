//! Answers, and the withdrawal of a question.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{TypedRequest, Empty};
use crate::codec::{WireError, parse_body};
use crate::raw::RawJson;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlResponse {
    /// What was answered.
    pub response: Response,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// It worked, and this came of it.
    pub fn success(request_id: impl Into<String>, reply: &impl Serialize) -> Self {
        match RawJson::from_value(reply) {
            Ok(reply) => Self::from_reply(request_id.into(), Some(reply)),
            Err(error) => Self::error(request_id, format!("the answer cannot be written: {error}")),
        }
    }

    /// The same, with the questions that are still open: a host that comes back can ask its person again.
    #[must_use]
    pub fn with_pending_requests(mut self, permissions: Vec<RawJson>, dialogs: Vec<RawJson>) -> Self {
        let (Response::Success { pending_permission_requests, pending_user_dialog_requests, .. }
        | Response::Error { pending_permission_requests, pending_user_dialog_requests, .. }) =
            &mut self.response;
        *pending_permission_requests = Some(permissions);
        *pending_user_dialog_requests = Some(dialogs);
        self
    }

    /// It worked; there is nothing to say. Hosts look for an object even so.
    pub fn ok(request_id: impl Into<String>) -> Self {
        Self::success(request_id, &Empty {})
    }

    /// It did not work.
    pub fn error(request_id: impl Into<String>, error: impl Into<String>) -> Self {
        Self::from_error(request_id.into(), error.into(), None)
    }

    /// No, with a reason for people and a word for programs.
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

    /// The question is unknown here.
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

/// Why a question has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The other side said no.
    #[error("{error}")]
    Rejected {
        /// Why.
        error: String,
        /// Why, as a word.
        code: Option<String>,
    },
    /// The other side said something else than was asked.
    #[error(transparent)]
    InvalidReply(#[from] WireError),
}

impl Response {
    /// The question that is answered.
    pub fn request_id(&self) -> &str {
        match self {
            Self::Success { request_id, .. } | Self::Error { request_id, .. } => request_id,
        }
    }

    /// The answer, read as what the question asks for. No answer, or null, reads like an empty object.
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

/// The answer as it comes in: all fields side by side, because raw JSON cannot be read through a tag.
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
                error: error.unwrap_or_else(|| "the other side gave no reason".into()),
                error_code,
                pending_permission_requests,
                pending_user_dialog_requests,
            },
        })
    }
}

/// Withdraws a question: its answer no longer matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cancel {
    /// The question.
    pub request_id: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::control::{Interrupt, InterruptReply, SetModel, SetModelReply, SetPermissionMode, StopTask};

    #[test]
    fn an_unknown_question_is_refused_in_the_words_that_sdks_look_for() {
        let expected = json!({"response": {
            "subtype": "error", "request_id": "r1",
            "error": "Unsupported control request subtype: dance", "error_code": "unsupported_request",
        }});
        assert_eq!(serde_json::to_value(ControlResponse::unsupported("r1", "dance")).unwrap(), expected);
    }

    #[test]
    fn an_answer_without_a_payload_is_enough_where_nothing_is_asked() {
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
    fn an_answer_in_a_wrong_shape_names_the_field() {
        let response = ControlResponse::success("r1", &json!({"mode": 7})).response;
        let Err(ControlError::InvalidReply(error)) = response.parse_reply::<SetPermissionMode>() else { panic!() };
        assert!(error.to_string().contains("`mode`"), "{error}");
    }

    #[test]
    fn a_refusal_is_told_in_the_other_sides_words() {
        let error = ControlResponse::error("r1", "busy").response.parse_reply::<Interrupt>().unwrap_err();
        assert_eq!(error.to_string(), "busy");
    }
}
