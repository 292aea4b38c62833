//! Translates a request to Chat Completions, pure. The messages come last and are always serialized the same way, so
//! that the provider's prompt cache applies.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::content::{ResultContent, Source};
use whimbrel_wire::{Block, Role};

use crate::history::{ApiMessage, ChatFormat, TranslatedMessages};
use crate::request::{Effort, OptionalPart, Request, RequestPrefix, ToolSpec};

/// A translated request, and the call ids needed to decode its reply.
pub(super) struct ChatRequest {
    /// The body, in parts to be sent in order.
    pub(super) body: Vec<Bytes>,
    /// Ids of the calls in the conversation.
    pub(super) calls: CallIds,
}

/// Ids of all tool calls in a conversation. New calls must have other ids.
#[derive(Debug, Default)]
pub(super) struct CallIds(Vec<Arc<TranslatedMessages>>);

impl CallIds {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|part| part.calls.contains(id))
    }
}

#[cfg(test)]
impl<const N: usize> From<[String; N]> for CallIds {
    fn from(ids: [String; N]) -> Self {
        let calls = ids.into_iter().collect();
        Self(vec![Arc::new(TranslatedMessages { calls, ..TranslatedMessages::default() })])
    }
}

/// Translates a request without the optional parts in `unsupported`, with fields that the program has set. Translations of frozen history parts are shared,
/// not computed again.
pub(super) fn translate(
    request: &Request,
    unsupported: &[OptionalPart],
    extra_fields: &Map<String, Value>,
) -> ChatRequest {
    let reasoning = match unsupported.contains(&OptionalPart::Reasoning) {
        true => ReasoningPolicy::Omit,
        false => ReasoningPolicy::for_model(&request.model),
    };
    let parts = request
        .history
        .translated(reasoning.chat_format(), |messages| translate_messages(messages, reasoning));
    let mut body = vec![
        render_head(request, unsupported, extra_fields),
        request.prefix.chat_json_or_init(render_prefix),
    ];
    let mut first = request.prefix.system.is_empty();
    for part in parts.iter().filter(|part| !part.json.is_empty()) {
        // Each message is preceded by a comma, which must be skipped for the first one.
        let comma = usize::from(std::mem::take(&mut first));
        body.push(part.json.slice(comma..));
    }
    body.push(Bytes::from_static(b"]}"));
    ChatRequest { body, calls: CallIds(parts) }
}

/// Renders everything before tools and messages.
fn render_head(request: &Request, unsupported: &[OptionalPart], extra_fields: &Map<String, Value>) -> Bytes {
    let limit = Some(request.max_tokens);
    // Uses the other field name if the default one was rejected.
    let new_limit = is_openai_reasoner(&request.model) != unsupported.contains(&OptionalPart::LimitName);
    let effort = request.effort.filter(|_| !unsupported.contains(&OptionalPart::Effort));
    let head = RequestHead {
        model: &request.model,
        stream: true,
        stream_options: (!unsupported.contains(&OptionalPart::StreamOptions))
            .then(|| json!({ "include_usage": true })),
        max_tokens: limit.filter(|_| !new_limit),
        max_completion_tokens: limit.filter(|_| new_limit),
        reasoning_effort: effort.and_then(|effort| reasoning_effort(&request.model, effort)),
    };
    let mut json = match (extra_fields.is_empty(), serde_json::to_value(&head)) {
        (false, Ok(Value::Object(mut fields))) => {
            fields.extend(extra_fields.clone());
            to_json(&fields)
        }
        _ => to_json(&head),
    };
    json.pop();
    json.push(b',');
    json.into()
}

/// Renders the tools, and the system prompt as the first message.
fn render_prefix(prefix: &RequestPrefix) -> Bytes {
    let mut json = Vec::new();
    if !prefix.tools.is_empty() {
        json.extend_from_slice(br#""tools":"#);
        json.append(&mut to_json(&prefix.tools.iter().map(|spec| render_tool(spec)).collect::<Vec<_>>()));
        json.push(b',');
    }
    json.extend_from_slice(br#""messages":["#);
    if !prefix.system.is_empty() {
        json.append(&mut to_json(&ChatMessage::System { content: prefix.system.join("\n\n") }));
    }
    json.into()
}

/// Translates messages and collects their call ids.
fn translate_messages(messages: &[ApiMessage], reasoning: ReasoningPolicy) -> TranslatedMessages {
    let mut json = Vec::new();
    for message in messages.iter().flat_map(|message| translate_message(message, reasoning)) {
        json.push(b',');
        json.append(&mut to_json(&message));
    }
    let calls = messages.iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    });
    TranslatedMessages { json: json.into(), calls: calls.collect() }
}

/// Serializes a value. Cannot fail, because all maps here have string keys.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[derive(Serialize)]
struct RequestHead<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
}

/// A Chat Completions message.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
    System {
        content: String,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Value>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// Plain text where possible, because many local servers accept nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrlValue<'a> },
    File { file: FileValue<'a> },
}

#[derive(Serialize)]
struct ImageUrlValue<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct FileValue<'a> {
    filename: &'a str,
    file_data: String,
}

/// Treatment of the reasoning that preceded a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasoningPolicy {
    /// Sent again with the call, as Kimi and DeepSeek require.
    Resend,
    /// Omitted: OpenAI's own models reject the field and never send it.
    Omit,
}

impl ReasoningPolicy {
    fn for_model(model: &str) -> Self {
        let openai = is_openai_reasoner(model) || gpt_version(strip_vendor(model)).is_some();
        if openai { Self::Omit } else { Self::Resend }
    }

    fn chat_format(self) -> ChatFormat {
        match self {
            Self::Resend => ChatFormat::WithReasoning,
            Self::Omit => ChatFormat::WithoutReasoning,
        }
    }
}

/// Returns true for OpenAI's reasoning models (o1, o3, o4, gpt-5 and later), which use another field for the output
/// limit. A vendor prefix before a slash is ignored.
fn is_openai_reasoner(model: &str) -> bool {
    let name = strip_vendor(model);
    let o_series = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    o_series || gpt_version(name).is_some_and(|version| version >= (5, 0))
}

/// Maps the effort to the model's values; `None` for models that reject the field.
fn reasoning_effort(model: &str, effort: Effort) -> Option<&'static str> {
    let name = strip_vendor(model);
    let rejects_field =
        ["o1-mini", "o1-preview"].iter().any(|start| name.starts_with(start)) || name.contains("-chat");
    let supports_effort = is_openai_reasoner(model) && !rejects_field || name.starts_with("gpt-oss");
    let beyond_high = gpt_version(name).is_some_and(|version| version >= (5, 2));
    supports_effort.then_some(match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::Xhigh | Effort::Max if beyond_high => "xhigh",
        Effort::High | Effort::Xhigh | Effort::Max => "high",
    })
}

fn strip_vendor(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Parses the version: `gpt-5.2-codex` is (5, 2).
fn gpt_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers =
        name.strip_prefix("gpt-")?.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.split('.');
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0)))
}

fn render_tool(spec: &ToolSpec) -> Value {
    let mut parameters: Map<String, Value> = spec.input_schema.decode().unwrap_or_default();
    // Servers reject a schema without `type` and `properties`.
    parameters.entry("type").or_insert_with(|| json!("object"));
    parameters.entry("properties").or_insert_with(|| json!({}));
    json!({
        "type": "function",
        "function": { "name": spec.name, "description": spec.description, "parameters": parameters },
    })
}

fn translate_message(message: &ApiMessage, reasoning: ReasoningPolicy) -> Vec<ChatMessage<'_>> {
    match message.role {
        Role::User => translate_user_message(&message.content),
        Role::Assistant => translate_assistant_message(&message.content, reasoning).into_iter().collect(),
    }
}

/// Translates a user message. Tool results become separate messages in front; their images and documents follow in a
/// user message.
fn translate_user_message(blocks: &[Block]) -> Vec<ChatMessage<'_>> {
    let mut messages = Vec::new();
    let mut parts = Vec::new();
    for block in blocks {
        if let Block::ToolResult { tool_use_id, content, is_error } = block {
            let attached = attachments(tool_use_id, content.as_ref());
            let content = result_text(content.as_ref(), *is_error == Some(true), !attached.is_empty());
            messages.push(ChatMessage::Tool { tool_call_id: tool_use_id, content });
            parts.extend(attached);
        } else {
            parts.extend(content_part(block));
        }
    }
    if !parts.is_empty() {
        messages.push(ChatMessage::User { content: ChatContent::from_parts(parts) });
    }
    messages
}

/// Translates an assistant message; `None` if it would be empty, because providers reject that.
fn translate_assistant_message(blocks: &[Block], reasoning: ReasoningPolicy) -> Option<ChatMessage<'_>> {
    let text = join_texts(blocks.iter().filter_map(block_text));
    let content = (!text.is_empty()).then_some(text);
    let tool_calls: Vec<Value> = blocks.iter().filter_map(render_call).collect();
    if tool_calls.is_empty() {
        return content.map(|text| ChatMessage::Assistant {
            content: Some(text),
            reasoning_content: None,
            tool_calls,
        });
    }
    let thoughts = join_texts(blocks.iter().filter_map(unsigned_thinking));
    let resend = reasoning == ReasoningPolicy::Resend && !thoughts.is_empty();
    Some(ChatMessage::Assistant { content, reasoning_content: resend.then_some(thoughts), tool_calls })
}

/// Returns reasoning that came from this dialect: it has no signature.
fn unsigned_thinking(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking { thinking, signature } if signature.is_empty() => Some(thinking),
        _ => None,
    }
}

fn render_call(block: &Block) -> Option<Value> {
    match block {
        Block::ToolUse { id, name, input } => Some(json!({
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": input.to_string() },
        })),
        _ => None,
    }
}

fn block_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn join_texts<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Text of a tool result. The dialect has no error flag and rejects empty text, so both are expressed in words.
fn result_text(content: Option<&ResultContent>, failed: bool, attached: bool) -> String {
    let text = match content {
        None => String::new(),
        Some(ResultContent::Text(text)) => text.clone(),
        Some(ResultContent::Blocks(blocks)) => join_texts(blocks.iter().filter_map(block_text)),
    };
    let text = match (text.is_empty(), attached) {
        (true, true) => "(see the attachment below)".to_owned(),
        (true, false) => "(no output)".to_owned(),
        (false, _) => text,
    };
    let already_marked = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if failed && !already_marked { format!("Error: {text}") } else { text }
}

/// Images and documents of a tool result, preceded by a line that names the call.
fn attachments<'a>(id: &str, content: Option<&'a ResultContent>) -> Vec<ContentPart<'a>> {
    let Some(ResultContent::Blocks(blocks)) = content else { return Vec::new() };
    let mut parts: Vec<_> =
        blocks.iter().filter(|block| block_text(block).is_none()).filter_map(content_part).collect();
    if !parts.is_empty() {
        parts.insert(0, ContentPart::Text { text: format!("Attached to the result of call {id}:").into() });
    }
    parts
}

impl<'a> ChatContent<'a> {
    fn from_parts(parts: Vec<ContentPart<'a>>) -> Self {
        let texts: Option<Vec<&str>> = parts
            .iter()
            .map(|part| match part {
                ContentPart::Text { text } => Some(&**text),
                ContentPart::ImageUrl { .. } | ContentPart::File { .. } => None,
            })
            .collect();
        match texts {
            Some(texts) => Self::Text(texts.join("\n")),
            None => Self::Parts(parts),
        }
    }
}

/// Translates a block of a user message; `None` for blocks that exist only in another dialect.
fn content_part(block: &Block) -> Option<ContentPart<'_>> {
    match block {
        Block::Text { text, .. } if text.is_empty() => None,
        Block::Text { text, .. } => Some(ContentPart::Text { text: text.into() }),
        Block::Image { source } => Some(image_part(source)),
        Block::Document { source, title } => Some(document_part(source, title.as_deref())),
        _ => None,
    }
}

fn image_part(source: &Source) -> ContentPart<'_> {
    match source {
        Source::Base64 { media_type, data } => {
            ContentPart::ImageUrl { image_url: ImageUrlValue { url: data_url(media_type, data).into() } }
        }
        Source::Url { url } => ContentPart::ImageUrl { image_url: ImageUrlValue { url: url.into() } },
        Source::Text { data, .. } => ContentPart::Text { text: data.into() },
        Source::File { file_id } => unavailable_part("image", file_id),
    }
}

fn document_part<'a>(source: &'a Source, title: Option<&'a str>) -> ContentPart<'a> {
    match source {
        Source::Base64 { media_type, data } => ContentPart::File {
            file: FileValue {
                filename: title.unwrap_or("document.pdf"),
                file_data: data_url(media_type, data),
            },
        },
        Source::Text { data, .. } => ContentPart::Text { text: data.into() },
        Source::Url { url } => ContentPart::Text { text: format!("(document at {url})").into() },
        Source::File { file_id } => unavailable_part("document", file_id),
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

fn unavailable_part(kind: &str, file_id: &str) -> ContentPart<'static> {
    ContentPart::Text { text: format!("({kind} not available here: {file_id})").into() }
}

#[cfg(test)]
mod tests;
