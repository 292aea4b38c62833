//! Frames of the engine become events of the wire. Pure: the same frames always give the same events.
//!
//! Modules: [`Translator`] here, [`stream`] (a reply while it streams), [`subagents`] (what agents below the agent do),
//! [`status`] (tokens and the context).

mod status;
mod stream;
mod subagents;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use whimbrel::Frame;
use whimbrel::wire::content::{Block, Content, ResultContent};
use whimbrel::wire::message::{Assistant, User};
use whimbrel::wire::system::{ApiRetry, CompactResult, Status, StatusKind, SystemEvent};

use crate::tools;
use crate::versions::WireVersion;
use status::ContextStatus;
pub(crate) use status::plan_mode_event;
use stream::ReplyStream;
use subagents::Subagents;

/// An event, before the version of the client decides whether it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) payload: Value,
}

impl Event {
    pub(crate) fn new(kind: &'static str, payload: Value) -> Self {
        Self { kind, payload }
    }

    /// An event without a payload.
    pub(crate) fn bare(kind: &'static str) -> Self {
        Self::new(kind, json!({}))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::new("ContentPart", json!({"type": "text", "text": text}))
    }

    pub(crate) fn think(think: &str, encrypted: Option<&str>) -> Self {
        Self::new("ContentPart", json!({"type": "think", "think": think, "encrypted": encrypted}))
    }

    /// A call of the engine with its whole input.
    fn whole_call(id: &str, tool: &str, input: &Value) -> Self {
        Self::tool_call(id, tools::shown_name(tool), &tools::to_kimi(tool, input).1.to_string())
    }

    fn tool_call(id: &str, name: &str, arguments: &str) -> Self {
        let function = json!({"name": name, "arguments": arguments});
        Self::new("ToolCall", json!({"type": "function", "id": id, "function": function, "extras": null}))
    }

    fn tool_result(call: &str, return_value: &Value) -> Self {
        Self::new("ToolResult", json!({"tool_call_id": call, "return_value": return_value}))
    }
}

/// A tool call of the conversation.
#[derive(Debug, Clone, PartialEq)]
struct CallRecord {
    /// The engine's name of the tool.
    tool: String,
    /// The input in the engine's shape.
    input: Value,
}

/// State of the translation.
pub(crate) struct Translator {
    version: WireVersion,
    context: ContextStatus,
    stream: ReplyStream,
    subagents: Subagents,
    /// Model calls of the turn, from 1.
    step: u32,
    /// The engine calls the model, and no event of the reply has come yet.
    is_step_due: bool,
    /// Calls that the client knows.
    announced: HashSet<String>,
    /// Calls without a result.
    calls: HashMap<String, CallRecord>,
    /// What the host's own tools returned, by call.
    host_values: HashMap<String, Value>,
    is_compacting: bool,
}

impl Translator {
    pub(crate) fn new(version: WireVersion, window: u64) -> Self {
        Self {
            version,
            context: ContextStatus::new(window),
            stream: ReplyStream::default(),
            subagents: Subagents::default(),
            step: 0,
            is_step_due: false,
            announced: HashSet::new(),
            calls: HashMap::new(),
            host_values: HashMap::new(),
            is_compacting: false,
        }
    }

    /// Begins a turn: steps count from 1 again.
    pub(crate) fn begin_turn(&mut self) {
        self.restart_steps();
        self.stream = ReplyStream::default();
        self.announced.clear();
        self.calls.clear();
        self.host_values.clear();
        self.subagents = Subagents::default();
    }

    /// A hook makes the agent continue: steps count from 1 again.
    pub(crate) fn restart_steps(&mut self) {
        self.step = 0;
        self.is_step_due = false;
    }

    /// Model calls of the turn so far.
    pub(crate) fn steps(&self) -> u32 {
        self.step
    }

    /// Keeps what a tool of the host returned, so that the client gets it back unchanged.
    pub(crate) fn record_host_value(&mut self, call: &str, value: Value) {
        self.host_values.insert(call.to_owned(), value);
    }

    /// More of the arguments of a call, as the model writes them.
    pub(crate) fn translate_arguments(&mut self, call: &str, piece: &str) -> Vec<Event> {
        self.stream.add_arguments(call, piece).into_iter().collect()
    }

    /// The turn failed: the step that had no reply ends.
    pub(crate) fn interrupt_step(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.is_step_due || self.step == 0 {
            self.begin_step(&mut events);
        }
        events.push(Event::bare("StepInterrupted"));
        events
    }

    /// Ends what the turn has left open.
    pub(crate) fn end_turn(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.is_compacting).then(|| Event::bare("CompactionEnd")).into_iter().collect()
    }

    /// Translates a frame.
    pub(crate) fn translate(&mut self, frame: &Frame) -> Vec<Event> {
        let mut events = Vec::new();
        match frame {
            Frame::StreamEvent(event) if event.parent_tool_use_id.is_none() => {
                self.translate_stream(&event.event, &mut events);
            }
            Frame::Assistant(message) => match &message.parent_tool_use_id {
                None => self.translate_assistant(message, &mut events),
                Some(parent) => {
                    events.extend(self.subagents.translate_assistant(parent, message, self.version));
                }
            },
            Frame::User(message) if message.is_replay != Some(true) => {
                self.translate_results(message, &mut events);
            }
            Frame::System(system) => self.translate_system(&system.event, &mut events),
            _ => {}
        }
        events
    }

    fn begin_step(&mut self, events: &mut Vec<Event>) {
        self.is_step_due = false;
        self.step += 1;
        events.push(Event::new("StepBegin", json!({"n": self.step})));
    }

    /// A message of the main line. What has streamed before is not sent again.
    fn translate_assistant(&mut self, message: &Assistant, events: &mut Vec<Event>) {
        // The text of a failure is the error of the turn.
        if message.error.is_some() {
            return;
        }
        let has_streamed = self.stream.has_streamed(&message.message.id);
        for block in &message.message.content {
            if let Block::ToolUse { id, name, input } = block {
                self.calls.insert(id.clone(), CallRecord { tool: name.clone(), input: input.clone() });
                if self.announced.insert(id.clone()) {
                    events.push(Event::whole_call(id, name, input));
                }
            } else if !has_streamed {
                events.extend(content_part(block));
            }
        }
    }

    /// Results of tools, of the main line and of agents below it.
    fn translate_results(&mut self, message: &User, events: &mut Vec<Event>) {
        let Content::Blocks(blocks) = &message.message.content else { return };
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let is_error = *is_error == Some(true);
            let structured = message.tool_use_result.as_ref();
            match &message.parent_tool_use_id {
                None => {
                    let call = self.calls.remove(tool_use_id);
                    let value = match self.host_values.remove(tool_use_id) {
                        Some(value) => value,
                        None => return_value(call.as_ref(), content.as_ref(), is_error, structured),
                    };
                    events.push(Event::tool_result(tool_use_id, &value));
                }
                Some(parent) => {
                    let call = self.subagents.take_call(parent, tool_use_id);
                    let value = return_value(call.as_ref(), content.as_ref(), is_error, structured);
                    let event = Event::tool_result(tool_use_id, &value);
                    events.push(self.subagents.wrap(parent, &event, self.version));
                }
            }
        }
    }

    fn translate_system(&mut self, event: &SystemEvent, events: &mut Vec<Event>) {
        match event {
            SystemEvent::Status(status) => self.translate_status(status, events),
            SystemEvent::CompactBoundary(_) => events.extend(self.end_turn()),
            SystemEvent::ApiRetry(retry) => {
                if self.is_step_due {
                    self.begin_step(events);
                }
                self.stream.restart();
                events.push(step_retry(self.step, retry));
            }
            _ => {}
        }
    }

    fn translate_status(&mut self, status: &Status, events: &mut Vec<Event>) {
        match status.status {
            Some(StatusKind::Requesting) => self.is_step_due = true,
            Some(StatusKind::Compacting) if !self.is_compacting => {
                self.is_compacting = true;
                events.push(Event::bare("CompactionBegin"));
            }
            _ => {}
        }
        if status.compact_result == Some(CompactResult::Failed) {
            events.extend(self.end_turn());
        }
    }
}

/// A block of text or thinking as an event.
fn content_part(block: &Block) -> Option<Event> {
    match block {
        Block::Text { text, .. } if !text.is_empty() => Some(Event::text(text)),
        Block::Thinking { thinking, signature } => {
            Some(Event::think(thinking, Some(signature.as_str()).filter(|signature| !signature.is_empty())))
        }
        _ => None,
    }
}

fn return_value(
    call: Option<&CallRecord>,
    content: Option<&ResultContent>,
    is_error: bool,
    structured: Option<&Value>,
) -> Value {
    let empty = ResultContent::Text(String::new());
    let (tool, input) = call.map_or(("", &Value::Null), |call| (call.tool.as_str(), &call.input));
    let value = tools::return_value(tool, input, content.unwrap_or(&empty), is_error, structured);
    serde_json::to_value(value).unwrap_or_default()
}

fn step_retry(step: u32, retry: &ApiRetry) -> Event {
    let error = serde_json::to_value(&retry.error).unwrap_or_default();
    Event::new(
        "StepRetry",
        json!({
            "n": step,
            "next_attempt": retry.attempt + 1,
            "max_attempts": retry.max_retries + 1,
            "wait_s": retry.retry_delay_ms as f64 / 1000.0,
            "error_type": error,
            "status_code": retry.error_status,
        }),
    )
}
