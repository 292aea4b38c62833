//! A reply while it streams: text, thinking, tool calls with their arguments, and the tokens at its end.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel::wire::RawJson;
use whimbrel::wire::content::Usage;

use super::{Event, Translator};
use crate::tools;

/// The reply that streams.
#[derive(Default)]
pub(super) struct ReplyStream {
    /// Ids of the replies of this turn that have streamed.
    streamed: HashSet<String>,
    message: String,
    usage: Usage,
    /// The call whose arguments stream.
    call: Option<StreamedCall>,
    /// Arguments of calls that the client does not know yet.
    early_arguments: HashMap<String, String>,
}

/// A tool call whose input is not complete.
struct StreamedCall {
    id: String,
    /// The engine's name of the tool.
    tool: String,
    /// The input so far in the engine's shape, as JSON text.
    input: String,
    /// Whether the client has got arguments in the model's own words.
    has_arguments: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawEvent {
    MessageStart {
        message: RawMessage,
    },
    ContentBlockStart {
        content_block: RawBlock,
    },
    ContentBlockDelta {
        delta: RawDelta,
    },
    ContentBlockStop,
    MessageDelta {
        #[serde(default)]
        usage: Value,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct RawMessage {
    #[serde(default)]
    id: String,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawBlock {
    ToolUse {
        id: String,
        name: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum RawDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

impl ReplyStream {
    /// Whether this reply has streamed, so that its messages need not be sent.
    pub(super) fn has_streamed(&self, message: &str) -> bool {
        self.streamed.contains(message)
    }

    /// The provider failed while it streamed: the same reply comes again.
    pub(super) fn restart(&mut self) {
        self.call = None;
        self.early_arguments.clear();
    }

    /// A piece of the arguments of a call. A piece of a call that the client does not know yet waits.
    pub(super) fn add_arguments(&mut self, call: &str, piece: &str) -> Option<Event> {
        match &mut self.call {
            Some(open) if open.id == call => {
                open.has_arguments = true;
                Some(arguments_event(piece))
            }
            _ => {
                self.early_arguments.entry(call.to_owned()).or_default().push_str(piece);
                None
            }
        }
    }
}

impl Translator {
    pub(super) fn translate_stream(&mut self, event: &RawJson, events: &mut Vec<Event>) {
        let Ok(event) = event.decode::<RawEvent>() else { return };
        match event {
            RawEvent::MessageStart { message } => {
                if self.is_step_due || self.step == 0 {
                    self.begin_step(events);
                }
                self.stream.call = None;
                self.stream.streamed.insert(message.id.clone());
                (self.stream.message, self.stream.usage) = (message.id, message.usage);
            }
            RawEvent::ContentBlockStart { content_block: RawBlock::ToolUse { id, name } } => {
                self.begin_call(id, name, events);
            }
            RawEvent::ContentBlockDelta { delta } => match delta {
                RawDelta::Text { text } if !text.is_empty() => events.push(Event::text(&text)),
                RawDelta::Thinking { thinking } if !thinking.is_empty() => {
                    events.push(Event::think(&thinking, None));
                }
                RawDelta::Signature { signature } => events.push(Event::think("", Some(&signature))),
                RawDelta::InputJson { partial_json } => {
                    if let Some(call) = &mut self.stream.call {
                        call.input.push_str(&partial_json);
                    }
                }
                RawDelta::Text { .. } | RawDelta::Thinking { .. } | RawDelta::Other => {}
            },
            RawEvent::ContentBlockStop => self.end_call(events),
            RawEvent::MessageDelta { usage } => merge_usage(&mut self.stream.usage, &usage),
            RawEvent::MessageStop => {
                events.push(self.context.update(&self.stream.message, &self.stream.usage));
            }
            RawEvent::ContentBlockStart { content_block: RawBlock::Other } | RawEvent::Other => {}
        }
    }

    fn begin_call(&mut self, id: String, tool: String, events: &mut Vec<Event>) {
        self.announced.insert(id.clone());
        events.push(Event::tool_call(&id, tools::shown_name(&tool), ""));
        let early = self.stream.early_arguments.remove(&id);
        let has_arguments = early.is_some();
        events.extend(early.map(|text| arguments_event(&text)));
        self.stream.call = Some(StreamedCall { id, tool, input: String::new(), has_arguments });
    }

    /// The block is complete. Arguments that have not come in the model's own words are sent now.
    fn end_call(&mut self, events: &mut Vec<Event>) {
        let Some(call) = self.stream.call.take().filter(|call| !call.has_arguments) else { return };
        let input = serde_json::from_str(&call.input).unwrap_or_else(|_| json!({}));
        let (_, input) = tools::to_kimi(&call.tool, &input);
        events.push(arguments_event(&input.to_string()));
    }
}

fn arguments_event(piece: &str) -> Event {
    Event::new("ToolCallPart", json!({"arguments_part": piece}))
}

/// Takes over the figures that the end of the reply gives; a provider may give all of them there.
fn merge_usage(usage: &mut Usage, end: &Value) {
    let count = |field: &str| end.get(field).and_then(Value::as_u64).filter(|count| *count > 0);
    let fields = [
        ("input_tokens", &mut usage.input_tokens),
        ("output_tokens", &mut usage.output_tokens),
        ("cache_read_input_tokens", &mut usage.cache_read_input_tokens),
        ("cache_creation_input_tokens", &mut usage.cache_creation_input_tokens),
    ];
    for (field, known) in fields {
        if let Some(count) = count(field) {
            *known = count;
        }
    }
}
