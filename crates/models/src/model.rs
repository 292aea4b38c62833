//! The trait that every provider implements, and what their implementations share.

use std::sync::Arc;

use futures::stream::BoxStream;
use whimbrel_wire::RawJson;

use crate::error::ModelError;
use crate::event::ReplyEvent;
use crate::request::{OptionalPart, Request};

/// A language model that replies to requests.
pub trait Model: Send + Sync {
    /// Makes one attempt at a reply. The stream ends after [`ReplyEvent::MessageStop`] or after one error; dropping it
    /// closes the connection. Retries are not made here but in [`crate::model_call`].
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>>;

    /// Records that the provider rejected an optional part of a request for this model, so that later requests omit it.
    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        let _ = (model, part);
    }
}

/// One item of a reply stream.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyItem {
    /// The decoded event.
    pub event: ReplyEvent,
    /// The event as JSON in the form of the Messages API, when [`Request::raw_events`] asked for it.
    pub raw: Option<RawJson>,
}

/// Whether the JSON of an event is kept beside the decoded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawEvents {
    Keep,
    Drop,
}

impl RawEvents {
    /// Returns the choice of a request.
    pub fn for_request(request: &Request) -> Self {
        if request.raw_events { Self::Keep } else { Self::Drop }
    }

    /// Wraps an event that has no JSON text of its own.
    pub(crate) fn wrap(self, event: ReplyEvent) -> ReplyItem {
        let raw = if self == Self::Keep { event.to_raw_json() } else { None };
        ReplyItem { event, raw }
    }
}
