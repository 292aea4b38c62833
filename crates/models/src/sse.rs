//! Decoder for server-sent events, pure: chunks split anywhere go in, complete events come out.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};

/// Maximum size of one event in bytes.
pub const EVENT_LIMIT: usize = 32 << 20;

/// Buffer capacity above which an empty buffer is freed.
const MAX_KEPT_CAPACITY: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event. Invalid UTF-8 is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; often empty.
    pub name: Cow<'a, str>,
    /// The `data` lines, joined by newlines.
    pub data: Cow<'a, str>,
}

/// An event exceeds [`EVENT_LIMIT`]. The decoder cannot continue after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {} MB", EVENT_LIMIT >> 20)]
pub struct EventTooLargeError;

/// Splits a byte stream into events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    buffer: Vec<u8>,
    /// Start of the current event.
    start: usize,
    /// Start of the current line.
    line: usize,
    /// Position up to which the current line has been searched for its end.
    searched: usize,
    /// Whether the previous line ended in a carriage return, so that a newline here belongs to it.
    after_carriage_return: bool,
    /// Whether the first line, which may have a byte order mark, has been read.
    has_started: bool,
    /// Whether the current event has been returned.
    yielded: bool,
    name: Range<usize>,
    data: EventData,
}

/// Data of the current event. A single line is referenced in the buffer; several lines are joined.
#[derive(Debug, Default)]
enum EventData {
    #[default]
    None,
    One(Range<usize>),
    Joined(Vec<u8>),
}

impl SseDecoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.discard_consumed();
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next event, if it is complete.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLargeError> {
        Ok(if self.advance()? { Some(self.event()) } else { None })
    }

    /// Returns the last event of a stream that ended without a blank line.
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLargeError> {
        // The first newline may belong to a carriage return, the second ends the line, the third the event.
        self.push(b"\n\n\n");
        self.next_event()
    }

    /// Reads lines up to the end of an event; false if more bytes are needed.
    fn advance(&mut self) -> Result<bool, EventTooLargeError> {
        if self.yielded {
            self.start_event();
        }
        loop {
            let found = memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
            let end = found.map_or(self.buffer.len(), |at| self.searched + at);
            self.searched = end;
            if end - self.start > EVENT_LIMIT {
                return Err(EventTooLargeError);
            }
            if found.is_none() {
                return Ok(false);
            }
            if self.process_line(end) {
                self.yielded = true;
                return Ok(true);
            }
        }
    }

    /// Processes the line that ends at `end`; true if it completes an event.
    fn process_line(&mut self, end: usize) -> bool {
        let ending = self.buffer[end];
        let mut from = std::mem::replace(&mut self.line, end + 1);
        self.searched = end + 1;
        let second_half =
            std::mem::replace(&mut self.after_carriage_return, ending == b'\r') && ending == b'\n';
        if second_half && from == end {
            return false;
        }
        if !std::mem::replace(&mut self.has_started, true)
            && self.buffer[from..end].starts_with(BYTE_ORDER_MARK)
        {
            from += BYTE_ORDER_MARK.len();
        }
        if from < end {
            self.process_field(from, end);
        } else if !matches!(self.data, EventData::None) {
            return true;
        } else {
            self.name = 0..0;
        }
        if matches!(self.data, EventData::None) && self.name.is_empty() {
            self.start = self.line;
        }
        false
    }

    fn process_field(&mut self, from: usize, end: usize) {
        let line = &self.buffer[from..end];
        let colon = memchr(b':', line).unwrap_or(line.len());
        let space = usize::from(line.get(colon + 1) == Some(&b' '));
        let value = (from + colon + 1 + space).min(end)..end;
        match &line[..colon] {
            b"data" => match &mut self.data {
                EventData::None => self.data = EventData::One(value),
                EventData::One(first) => {
                    let lines = [&self.buffer[first.clone()], &self.buffer[value]];
                    self.data = EventData::Joined(lines.join(&b'\n'));
                }
                EventData::Joined(all) => {
                    all.push(b'\n');
                    all.extend_from_slice(&self.buffer[value]);
                }
            },
            b"event" => self.name = value,
            _ => {}
        }
    }

    fn event(&self) -> SseEvent<'_> {
        let data = match &self.data {
            EventData::None => &[],
            EventData::One(range) => &self.buffer[range.clone()],
            EventData::Joined(all) => all.as_slice(),
        };
        SseEvent { name: decode_utf8(&self.buffer[self.name.clone()]), data: decode_utf8(data) }
    }

    fn start_event(&mut self) {
        self.yielded = false;
        self.start = self.line;
        self.name = 0..0;
        self.data = EventData::None;
    }

    fn discard_consumed(&mut self) {
        if self.yielded {
            self.start_event();
        }
        let read = self.start;
        if read == 0 {
            return;
        }
        if read == self.buffer.len() && self.buffer.capacity() > MAX_KEPT_CAPACITY {
            self.buffer = Vec::new();
        } else {
            self.buffer.drain(..read);
        }
        let back = |range: &Range<usize>| range.start.saturating_sub(read)..range.end.saturating_sub(read);
        self.name = back(&self.name);
        if let EventData::One(range) = &self.data {
            self.data = EventData::One(back(range));
        }
        self.start = 0;
        self.line -= read;
        self.searched -= read;
    }
}

fn decode_utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Event = (String, String);

    fn drain(decoder: &mut SseDecoder, events: &mut Vec<Event>) {
        while let Some(event) = decoder.next_event().unwrap() {
            events.push((event.name.into_owned(), event.data.into_owned()));
        }
    }

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
        for chunk in chunks {
            decoder.push(chunk);
            drain(&mut decoder, &mut events);
        }
        events
    }

    #[test]
    fn streams_are_split_into_events() {
        type Events = &'static [(&'static str, &'static str)];
        let table: &[(&str, &[u8], Events)] = &[
            ("a plain event", b"event: a\ndata: 1\n\n", &[("a", "1")]),
            (
                "carriage return and newline",
                b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
                &[("a", "1"), ("", "2")],
            ),
            ("carriage return alone", b"event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]),
            ("several data lines", b"data: 1\ndata:2\ndata\ndata:  3\n\n", &[("", "1\n2\n\n 3")]),
            ("comments and unknown fields", b": hi\nid: 7\ndata: 1\n: ho\nretry: 3\n\n", &[("", "1")]),
            ("a byte order mark", b"\xEF\xBB\xBFdata: 1\n\n", &[("", "1")]),
            ("a name without data is no event", b"event: a\n\ndata: 1\n\n", &[("", "1")]),
            ("empty data is an event", b"data:\n\n", &[("", "")]),
            ("an event without its blank line waits", b"data: 1\n", &[]),
            ("bytes that are not text are replaced", b"data: \xff\n\n", &[("", "\u{fffd}")]),
        ];
        for (name, bytes, expected) in table {
            let expected: Vec<Event> = expected.iter().map(|(n, d)| ((*n).into(), (*d).into())).collect();
            assert_eq!(decode([*bytes]), expected, "{name}");
            assert_eq!(decode(bytes.chunks(1)), expected, "{name}, byte by byte");
        }
    }

    #[test]
    fn stream_may_end_without_a_blank_line() {
        for tail in ["data: [DONE]", "data: [DONE]\n", "data: [DONE]\r", "data: [DONE]\r\n"] {
            let mut decoder = SseDecoder::new();
            decoder.push(tail.as_bytes());
            assert_eq!(decoder.next_event().unwrap(), None, "{tail:?}");
            assert_eq!(decoder.finish().unwrap().unwrap().data, "[DONE]", "{tail:?}");
            assert_eq!(decoder.finish().unwrap(), None, "{tail:?}");
        }
    }

    #[test]
    fn large_line_is_read_and_an_oversized_one_rejected() {
        let chunk = vec![b'x'; 1 << 20];
        let mut decoder = SseDecoder::new();
        decoder.push(b"data: ");
        for _ in 0..20 {
            decoder.push(&chunk);
            assert_eq!(decoder.next_event().unwrap(), None);
        }
        decoder.push(b"\n\n");
        assert_eq!(decoder.next_event().unwrap().unwrap().data.len(), 20 << 20);
        let outcomes: Vec<bool> = (0..40)
            .map(|_| {
                decoder.push(&chunk);
                decoder.next_event().is_ok()
            })
            .collect();
        assert_eq!(outcomes.iter().filter(|fine| **fine).count(), 32);
    }

    #[test]
    fn endless_comments_use_no_memory() {
        let mut decoder = SseDecoder::new();
        for _ in 0..100_000 {
            decoder.push(b": keep-alive\n\n");
            assert_eq!(decoder.next_event().unwrap(), None);
        }
        assert!(decoder.buffer.capacity() < 1024);
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just("data: {\"text\":\"größe 🦀\"}".to_owned()),
            Just("event: content_block_delta".to_owned()),
            Just(String::new()),
            Just(": ping".to_owned()),
            "data: ?[a-zé\u{1F980}]{0,12}",
            "[a-z:]{0,6}",
        ];
        let ending = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
        prop::collection::vec((line, ending), 0..24)
            .prop_map(|lines| lines.into_iter().flat_map(|(l, e)| format!("{l}{e}").into_bytes()).collect())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(bytes in stream(), cuts in prop::collection::vec(0usize..400, 0..12)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode(pieces), decode([bytes.as_slice()]));
        }
    }
}
