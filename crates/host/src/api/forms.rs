//! Bodies, parameters and answers in the form that all resources share.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::access::SignedIn;
use crate::error::{ApiError, ApiResult};

/// Size of a JSON body.
pub(crate) const MAX_BODY: usize = 1024 * 1024;

/// Entries of a list, if the client does not say.
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;

/// A JSON body. Unknown fields are refused by its type.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let content_type = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::not_json("send the body with `Content-Type: application/json`"));
        }
        let body = read_body(request.into_body(), MAX_BODY).await?;
        parse_json(&body).map(Self)
    }
}

/// Parses JSON; the error says where it is wrong.
pub(crate) fn parse_json<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        ApiError::bad_request(format!("the body is wrong{place}: {}", error.inner()))
    })?;
    reader.end().map_err(|error| ApiError::bad_request(format!("the body is wrong: {error}")))?;
    Ok(parsed)
}

/// Reads a body up to a limit.
pub(crate) async fn read_body(body: Body, limit: usize) -> ApiResult<bytes::Bytes> {
    let too_large = || ApiError::too_large(format!("the body is larger than {} MiB", limit / 1024 / 1024));
    axum::body::to_bytes(body, limit).await.map_err(|_| too_large())
}

/// Parameters of the address. Unknown ones are refused by their type.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(error) => Err(ApiError::bad_request(format!("the address is wrong: {}", error.body_text()))),
        }
    }
}

/// Parts of the path.
pub(crate) struct PathParts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(found)) => Ok(Self(found)),
            Err(error) => Err(ApiError::bad_request(format!("the path is wrong: {}", error.body_text()))),
        }
    }
}

/// A request for a WebSocket.
pub(crate) struct Upgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match WebSocketUpgrade::from_request_parts(parts, state).await {
            Ok(upgrade) => Ok(Self(upgrade)),
            Err(error) => {
                let text = error.body_text().to_lowercase();
                Err(ApiError::bad_request(format!(
                    "this path is a WebSocket: {text}. Open it with a WebSocket client"
                )))
            }
        }
    }
}

/// The person of a request.
pub(crate) struct Me(pub(crate) SignedIn);

impl<S: Send + Sync> FromRequestParts<S> for Me {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let signed_in = parts.extensions.get::<SignedIn>().cloned();
        signed_in.map(Self).ok_or_else(|| ApiError::not_signed_in("sign in first"))
    }
}

/// A JSON answer.
pub(crate) fn json_response(status: StatusCode, body: &Json) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

pub(crate) fn ok(body: &Json) -> Response {
    json_response(StatusCode::OK, body)
}

/// The limit of a list.
pub(crate) fn check_limit(limit: Option<i64>) -> ApiResult<i64> {
    match limit {
        None => Ok(DEFAULT_LIMIT),
        Some(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::bad_request(format!("`limit` must be 1 to {MAX_LIMIT}"))),
    }
}

/// A place in a list: a time and an id.
pub(crate) fn parse_cursor(cursor: Option<&str>) -> ApiResult<Option<(i64, String)>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let parsed = cursor.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    parsed.map(Some).ok_or_else(|| ApiError::bad_request("`cursor` must be the `next` of an earlier answer"))
}

pub(crate) fn to_cursor(at: i64, id: &str) -> Json {
    format!("{at}.{id}").into()
}
