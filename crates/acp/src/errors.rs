//! Errors of the protocol: a code, and a sentence that the editor shows.

use agent_client_protocol::{Error, ErrorCode};
use whimbrel::OpenError;
use whimbrel::store::SessionsError;

/// A request with an invalid parameter.
pub(crate) fn invalid_params(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, message)
}

/// Something that failed here.
pub(crate) fn internal_error(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, message)
}

/// A request that makes no sense now.
pub(crate) fn invalid_request(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::INVALID_REQUEST, message)
}

/// A session that is not open, or is not stored.
pub(crate) fn session_not_found(session: &str) -> Error {
    let data = serde_json::json!({"sessionId": session});
    Error::new(ErrorCode::RESOURCE_NOT_FOUND, format!("there is no session {session}")).data(data)
}

/// Why a session was not opened.
pub(crate) fn from_open_error(error: &OpenError) -> Error {
    match error {
        OpenError::NoSuchSession { session } => session_not_found(session),
        OpenError::NoSuchDirectory(_) | OpenError::InvalidOption { .. } => invalid_params(error.to_string()),
        _ => internal_error(error.to_string()),
    }
}

/// An error of the SDK.
pub(crate) fn from_sdk_error(error: &whimbrel::Error) -> Error {
    internal_error(error.to_string())
}

/// An error of the stored sessions.
pub(crate) fn from_sessions_error(error: &SessionsError) -> Error {
    internal_error(error.to_string())
}
