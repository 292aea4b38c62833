//! The messages of a stored session as updates, as the editor would have got them while they were made. Pure.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate, ToolCall, ToolCallStatus,
};
use serde::Deserialize;
use serde_json::Value;
use whimbrel::store::Message;
use whimbrel::wire::content::{Block, Content, ResultContent, Source, Usage};

use crate::prompt::CONTEXT_TAG;
use crate::translate::result::{RawResult, without_reminders};
use crate::translate::{Translator, text_chunk};

/// Beginnings of texts that the engine wrote in place of the user.
const ENGINE_TEXTS: [&str; 5] = [
    CONTEXT_TAG,
    "[Request interrupted by user",
    "<task-notification>",
    "<local-command-caveat>",
    "<context>",
];

/// The result of a call.
struct StoredResult<'a> {
    structured: Option<&'a Value>,
    for_model: Option<ResultContent>,
    is_error: bool,
}

impl StoredResult<'_> {
    fn as_raw(&self) -> RawResult<'_> {
        RawResult { structured: self.structured, for_model: self.for_model.as_ref(), is_error: self.is_error }
    }
}

/// Updates for all messages. The translator then knows the plan.
pub(crate) fn replay(translator: &mut Translator, messages: &[Message]) -> Vec<SessionUpdate> {
    let results = stored_results(messages);
    let mut updates = Vec::new();
    for message in messages {
        let blocks = blocks_of(message);
        match message.kind.as_str() {
            "user" => updates.extend(blocks.into_iter().filter_map(|block| user_chunk(block, &message.uuid))),
            _ => {
                let reply_id = message.message["id"].as_str();
                if let Ok(usage) = Usage::deserialize(&message.message["usage"]) {
                    translator.set_usage(&usage);
                }
                for block in blocks {
                    replay_reply_block(translator, block, reply_id, &results, &mut updates);
                }
            }
        }
    }
    updates
}

/// The results of all calls, so that each call is shown with its final state.
fn stored_results(messages: &[Message]) -> HashMap<String, StoredResult<'_>> {
    let mut results = HashMap::new();
    for message in messages.iter().filter(|message| message.kind == "user") {
        for block in blocks_of(message) {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                let structured = message.tool_use_result.as_ref();
                let is_error = is_error.unwrap_or(false);
                let result = StoredResult { structured, for_model: content, is_error };
                results.insert(tool_use_id, result);
            }
        }
    }
    results
}

fn replay_reply_block(
    translator: &mut Translator,
    block: Block,
    reply_id: Option<&str>,
    results: &HashMap<String, StoredResult<'_>>,
    updates: &mut Vec<SessionUpdate>,
) {
    match block {
        Block::Text { text, .. } if !text.trim().is_empty() => {
            updates.push(SessionUpdate::AgentMessageChunk(text_chunk(&text, reply_id)));
        }
        Block::Thinking { thinking, .. } if !thinking.is_empty() => {
            updates.push(SessionUpdate::AgentThoughtChunk(text_chunk(&thinking, reply_id)));
        }
        Block::ToolUse { id, name, input } => {
            let call = translator.calls.complete_input(&id, &name, &input, None);
            let finished = match results.get(&id) {
                Some(result) => translator.finish_call(&id, result.as_raw()),
                None => translator.calls.close_all(),
            };
            updates.extend(join_call(call, finished));
        }
        _ => {}
    }
}

/// Joins a call and its result to one update; others follow it.
fn join_call(call: Option<SessionUpdate>, finished: Vec<SessionUpdate>) -> Vec<SessionUpdate> {
    let Some(SessionUpdate::ToolCall(mut call)) = call else { return finished };
    let mut others = Vec::new();
    for update in finished {
        match update {
            SessionUpdate::ToolCallUpdate(update) if update.tool_call_id == call.tool_call_id => {
                call.update(update.fields);
                call = match (call.meta.clone(), update.meta) {
                    (Some(mut meta), Some(mut more)) => {
                        meta.append(&mut more);
                        call.meta(meta)
                    }
                    (None, Some(more)) => call.meta(more),
                    (_, None) => call,
                };
            }
            other => others.push(other),
        }
    }
    if call.status == ToolCallStatus::Pending {
        call = ToolCall::status(call, ToolCallStatus::Failed);
    }
    std::iter::once(SessionUpdate::ToolCall(call)).chain(others).collect()
}

fn blocks_of(message: &Message) -> Vec<Block> {
    match &message.message["content"] {
        Value::String(text) => vec![Block::text(text)],
        content => {
            serde_json::from_value::<Content>(content.clone()).map(Content::into_blocks).unwrap_or_default()
        }
    }
}

fn user_chunk(block: Block, uuid: &str) -> Option<SessionUpdate> {
    match block {
        Block::Text { text, .. } => shown_prompt(&text).map(|shown| match shown {
            ShownPrompt::User(text) => SessionUpdate::UserMessageChunk(text_chunk(&text, Some(uuid))),
            ShownPrompt::CommandOutput(text) => {
                SessionUpdate::AgentMessageChunk(text_chunk(&text, Some(uuid)))
            }
        }),
        Block::Image { source: Source::Base64 { media_type, data } } => {
            let chunk = ContentChunk::new(ContentBlock::Image(ImageContent::new(data, media_type)));
            Some(SessionUpdate::UserMessageChunk(chunk.message_id(MessageId::new(uuid))))
        }
        _ => None,
    }
}

enum ShownPrompt {
    User(String),
    CommandOutput(String),
}

/// What the user has typed, or what a command has printed; `None` for texts of the engine.
fn shown_prompt(text: &str) -> Option<ShownPrompt> {
    let text = without_reminders(text);
    if text.is_empty() || ENGINE_TEXTS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    if let Some(output) = between(&text, "<local-command-stdout>", "</local-command-stdout>") {
        return (!output.trim().is_empty()).then(|| ShownPrompt::CommandOutput(output.to_owned()));
    }
    if let Some(name) = between(&text, "<command-name>", "</command-name>") {
        let arguments = between(&text, "<command-args>", "</command-args>").unwrap_or_default();
        let line = format!("/{} {arguments}", name.trim_start_matches('/'));
        return Some(ShownPrompt::User(line.trim_end().to_owned()));
    }
    Some(ShownPrompt::User(text))
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inner, _)| inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::capabilities::ClientFeatures;

    fn message(kind: &str, content: &Value, tool_use_result: Option<Value>) -> Message {
        Message {
            kind: kind.into(),
            uuid: "u".into(),
            session_id: "s".into(),
            message: json!({"id": "m", "content": content}),
            parent_tool_use_id: None,
            timestamp: None,
            tool_use_result,
        }
    }

    fn replayed(messages: &[Message]) -> Vec<Value> {
        let mut translator = Translator::new("/w".into(), ClientFeatures::default());
        replay(&mut translator, messages).iter().map(|update| json!(update)).collect()
    }

    #[test]
    fn conversation_is_shown_in_order_with_final_calls() {
        let call =
            |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/w/a"}});
        let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": "1 x"}]);
        let structured = json!({"type": "text", "file": {"content": "x"}});
        let messages = [
            message("user", &json!("hello"), None),
            message("assistant", &json!([{"type": "thinking", "thinking": "hm", "signature": ""}]), None),
            message("assistant", &json!([call("c"), call("lost")]), None),
            message("user", &result, Some(structured)),
            message("assistant", &json!([{"type": "text", "text": "done"}]), None),
        ];
        let updates = replayed(&messages);
        let kinds: Vec<&str> =
            updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
        let expected =
            ["user_message_chunk", "agent_thought_chunk", "tool_call", "tool_call", "agent_message_chunk"];
        assert_eq!(kinds, expected);
        assert_eq!((&updates[2]["status"], &updates[3]["status"]), (&json!("completed"), &json!("failed")));
        assert_eq!(updates[2]["content"][0]["content"]["text"], "```\nx\n```");
        assert_eq!(updates[4]["messageId"], "m");
    }

    #[test]
    fn texts_of_the_engine_are_left_out() {
        let rows = [
            ("<system-reminder>x</system-reminder>", None),
            ("[Request interrupted by user]", None),
            ("<context ref=\"file:///a\">\nx\n</context>", None),
            ("<command-name>/greet</command-name>\n<command-args>Ada</command-args>", Some("/greet Ada")),
            ("<local-command-stdout>out</local-command-stdout>", Some("out")),
            ("plain", Some("plain")),
        ];
        for (text, expected) in rows {
            let updates = replayed(&[message("user", &json!(text), None)]);
            let shown = updates.first().and_then(|update| update["content"]["text"].as_str());
            assert_eq!(shown, expected, "{text}");
        }
    }
}
