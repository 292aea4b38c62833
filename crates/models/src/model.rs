//! The trait that every provider implements: one attempt at one reply.

use std::sync::Arc;

use futures::stream::BoxStream;
use whimbrel_wire::RawJson;

use crate::downgrade::OptionalPart;
use crate::event::ReplyEvent;
use crate::error::ModelError;
use crate::request::Request;

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// Makes one attempt. The stream ends after [`Event::MessageStop`] or with one fault; dropping it closes the connection.
    /// Trying again is not done here but in [`crate::call`].
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>>;

    /// The provider has refused an optional part of a request for this model; from now on it is best left out.
    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        let _ = (model, part);
    }
}

/// One event of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyItem {
    /// What it means.
    pub event: ReplyEvent,
    /// The event as JSON in the form of the Messages API, when [`Request::raw_events`] asked for it.
    pub raw: Option<RawJson>,
}
