//! HTTP responses: the head, and the body as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::uri::Authority;
use ::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use futures::stream::{Stream, StreamExt};
use hyper::body::Incoming;

use super::error;
use super::gzip::ResponseBody;
use super::request_url::RequestUrl;
use crate::error::{ModelError, parse_request_id};

/// A response whose head has arrived.
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    body: BodyStream,
}

impl Response {
    pub(super) fn new(response: ::http::Response<Incoming>, from: &RequestUrl, limit: u64) -> Self {
        let (mut parts, body) = response.into_parts();
        let body = ResponseBody::new(body, &mut parts.headers);
        let body = BodyStream { body, authority: from.uri.authority().cloned(), remaining: limit };
        Self { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// The canonical reason phrase of the status.
    pub fn status_text(&self) -> &'static str {
        let status = StatusCode::from_u16(self.status).ok();
        status.and_then(|status| status.canonical_reason()).unwrap_or_default()
    }

    /// A header value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The media type without parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The provider's id of the request, if the response has one.
    pub fn request_id(&self) -> Option<String> {
        parse_request_id(|name| self.headers.get(name).and_then(|value| value.to_str().ok()))
    }

    /// Returns the body as a stream.
    pub fn into_body(self) -> BodyStream {
        self.body
    }

    /// Reads at most `limit` bytes of the body; a connection error ends it early.
    pub async fn read_prefix(self, limit: usize) -> Bytes {
        let mut body = self.into_body();
        let mut bytes = BytesMut::new();
        while let Some(Ok(chunk)) = body.next().await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() >= limit {
                bytes.truncate(limit);
                break;
            }
        }
        bytes.freeze()
    }

    /// Reads the whole body; a body larger than `limit` is an error.
    pub async fn read_all(self, limit: usize) -> Result<Bytes, ModelError> {
        let mut body = self.into_body();
        body.remaining = body.remaining.min(limit as u64);
        let mut bytes = BytesMut::new();
        while let Some(chunk) = body.next().await {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes.freeze())
    }
}

/// The decompressed body of a response, in the chunks in which it arrives.
pub struct BodyStream {
    body: ResponseBody,
    /// The server, for error messages.
    authority: Option<Authority>,
    remaining: u64,
}

impl BodyStream {
    /// Reads the rest in a background task, for at most two seconds, so that the connection can be reused.
    pub fn drain(mut self) {
        let rest = async move { while let Some(Ok(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(Duration::from_secs(2), rest));
        }
    }

    fn host(&self) -> &str {
        self.authority.as_ref().map(Authority::host).unwrap_or_default()
    }
}

impl Stream for BodyStream {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let chunk = match ready!(this.body.poll_chunk(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error::receive_error(this.host(), &*error)))),
            Some(Ok(chunk)) => chunk,
        };
        Poll::Ready(Some(match this.remaining.checked_sub(chunk.len() as u64) {
            Some(remaining) => {
                this.remaining = remaining;
                Ok(chunk)
            }
            None => Err(error::response_too_large(this.host())),
        }))
    }
}
