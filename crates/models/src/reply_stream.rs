//! An HTTP response as a stream of reply events: SSE bytes are split into events, which a provider's decoder
//! interprets.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::Stream;
use tokio::time::Sleep;

use crate::error::{ModelError, ModelErrorKind};
use crate::event::ReplyEvent;
use crate::http::BodyStream;
use crate::model::ReplyItem;
use crate::sse::SseDecoder;

/// Decodes the server-sent events of one provider.
pub trait EventDecoder: Unpin + Send + 'static {
    /// Decodes one event and passes the resulting items to `out`.
    fn decode(&mut self, name: &str, data: &str, out: &mut impl FnMut(ReplyItem)) -> Result<(), ModelError>;

    /// Handles the end of the stream: passes items that were held back to `out`.
    fn finish(&mut self, out: &mut impl FnMut(ReplyItem)) -> Result<(), ModelError> {
        let _ = out;
        Ok(())
    }
}

/// A reply being received. The stream ends after [`ReplyEvent::MessageStop`] or after one error.
///
/// Bytes that do not complete an event yield a [`ReplyEvent::Ping`], so that a slow reply differs from a dead
/// connection.
pub struct ReplyStream<D> {
    body: Option<BodyStream>,
    sse_decoder: SseDecoder,
    event_decoder: D,
    queue: VecDeque<ReplyItem>,
    error: Option<ModelError>,
    /// Whether any event has been received.
    has_events: bool,
    /// Runs while only the end of the body is outstanding.
    drain_timer: Option<Pin<Box<Sleep>>>,
}

/// Longest wait for the end of a body after its last event.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(20);

impl<D: EventDecoder> ReplyStream<D> {
    /// Starts a reply from a response body and the provider's request id.
    pub fn new(body: BodyStream, event_decoder: D, request_id: Option<String>) -> Self {
        // The response head already shows that the provider is alive.
        let queue = VecDeque::from([ReplyItem { event: ReplyEvent::Accepted { request_id }, raw: None }]);
        Self {
            body: Some(body),
            sse_decoder: SseDecoder::new(),
            event_decoder,
            queue,
            error: None,
            has_events: false,
            drain_timer: None,
        }
    }

    /// Decodes every complete event in the buffer, up to the end of the reply.
    fn read_events(&mut self) -> Result<(), ModelError> {
        while !self.is_complete() {
            let Some(event) = self.sse_decoder.next_event().map_err(event_too_large)? else { break };
            self.has_events = true;
            self.event_decoder.decode(&event.name, &event.data, &mut |item| self.queue.push_back(item))?;
        }
        Ok(())
    }

    /// Decodes what remains in the buffer when the stream ended without a final blank line.
    fn read_remainder(&mut self) -> Result<(), ModelError> {
        let mut out = |item| self.queue.push_back(item);
        if let Some(event) = self.sse_decoder.finish().map_err(event_too_large)? {
            match self.event_decoder.decode(&event.name, &event.data, &mut out) {
                // A truncated event.
                Err(error) if error.kind == ModelErrorKind::Protocol => {}
                outcome => outcome?,
            }
        }
        self.event_decoder.finish(&mut out)?;
        match (self.has_events || !self.queue.is_empty(), self.is_complete()) {
            (_, true) => Ok(()),
            (true, false) => {
                Err(ModelError::new(ModelErrorKind::Cut, "The stream ended before the reply was complete."))
            }
            (false, false) => {
                Err(ModelError::new(ModelErrorKind::NotAStream, "The server's response is empty."))
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.queue.back().is_some_and(|item| item.event == ReplyEvent::MessageStop)
    }

    /// Returns the next queued item; after those, the stored error, once.
    fn next_item(&mut self) -> Option<Result<ReplyItem, ModelError>> {
        if let Some(item) = self.queue.pop_front() {
            return Some(Ok(item));
        }
        let error = self.error.take()?;
        self.body = None;
        Some(Err(error))
    }

    /// Reads the body to its end before the last event is yielded, so that the connection can be reused.
    /// If the end does not arrive within [`DRAIN_TIMEOUT`], a background task drains the rest.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(body) = &mut self.body else { return Poll::Ready(()) };
        while let Poll::Ready(chunk) = Pin::new(&mut *body).poll_next(context) {
            if !matches!(chunk, Some(Ok(_))) {
                self.body = None;
                return Poll::Ready(());
            }
        }
        let timer = self.drain_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(DRAIN_TIMEOUT)));
        ready!(timer.as_mut().poll(context));
        if let Some(body) = self.body.take() {
            body.drain();
        }
        Poll::Ready(())
    }
}

impl<D: EventDecoder> Stream for ReplyStream<D> {
    type Item = Result<ReplyItem, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.queue.front().is_some_and(|item| item.event == ReplyEvent::MessageStop) {
                ready!(this.poll_drain(context));
            }
            if let Some(item) = this.next_item() {
                return Poll::Ready(Some(item));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            let outcome = match ready!(Pin::new(body).poll_next(context)) {
                Some(Ok(chunk)) => {
                    this.sse_decoder.push(&chunk);
                    let outcome = this.read_events();
                    if outcome.is_ok() && this.queue.is_empty() {
                        this.queue.push_back(ReplyItem { event: ReplyEvent::Ping, raw: None });
                    }
                    outcome
                }
                Some(Err(error)) => Err(error),
                None => {
                    this.body = None;
                    this.read_remainder()
                }
            };
            this.error = outcome.err();
        }
    }
}

/// Error for an oversized event. Not retried, because the same reply would come again.
fn event_too_large(error: crate::sse::EventTooLargeError) -> ModelError {
    ModelError {
        should_retry: Some(false),
        ..ModelError::new(ModelErrorKind::Protocol, format!("The reply cannot be read: {error}."))
    }
}
