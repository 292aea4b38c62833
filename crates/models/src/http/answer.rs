//! An answer: its head, and its body as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::uri::Authority;
use ::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use futures::stream::{Stream, StreamExt};
use hyper::body::Incoming;

use super::address::Address;
use super::trouble;
use super::unzip::Body;
use crate::fault::{self, Fault};

/// An answer whose head has arrived.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    body: Chunks,
}

impl Response {
    pub(super) fn new(answer: ::http::Response<Incoming>, from: &Address, limit: u64) -> Self {
        let (mut head, body) = answer.into_parts();
        let body = Body::new(body, &mut head.headers);
        let body = Chunks { body, from: from.uri.authority().cloned(), left: limit };
        Self { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// What the status is called.
    pub fn status_text(&self) -> &'static str {
        let status = StatusCode::from_u16(self.status).ok();
        status.and_then(|status| status.canonical_reason()).unwrap_or_default()
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The media type without its parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The provider's id of the request, if it gave one.
    pub fn request_id(&self) -> Option<String> {
        fault::request_id(|name| self.headers.get(name).and_then(|value| value.to_str().ok()))
    }

    /// The body as it arrives.
    pub fn chunks(self) -> Chunks {
        self.body
    }

    /// The body's beginning, up to a limit; what a failing connection had brought until then.
    pub async fn beginning(self, limit: usize) -> Bytes {
        let mut chunks = self.chunks();
        let mut text = BytesMut::new();
        while let Some(Ok(chunk)) = chunks.next().await {
            text.extend_from_slice(&chunk);
            if text.len() >= limit {
                text.truncate(limit);
                break;
            }
        }
        text.freeze()
    }

    /// The whole body; one that is larger than the limit is a fault.
    pub async fn whole(self, limit: usize) -> Result<Bytes, Fault> {
        let mut chunks = self.chunks();
        chunks.left = chunks.left.min(limit as u64);
        let mut text = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            text.extend_from_slice(&chunk?);
        }
        Ok(text.freeze())
    }
}

/// The body of an answer, decompressed, in the pieces it arrives in.
pub struct Chunks {
    body: Body,
    /// Whose answer it is.
    from: Option<Authority>,
    left: u64,
}

impl Chunks {
    /// Reads what is left so that the connection can be used again; gives up soon.
    pub fn finish(mut self) {
        let rest = async move { while let Some(Ok(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(Duration::from_secs(2), rest));
        }
    }

    fn host(&self) -> &str {
        self.from.as_ref().map(Authority::host).unwrap_or_default()
    }
}

impl Stream for Chunks {
    type Item = Result<Bytes, Fault>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let chunk = match ready!(this.body.poll_piece(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(trouble::receiving(this.host(), &*error)))),
            Some(Ok(chunk)) => chunk,
        };
        Poll::Ready(Some(match this.left.checked_sub(chunk.len() as u64) {
            Some(left) => {
                this.left = left;
                Ok(chunk)
            }
            None => Err(trouble::too_large(this.host())),
        }))
    }
}
