//! Errors as clients get them: a status, a code, a sentence with cause and remedy.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use whimbrel::store::SessionsError;

use crate::store::StoreError;

/// An error of the API.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    detail: Option<Box<Json>>,
    pub(crate) retry_after_s: Option<u64>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// Constructors: one line each.
macro_rules! errors {
    ($($name:ident => $status:ident, $code:literal;)*) => {
        /// The codes of all errors.
        pub(crate) const ERROR_CODES: [&str; [$($code),*].len()] = [$($code),*];

        impl ApiError {
            $(pub(crate) fn $name(message: impl Into<String>) -> Self {
                Self::new(StatusCode::$status, $code, message)
            })*
        }
    };
}

errors! {
    bad_request => BAD_REQUEST, "bad_request";
    not_signed_in => UNAUTHORIZED, "not_signed_in";
    wrong_origin => FORBIDDEN, "wrong_origin";
    not_allowed => FORBIDDEN, "not_allowed";
    outside_roots => FORBIDDEN, "outside_roots";
    not_found => NOT_FOUND, "not_found";
    key_reused => CONFLICT, "key_reused";
    already_given => CONFLICT, "already_given";
    already_answered => CONFLICT, "already_answered";
    session_elsewhere => CONFLICT, "session_elsewhere";
    not_running => CONFLICT, "not_running";
    running => CONFLICT, "running";
    no_suggestion => CONFLICT, "no_suggestion";
    too_large => PAYLOAD_TOO_LARGE, "too_large";
    not_json => UNSUPPORTED_MEDIA_TYPE, "not_json";
    wrong_host => MISDIRECTED_REQUEST, "wrong_host";
    bad_input => UNPROCESSABLE_ENTITY, "bad_input";
    slow_down => TOO_MANY_REQUESTS, "slow_down";
    draining => SERVICE_UNAVAILABLE, "draining";
    store_unavailable => SERVICE_UNAVAILABLE, "store_unavailable";
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), detail: None, retry_after_s: None }
    }

    pub(crate) fn with_detail(self, detail: Json) -> Self {
        Self { detail: Some(Box::new(detail)), ..self }
    }

    pub(crate) fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// There is no session of this id.
    pub(crate) fn no_session(id: &str) -> Self {
        Self::not_found(format!("there is no session {id}. It may have been deleted; list the sessions"))
    }

    pub(crate) fn to_json(&self) -> Json {
        let detail = self.detail.as_deref().cloned().unwrap_or_else(|| json!({}));
        json!({"code": self.code, "message": self.message, "detail": detail})
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::store_unavailable(format!(
            "{error}. Nothing was changed; try again, and see the log of the host"
        ))
    }
}

impl From<SessionsError> for ApiError {
    fn from(error: SessionsError) -> Self {
        match error {
            SessionsError::Find(_) => Self::not_found(format!("{error}. It may have been deleted")),
            error => Self::bad_request(format!("{error}")),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"error": self.to_json()}).to_string();
        let mut response =
            (self.status, [("content-type", "application/json"), ("cache-control", "no-store")], body)
                .into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        response
    }
}
