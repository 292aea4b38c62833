//! Limits the size of a single event in a byte stream: an endless event ends the stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::Stream;
use whimbrel_models::{ModelError, ModelErrorKind};

/// Passes bytes on until an event exceeds the limit.
pub(super) struct EventLimit<S> {
    inner: S,
    limit: usize,
    /// Bytes since the last empty line.
    event_bytes: usize,
    /// True right after a line break.
    line_ended: bool,
    failed: bool,
}

impl<S> EventLimit<S> {
    pub(super) fn new(inner: S, limit: usize) -> Self {
        Self { inner, limit, event_bytes: 0, line_ended: true, failed: false }
    }

    /// Counts bytes; returns false if an event exceeds the limit.
    fn count_bytes(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            self.event_bytes += 1;
            match byte {
                b'\n' if self.line_ended => self.event_bytes = 0,
                b'\n' => self.line_ended = true,
                b'\r' => {}
                _ => self.line_ended = false,
            }
            if self.event_bytes > self.limit {
                return false;
            }
        }
        true
    }
}

impl<S: Stream<Item = Result<Bytes, ModelError>> + Unpin> Stream for EventLimit<S> {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.failed {
            return Poll::Ready(None);
        }
        let next = Pin::new(&mut self.inner).poll_next(context);
        match next {
            Poll::Ready(Some(Ok(bytes))) if !self.count_bytes(&bytes) => {
                self.failed = true;
                let text = format!("an event exceeds {} MB.", self.limit >> 20);
                Poll::Ready(Some(Err(ModelError::new(ModelErrorKind::Protocol, text))))
            }
            next => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn small_events_pass_and_an_endless_one_fails() {
        let pieces = |texts: &[&'static str]| {
            stream::iter(texts.iter().map(|text| Ok(Bytes::from_static(text.as_bytes()))).collect::<Vec<_>>())
        };
        for (name, texts, passed) in [
            ("events", &["data: a\n\n", "data: b\r\n\r\n", "data: c\n\n"][..], 3),
            ("split", &["data:", " a\n", "\ndata: b\n\n"], 3),
            ("too large", &["data: a\n\n", "data: 123456789", "0\n\n", "data: b\n\n"], 2),
        ] {
            let results: Vec<_> = EventLimit::new(pieces(texts), 15).collect().await;
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), passed, "{name}: {results:?}");
            assert_eq!(results.last().unwrap().is_ok(), passed == texts.len(), "{name}");
        }
    }
}
