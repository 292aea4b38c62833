//! Models without a provider: one plays a script (tests, demo, offline), one is implemented by a closure.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_os::files;
use whimbrel_wire::{Block, StopReason, Usage};

use crate::anthropic::body;
use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Model, RawEvents, ReplyItem};
use crate::request::Request;
use crate::whole_reply::WholeReply;

/// Characters per text delta.
const DELTA_CHARS: usize = 12;

/// Maximum size of a script file.
const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// Replies in order. A file holds this as JSON, or the list of replies alone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The replies.
    pub replies: Vec<ScriptedReply>,
    /// Milliseconds between events.
    pub pace_ms: u64,
}

/// One reply. In JSON it may also be a plain text or a list of blocks.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    /// The blocks. A `tool_use` without an id gets one; an input that is a string is streamed literally, valid JSON or
    /// not.
    pub content: Vec<Value>,
    /// Stop reason; by default `tool_use` if there are calls, else `end_turn`.
    pub stop_reason: Option<StopReason>,
    /// Token usage; by default a quarter of the bytes.
    pub usage: Option<Usage>,
    /// Milliseconds before the reply begins.
    pub delay_ms: u64,
    /// An error that ends the reply.
    pub fault: Option<ScriptedFault>,
    /// A text that the request must contain.
    pub expect: Option<String>,
}

/// An injected error.
#[derive(Debug, Clone, Deserialize)]
pub struct ScriptedFault {
    /// Error kind.
    #[serde(default = "default_fault_kind")]
    pub kind: ModelErrorKind,
    /// HTTP status.
    #[serde(default)]
    pub status: Option<u16>,
    /// The provider's message.
    #[serde(default)]
    pub message: String,
    /// Retry delay that the provider asks for, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// Number of events before the error.
    #[serde(default)]
    pub after: usize,
}

fn default_fault_kind() -> ModelErrorKind {
    ModelErrorKind::Server
}

/// A model that follows a script and keeps a log of its requests by default.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// Number of requests so far.
    request_count: AtomicUsize,
    /// Log of the requests; `None` if it is disabled.
    requests: Option<Mutex<Vec<Value>>>,
}

impl Scripted {
    pub fn new(script: Script) -> Self {
        Self { script, request_count: AtomicUsize::new(0), requests: Some(Mutex::default()) }
    }

    /// Disables the request log, which would grow without bound in long runs.
    #[must_use]
    pub fn without_request_log(self) -> Self {
        Self { requests: None, ..self }
    }

    /// Creates a model from a list of replies, each in one of the forms of [`ScriptedReply`], or from a whole script.
    pub fn replies(replies: Value) -> Result<Self, ModelError> {
        let script = if replies.is_array() { json!({ "replies": replies }) } else { replies };
        Ok(Self::new(serde_json::from_value(script).map_err(script_error)?))
    }

    /// Parses a script from JSON text.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        Self::replies(serde_json::from_str(text).map_err(script_error)?)
    }

    /// Reads a script from a file.
    pub fn from_file(path: &Path) -> Result<Self, ModelError> {
        let to_error = |cause: String| {
            ModelError::new(ModelErrorKind::Script, format!("Script {}: {cause}", path.display()))
        };
        let bytes =
            files::read_user_file(path, MAX_SCRIPT_BYTES).map_err(|error| to_error(format!("{error}.")))?;
        let text = String::from_utf8(bytes).map_err(|_| to_error("it is not UTF-8 text.".to_owned()))?;
        Self::parse(&text).map_err(|error| to_error(error.message))
    }

    /// The logged requests, in the form of the Messages API; empty if the log is disabled.
    pub fn requests(&self) -> Vec<Value> {
        let requests =
            self.requests.as_ref().map(|requests| requests.lock().unwrap_or_else(PoisonError::into_inner));
        requests.map(|requests| requests.clone()).unwrap_or_default()
    }

    /// Logs a request and returns its number, starting at 0.
    fn record_request(&self, request: Value) -> usize {
        if let Some(requests) = &self.requests {
            requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        }
        self.request_count.fetch_add(1, Ordering::Relaxed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn script_error(error: serde_json::Error) -> ModelError {
    ModelError::new(ModelErrorKind::Script, format!("The script is invalid: {error}."))
}

/// One step in the playback of a reply.
enum PlaybackStep {
    Wait(Duration),
    Emit(Result<ReplyItem, ModelError>),
}

impl Model for Scripted {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        let request_json = body::to_value(&request);
        let text = request_json.to_string();
        let number = self.record_request(request_json);
        let steps = match self.script.replies.get(number) {
            Some(reply) => {
                reply.playback_steps(number, &request, &text, Duration::from_millis(self.script.pace_ms))
            }
            None => vec![PlaybackStep::Emit(Err(script_exhausted(number, self.script.replies.len())))],
        };
        play_steps(steps)
    }
}

/// A model implemented by a closure, which receives each request with its number, starting at 0, and returns the reply.
///
/// ```
/// use std::sync::Arc;
/// use whimbrel_models::providers::Providers;
/// use whimbrel_models::scripted::{ClosureModel, ScriptedReply};
///
/// let providers = Providers::offline();
/// providers.add_model("echo", Arc::new(ClosureModel::new(|request, number| {
///     Ok(ScriptedReply::text(format!("{number}: {} messages", request.history.messages().len())))
/// })));
/// assert!(providers.resolve("echo").is_ok());
/// ```
pub struct ClosureModel<F> {
    respond: F,
    request_count: AtomicUsize,
}

impl<F: Fn(&Request, usize) -> Result<ScriptedReply, ModelError> + Send + Sync> ClosureModel<F> {
    pub fn new(respond: F) -> Self {
        Self { respond, request_count: AtomicUsize::new(0) }
    }
}

impl<F: Fn(&Request, usize) -> Result<ScriptedReply, ModelError> + Send + Sync> Model for ClosureModel<F> {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        let number = self.request_count.fetch_add(1, Ordering::Relaxed);
        play_steps(match (self.respond)(&request, number) {
            Ok(reply) => {
                let request_json = body::to_value(&request).to_string();
                reply.playback_steps(number, &request, &request_json, Duration::ZERO)
            }
            Err(error) => vec![PlaybackStep::Emit(Err(error))],
        })
    }
}

fn play_steps(steps: Vec<PlaybackStep>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
    stream::iter(steps)
        .filter_map(|step| async {
            match step {
                PlaybackStep::Emit(item) => Some(item),
                PlaybackStep::Wait(time) => {
                    tokio::time::sleep(time).await;
                    None
                }
            }
        })
        .boxed()
}

impl ScriptedReply {
    /// A reply with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Value::String(text.into())], ..Self::default() }
    }

    /// A reply with one tool call.
    pub fn tool_call(tool: &str, input: Value) -> Self {
        let call = [("type", "tool_use".into()), ("name", tool.into()), ("input", input)];
        let call = call.map(|(name, value): (_, Value)| (name.to_owned(), value));
        Self { content: vec![Value::Object(Map::from_iter(call))], ..Self::default() }
    }

    fn playback_steps(
        &self,
        number: usize,
        request: &Request,
        request_json: &str,
        pace: Duration,
    ) -> Vec<PlaybackStep> {
        if let Some(expected) =
            self.expect.as_ref().filter(|expected| !request_json.contains(expected.as_str()))
        {
            let message = format!("Reply {} of the script expects {expected:?} in the request.", number + 1);
            return vec![PlaybackStep::Emit(Err(ModelError::new(ModelErrorKind::Script, message)))];
        }
        let whole = match self.build_reply(number, request, request_json.len()) {
            Ok(whole) => whole,
            Err(error) => return vec![PlaybackStep::Emit(Err(error))],
        };
        let raw_events = RawEvents::for_request(request);
        let mut steps = Vec::new();
        if self.delay_ms > 0 {
            steps.push(PlaybackStep::Wait(Duration::from_millis(self.delay_ms)));
        }
        let event_count = self.fault.as_ref().map_or(usize::MAX, |fault| fault.after);
        for event in whole.events(DELTA_CHARS).into_iter().take(event_count) {
            if !pace.is_zero() {
                steps.push(PlaybackStep::Wait(pace));
            }
            steps.push(PlaybackStep::Emit(Ok(raw_events.wrap(event))));
        }
        steps.extend(self.fault.as_ref().map(|fault| PlaybackStep::Emit(Err(fault.to_error()))));
        steps
    }

    fn build_reply(&self, number: usize, request: &Request, size: usize) -> Result<WholeReply, ModelError> {
        let blocks = self.content.iter().enumerate().map(|(index, block)| parse_block(number, index, block));
        let content = blocks.collect::<Result<Vec<_>, _>>()?;
        let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let default_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let size_bytes = self.content.iter().map(|block| block.to_string().len()).sum::<usize>();
        let usage = Usage {
            input_tokens: size as u64 / 4,
            output_tokens: size_bytes as u64 / 4 + 1,
            ..Usage::default()
        };
        Ok(WholeReply {
            id: format!("msg_scripted_{:04}", number + 1),
            model: request.model.clone(),
            content,
            stop_reason: Some(self.stop_reason.clone().unwrap_or(default_reason)),
            stop_sequence: None,
            usage: self.usage.clone().unwrap_or(usage).into(),
        })
    }
}

/// Parses a block of a script; a call without an id gets one.
fn parse_block(reply: usize, index: usize, block: &Value) -> Result<Block, ModelError> {
    let mut block = match block {
        Value::String(text) => json!({ "type": "text", "text": text }),
        block => block.clone(),
    };
    if block["type"] == "tool_use" {
        if block["id"].is_null() {
            block["id"] = format!("toolu_{:04}_{:02}", reply + 1, index + 1).into();
        }
        if block["input"].is_null() {
            block["input"] = Value::Object(Map::new());
        }
    }
    let to_error = |error| {
        ModelError::new(ModelErrorKind::Script, format!("Reply {} of the script: {error}.", reply + 1))
    };
    serde_json::from_value(block).map_err(to_error)
}

impl ScriptedFault {
    fn to_error(&self) -> ModelError {
        ModelError {
            status: self.status,
            retry_after: self.retry_after_ms.map(Duration::from_millis),
            ..ModelError::new(self.kind, self.message.clone())
        }
    }
}

fn script_exhausted(number: usize, replies: usize) -> ModelError {
    let message = format!("The script has {replies} replies, but request {} was made.", number + 1);
    ModelError::new(ModelErrorKind::Script, message)
}

impl<'de> Deserialize<'de> for ScriptedReply {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            #[serde(default)]
            content: Vec<Value>,
            stop_reason: Option<StopReason>,
            usage: Option<Usage>,
            #[serde(default)]
            delay_ms: u64,
            fault: Option<ScriptedFault>,
            expect: Option<String>,
        }
        let object = match Value::deserialize(deserializer)? {
            text @ Value::String(_) => json!({ "content": [text] }),
            blocks @ Value::Array(_) => json!({ "content": blocks }),
            full => full,
        };
        let Full { content, stop_reason, usage, delay_ms, fault, expect } =
            Full::deserialize(object).map_err(serde::de::Error::custom)?;
        Ok(Self { content, stop_reason, usage, delay_ms, fault, expect })
    }
}

#[cfg(test)]
mod tests;
