//! An answer as it arrives: bytes to events, one after the other.

use std::collections::VecDeque;

use futures::stream::{self, Stream, StreamExt};

use super::stream::Translation;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::http::Chunks;
use crate::sse::Decoder;

/// An answer on its way.
pub(super) struct Answer {
    /// The rest of the body; none once it is of no more use.
    body: Option<Chunks>,
    form: Form,
    translation: Translation,
    /// What has been read and not yet passed on. A fault is the last.
    ready: VecDeque<Result<Event, Fault>>,
}

/// What kind of answer it is. Its first character tells; the header that should tell is often wrong.
enum Form {
    Unknown,
    Events(Decoder),
    /// One JSON value, from a server that does not stream.
    Whole(Vec<u8>),
}

impl Answer {
    pub(super) fn new(body: Chunks, translation: Translation) -> Self {
        Self { body: Some(body), form: Form::Unknown, translation, ready: VecDeque::new() }
    }

    /// The events of the reply. A fault ends them.
    pub(super) fn events(self) -> impl Stream<Item = Result<Event, Fault>> {
        stream::unfold(self, |mut answer| async move { answer.next().await.map(|event| (event, answer)) })
    }

    async fn next(&mut self) -> Option<Result<Event, Fault>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let piece = self.body.as_mut()?.next().await;
            let read = match piece {
                Some(Ok(bytes)) => self.take(&bytes),
                // A connection that breaks after all has been said breaks too late to matter.
                Some(Err(fault)) if !self.translation.is_settled() => Err(fault),
                Some(Err(_)) | None => self.end(),
            };
            if let Err(fault) = read {
                self.body = None;
                self.ready.push_back(Err(fault));
            } else if self.translation.is_complete()
                && let Some(rest) = self.body.take()
            {
                rest.finish();
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if matches!(self.form, Form::Unknown) {
            let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Ok(()) };
            self.form = match first {
                b'{' | b'[' => Form::Whole(Vec::new()),
                b'<' => return Err(not_a_stream(bytes)),
                _ => Form::Events(Decoder::new()),
            };
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Events(decoder) => {
                decoder.push(bytes);
                self.translate()
            }
        }
    }

    /// Translates the events that have arrived whole.
    fn translate(&mut self) -> Result<(), Fault> {
        let Form::Events(decoder) = &mut self.form else { return Ok(()) };
        while let Some(event) = decoder.next_event().map_err(|error| Fault::new(FaultKind::Protocol, error.to_string()))? {
            if !event.data.trim().is_empty() {
                self.ready.extend(self.translation.take(&event.data)?.into_iter().map(Ok));
            }
        }
        Ok(())
    }

    /// The body is over.
    fn end(&mut self) -> Result<(), Fault> {
        self.body = None;
        let events = match &mut self.form {
            Form::Whole(body) => self.translation.take_whole(&String::from_utf8_lossy(body))?,
            Form::Events(decoder) => {
                // The last event may lack the blank line after it.
                decoder.push(b"\n\n\n");
                self.translate()?;
                self.translation.end()?
            }
            Form::Unknown => self.translation.end()?,
        };
        self.ready.extend(events.into_iter().map(Ok));
        Ok(())
    }
}

fn not_a_stream(bytes: &[u8]) -> Fault {
    let start: String = String::from_utf8_lossy(bytes).trim_start().chars().take(80).collect();
    Fault::new(FaultKind::NotAStream, format!("The model's endpoint answered with something else: {start}"))
}
