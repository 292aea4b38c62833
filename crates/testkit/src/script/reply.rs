//! One reply of a scripted model: content, timing and injected faults.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use whimbrel_wire::{StopReason, Usage};

use super::fault::{Fault, FaultCount};
use super::json;

/// Characters per event unless [`Reply::chunk_size`] is called.
const DEFAULT_CHUNK_CHARS: usize = 16;

/// One reply.
///
/// Faults happen first, in the order in which they were added, each once unless [`times`](Self::times) is called; then
/// the reply succeeds. A reply without content has only its faults.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    pub(crate) say: Vec<ReplyBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    pub(crate) chunk: usize,
    #[serde(with = "json::millis", rename = "afterMs")]
    pub(crate) after: Duration,
    #[serde(with = "json::millis", rename = "paceMs")]
    pub(crate) pace: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<RepeatedFault>,
    pub(crate) then_next: bool,
}

/// One content block of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ReplyBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A thinking block.
    Thinking {
        /// The thinking text.
        thinking: String,
        /// Its signature.
        #[serde(default = "signature")]
        signature: String,
    },
    /// A tool call.
    Tool {
        /// The tool name.
        tool: String,
        /// The input as JSON.
        #[serde(default = "no_input")]
        input: Value,
        /// The id of the call; by default derived from the reply's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The input as raw text, sent instead of `input`; need not be JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_input: Option<String>,
    },
    /// Any block, sent verbatim in one event.
    Block {
        /// The block as JSON.
        block: Value,
    },
}

/// A fault and the number of requests that it affects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RepeatedFault {
    pub(crate) fault: Fault,
    pub(crate) times: FaultCount,
}

impl Reply {
    /// Builds a reply without content. With faults, only these happen.
    pub fn empty() -> Self {
        Self {
            say: Vec::new(),
            stop: None,
            usage: None,
            chunk: DEFAULT_CHUNK_CHARS,
            after: Duration::ZERO,
            pace: Duration::ZERO,
            hold: None,
            faults: Vec::new(),
            then_next: false,
        }
    }

    /// Builds a reply with a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// Builds a reply with a tool call.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::empty().and_tool(name, input)
    }

    /// Builds a reply with a call of the Bash tool.
    pub fn bash(command: impl Into<String>) -> Self {
        Self::tool("Bash", json!({"command": command.into()}))
    }

    /// Appends a text block.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.push_block(ReplyBlock::Text { text: text.into() })
    }

    /// Appends a tool call.
    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.push_block(ReplyBlock::Tool { tool: name.into(), input, id: None, raw_input: None })
    }

    /// Appends a block verbatim.
    pub fn and_block(self, block: Value) -> Self {
        self.push_block(ReplyBlock::Block { block })
    }

    /// Puts a thinking block first.
    pub fn with_thinking(mut self, thinking: impl Into<String>) -> Self {
        self.say.insert(0, ReplyBlock::Thinking { thinking: thinking.into(), signature: signature() });
        self
    }

    /// Sets the id of the last tool call.
    pub fn tool_use_id(mut self, call: impl Into<String>) -> Self {
        if let Some(ReplyBlock::Tool { id, .. }) = self.last_tool_call() {
            *id = Some(call.into());
        }
        self
    }

    /// Sends this text as the input of the last tool call, whether it is JSON or not.
    pub fn raw_tool_input(mut self, text: impl Into<String>) -> Self {
        if let Some(ReplyBlock::Tool { raw_input, .. }) = self.last_tool_call() {
            *raw_input = Some(text.into());
        }
        self
    }

    /// Sets the stop reason. Default: `tool_use` with a tool call, else `end_turn`.
    pub fn stop_reason(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// Sets the reported usage. Default: 100 input and 10 output tokens.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the number of characters per event.
    pub fn chunk_size(mut self, characters: usize) -> Self {
        self.chunk = characters.max(1);
        self
    }

    /// Delays the first byte.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Sets the interval between events.
    pub fn event_interval(mut self, interval: Duration) -> Self {
        self.pace = interval;
        self
    }

    /// Delays the first byte until the test [releases](crate::MockApi::release) this name.
    pub fn hold_until(mut self, name: impl Into<String>) -> Self {
        self.hold = Some(name.into());
        self
    }

    /// Fails with this status first.
    pub fn status(self, status: u16) -> Self {
        self.with_fault(Fault::Status { status, error: None, message: None, headers: BTreeMap::new() })
    }

    /// Adds a `retry-after` header to the preceding status fault, or to a new one with status 429.
    pub fn retry_after(self, value: impl Into<String>) -> Self {
        self.header("retry-after", value)
    }

    /// Adds a header to the preceding status fault, or to a new one with status 429.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let mut reply = self.ensure_status_fault();
        if let Some(RepeatedFault { fault: Fault::Status { headers, .. }, .. }) = reply.faults.last_mut() {
            headers.insert(name.into().to_lowercase(), value.into());
        }
        reply
    }

    /// Sets the error type and message of the preceding status fault, or of a new one with status 429.
    pub fn error(self, kind: impl Into<String>, text: impl Into<String>) -> Self {
        let mut reply = self.ensure_status_fault();
        if let Some(RepeatedFault { fault: Fault::Status { error, message, .. }, .. }) =
            reply.faults.last_mut()
        {
            (*error, *message) = (Some(kind.into()), Some(text.into()));
        }
        reply
    }

    /// First closes the connection after this many events.
    pub fn cut_after(self, events: usize) -> Self {
        self.with_fault(Fault::Cut { after: events })
    }

    /// First stalls after this many events.
    pub fn stall_after(self, events: usize) -> Self {
        self.with_fault(Fault::Stall { after: events })
    }

    /// First sends only pings after this many events.
    pub fn pings_after(self, events: usize, every: Duration) -> Self {
        self.with_fault(Fault::Pings { after: events, every })
    }

    /// First sends the rest byte by byte after this many events.
    pub fn drip_after(self, events: usize, every: Duration) -> Self {
        self.with_fault(Fault::Drip { after: events, every })
    }

    /// First sends an error event after this many events.
    pub fn error_event(self, events: usize, kind: impl Into<String>, text: impl Into<String>) -> Self {
        self.with_fault(Fault::ErrorEvent { after: events, error: kind.into(), message: text.into() })
    }

    /// Inserts an unexpected event after this many events, once.
    pub fn extra_event(self, events: usize, name: impl Into<String>, data: impl Into<String>) -> Self {
        self.with_fault(Fault::ExtraEvent { after: events, name: name.into(), data: data.into() })
    }

    /// Inserts an event that is not JSON after the first one, once.
    pub fn garbage_event(self) -> Self {
        self.extra_event(1, "content_block_delta", "{this is not JSON")
    }

    /// First responds with an HTML page.
    pub fn html(self) -> Self {
        self.with_fault(Fault::Html)
    }

    /// First responds with an empty stream.
    pub fn empty_body(self) -> Self {
        self.with_fault(Fault::EmptyBody)
    }

    /// First responds with these bytes instead of events.
    pub fn raw_body(self, body: impl Into<Vec<u8>>) -> Self {
        self.with_fault(Fault::RawBody { body: body.into() })
    }

    /// First closes the connection without a response.
    pub fn hang_up(self) -> Self {
        self.with_fault(Fault::HangUp)
    }

    /// Adds a fault that happens once before the reply succeeds.
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(RepeatedFault { fault, times: FaultCount::ONCE });
        self
    }

    /// Repeats the last fault this many times; 0 removes it.
    pub fn times(mut self, count: u32) -> Self {
        match (NonZeroU32::new(count), self.faults.last_mut()) {
            (Some(count), Some(last)) => last.times = FaultCount::First(count),
            (None, Some(_)) => drop(self.faults.pop()),
            (_, None) => {}
        }
        self
    }

    /// Repeats the last fault with every request.
    pub fn always(mut self) -> Self {
        if let Some(last) = self.faults.last_mut() {
            last.times = FaultCount::Always;
        }
        self
    }

    /// Continues with the next reply after the faults; this reply never succeeds.
    pub fn skip_after_faults(mut self) -> Self {
        self.then_next = true;
        self
    }

    /// Returns the fault of the nth request for this reply, counted from 0.
    pub(crate) fn fault_for_attempt(&self, attempt: u32) -> Option<&Fault> {
        let mut left = attempt;
        for RepeatedFault { fault, times } in &self.faults {
            match times {
                FaultCount::First(count) if left >= count.get() => left -= count.get(),
                FaultCount::First(_) | FaultCount::Always => return Some(fault),
            }
        }
        None
    }

    /// The faults in order, with their counts.
    pub(crate) fn faults(&self) -> impl Iterator<Item = (&Fault, FaultCount)> {
        self.faults.iter().map(|repeated| (&repeated.fault, repeated.times))
    }

    /// Returns whether the reply consists of faults only.
    pub(crate) fn never_succeeds(&self) -> bool {
        !self.faults.is_empty() && (self.then_next || self.say.is_empty())
    }

    /// Returns whether the script moves on after this many requests for the reply.
    pub(crate) fn is_done_after(&self, attempts: u32) -> bool {
        match attempts.checked_sub(1) {
            None => false,
            Some(last) => {
                self.fault_for_attempt(last).is_none()
                    || self.never_succeeds() && self.fault_for_attempt(attempts).is_none()
            }
        }
    }

    fn push_block(mut self, block: ReplyBlock) -> Self {
        self.say.push(block);
        self
    }

    fn last_tool_call(&mut self) -> Option<&mut ReplyBlock> {
        self.say.iter_mut().rev().find(|block| matches!(block, ReplyBlock::Tool { .. }))
    }

    fn ensure_status_fault(self) -> Self {
        match self.faults.last() {
            Some(RepeatedFault { fault: Fault::Status { .. }, .. }) => self,
            _ => self.status(429),
        }
    }

    pub(super) fn from_object(object: Value) -> serde_json::Result<Self> {
        let json: ReplyJson = serde_json::from_value(object)?;
        Ok(Self {
            say: json.say,
            stop: json.stop,
            usage: json.usage,
            chunk: json.chunk.unwrap_or(DEFAULT_CHUNK_CHARS).max(1),
            after: json.after,
            pace: json.pace,
            hold: json.hold,
            faults: json.faults,
            then_next: json.then_next,
        })
    }
}

/// The JSON form of a reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReplyJson {
    #[serde(default)]
    say: Vec<ReplyBlock>,
    #[serde(default)]
    stop: Option<StopReason>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    chunk: Option<usize>,
    #[serde(default, with = "json::millis", rename = "afterMs")]
    after: Duration,
    #[serde(default, with = "json::millis", rename = "paceMs")]
    pace: Duration,
    #[serde(default)]
    hold: Option<String>,
    #[serde(default)]
    faults: Vec<RepeatedFault>,
    #[serde(default)]
    then_next: bool,
}

impl<'de> Deserialize<'de> for Reply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::deserialize_reply(deserializer)
    }
}

/// A string is a reply with that text.
impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

fn signature() -> String {
    "sig".into()
}

fn no_input() -> Value {
    Value::Object(Map::new())
}
