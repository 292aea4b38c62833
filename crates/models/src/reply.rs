//! An HTTP answer as a stream of events: bytes are cut into events, a dialect reads them, and they go out one by one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::Stream;
use tokio::time::Sleep;

use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::http::Chunks;
use crate::model::Delta;
use crate::sse::Decoder;

/// How the events of a provider are read.
pub trait Dialect: Unpin + Send + 'static {
    /// Reads one event and gives what it means, in one or several deltas.
    fn read(&mut self, name: &str, data: &str, out: &mut impl FnMut(Delta)) -> Result<(), Fault>;

    /// The stream has ended: gives what was held back.
    fn finish(&mut self, out: &mut impl FnMut(Delta)) -> Result<(), Fault> {
        let _ = out;
        Ok(())
    }
}

/// A reply that is being received. It ends after [`Event::MessageStop`] or with one fault.
///
/// Bytes that bring no event yet show as an [`Event::Ping`], so that a slow reply can be told from a dead one.
pub struct Reply<D> {
    chunks: Option<Chunks>,
    decoder: Decoder,
    dialect: D,
    ready: VecDeque<Delta>,
    fault: Option<Fault>,
    /// Whether any event has come.
    spoken: bool,
    /// Runs while only the end of the body is missing.
    linger: Option<Pin<Box<Sleep>>>,
}

/// How long the end of a body may come after its last event.
const LINGER: Duration = Duration::from_millis(20);

impl<D: Dialect> Reply<D> {
    /// A reply whose body begins here, to a request with this id.
    pub fn new(chunks: Chunks, dialect: D, request_id: Option<String>) -> Self {
        // The head of an answer is a sign of life too.
        let ready = VecDeque::from([Delta { event: Event::Accepted { request_id }, raw: None }]);
        Self {
            chunks: Some(chunks),
            decoder: Decoder::new(),
            dialect,
            ready,
            fault: None,
            spoken: false,
            linger: None,
        }
    }

    /// Reads every event that has arrived whole, up to the end of the reply.
    fn read_events(&mut self) -> Result<(), Fault> {
        while !self.is_complete() {
            let Some(event) = self.decoder.next_event().map_err(too_long)? else { break };
            self.spoken = true;
            self.dialect.read(&event.name, &event.data, &mut |delta| self.ready.push_back(delta))?;
        }
        Ok(())
    }

    /// Reads what a stream left behind that ended without a last word.
    fn read_rest(&mut self) -> Result<(), Fault> {
        let mut out = |delta| self.ready.push_back(delta);
        if let Some(event) = self.decoder.finish().map_err(too_long)? {
            match self.dialect.read(&event.name, &event.data, &mut out) {
                // Half an event.
                Err(fault) if fault.kind == FaultKind::Protocol => {}
                outcome => outcome?,
            }
        }
        self.dialect.finish(&mut out)?;
        match (self.spoken || !self.ready.is_empty(), self.is_complete()) {
            (_, true) => Ok(()),
            (true, false) => Err(Fault::new(FaultKind::Cut, "The stream ended before the reply did.")),
            (false, false) => Err(Fault::new(FaultKind::NotAStream, "The server's answer is empty.")),
        }
    }

    fn is_complete(&self) -> bool {
        self.ready.back().is_some_and(|delta| delta.event == Event::MessageStop)
    }

    /// Hands the next event out.
    fn hand_out(&mut self) -> Option<Result<Delta, Fault>> {
        if let Some(delta) = self.ready.pop_front() {
            return Some(Ok(delta));
        }
        let fault = self.fault.take()?;
        self.chunks = None;
        Some(Err(fault))
    }

    /// Before the last event goes out the body is read to its end, so that the next request finds the connection free.
    /// The end comes with the last event or never: whoever dawdles is left to be drained aside.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(chunks) = &mut self.chunks else { return Poll::Ready(()) };
        while let Poll::Ready(chunk) = Pin::new(&mut *chunks).poll_next(context) {
            if !matches!(chunk, Some(Ok(_))) {
                self.chunks = None;
                return Poll::Ready(());
            }
        }
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        ready!(linger.as_mut().poll(context));
        if let Some(chunks) = self.chunks.take() {
            chunks.finish();
        }
        Poll::Ready(())
    }
}

impl<D: Dialect> Stream for Reply<D> {
    type Item = Result<Delta, Fault>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.ready.front().is_some_and(|delta| delta.event == Event::MessageStop) {
                ready!(this.poll_end(context));
            }
            if let Some(item) = this.hand_out() {
                return Poll::Ready(Some(item));
            }
            let Some(chunks) = &mut this.chunks else { return Poll::Ready(None) };
            let outcome = match ready!(Pin::new(chunks).poll_next(context)) {
                Some(Ok(chunk)) => {
                    this.decoder.push(&chunk);
                    let outcome = this.read_events();
                    if outcome.is_ok() && this.ready.is_empty() {
                        this.ready.push_back(Delta { event: Event::Ping, raw: None });
                    }
                    outcome
                }
                Some(Err(fault)) => Err(fault),
                None => {
                    this.chunks = None;
                    this.read_rest()
                }
            };
            this.fault = outcome.err();
        }
    }
}

/// Trying again would only bring the same again.
fn too_long(error: crate::sse::TooLong) -> Fault {
    Fault {
        should_retry: Some(false),
        ..Fault::new(FaultKind::Protocol, format!("The reply cannot be read: {error}."))
    }
}
