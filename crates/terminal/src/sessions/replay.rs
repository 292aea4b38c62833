//! The messages of a stored session as entries of the transcript.

use std::time::Duration;

use serde_json::Value;
use whimbrel::store::Message;

use super::RecordedPrompt;
use crate::transcript::{FinishedCall, Item, PromptEntry};

/// What a resumed session shows at most.
const MAX_TURNS: usize = 2;

/// The entries before the last turns, and those of the last turns.
pub(crate) fn split_items(messages: &[Message]) -> (Vec<Item>, Vec<Item>) {
    let mut items = items(messages);
    let starts: Vec<usize> = items
        .iter()
        .enumerate()
        .filter(|(_, item)| matches!(item, Item::User { .. }))
        .map(|(index, _)| index)
        .collect();
    let start = starts.len().checked_sub(MAX_TURNS).map_or(0, |turn| starts[turn]);
    let last = items.split_off(start);
    (items, last)
}

/// The prompts of the session, oldest first.
pub(crate) fn prompts(messages: &[Message]) -> Vec<RecordedPrompt> {
    let prompts = messages.iter().filter(|message| message.kind == "user").filter_map(|message| {
        let text = prompt_text(&message.message)?;
        Some(RecordedPrompt { uuid: message.uuid.clone(), text })
    });
    prompts.collect()
}

fn items(messages: &[Message]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut open: Vec<(String, String, Value)> = Vec::new();
    for message in messages {
        if message.kind == "user"
            && let Some(text) = prompt_text(&message.message)
        {
            items.push(Item::User { text, entry: PromptEntry::Turn });
            continue;
        }
        for block in message.message["content"].as_array().into_iter().flatten() {
            let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("text") if message.kind == "assistant" => items.push(Item::Answer(field("text"))),
                Some("tool_use") => open.push((field("id"), field("name"), block["input"].clone())),
                Some("tool_result") => {
                    let id = field("tool_use_id");
                    let Some(index) = open.iter().position(|(open_id, ..)| *open_id == id) else { continue };
                    let (id, name, input) = open.remove(index);
                    let call = FinishedCall {
                        id,
                        name,
                        input,
                        text: result_text(&block["content"]),
                        is_error: block["is_error"] == true,
                        structured: message.tool_use_result.clone(),
                        elapsed: Duration::ZERO,
                    };
                    items.push(Item::Call(Box::new(call.limited())));
                }
                _ => {}
            }
        }
    }
    items
}

/// The text of a prompt; `None` for tool results and for what the engine added.
fn prompt_text(message: &Value) -> Option<String> {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            if blocks.iter().any(|block| block["type"] == "tool_result") {
                return None;
            }
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.filter(|text| !text.starts_with("<system-reminder>")).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    (!text.trim().is_empty() && !text.starts_with('<')).then_some(text)
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, uuid: &str, content: impl Into<Value>) -> Message {
        let content = content.into();
        Message {
            kind: kind.into(),
            uuid: uuid.into(),
            session_id: "s".into(),
            message: json!({"role": kind, "content": content}),
            parent_tool_use_id: None,
            timestamp: None,
            tool_use_result: None,
            command_exit: None,
        }
    }

    fn messages() -> Vec<Message> {
        vec![
            message("user", "p1", json!("first")),
            message("assistant", "a1", json!([{"type": "text", "text": "one"}])),
            message("user", "p2", json!([{"type": "text", "text": "second"}])),
            message(
                "assistant",
                "a2",
                json!([{"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "a"}}]),
            ),
            message("user", "r", json!([{"type": "tool_result", "tool_use_id": "t", "content": "text"}])),
            message("user", "p3", json!("third")),
            message("assistant", "a3", json!([{"type": "text", "text": "three"}])),
        ]
    }

    #[test]
    fn last_turns_are_split_from_the_rest() {
        let (earlier, items) = split_items(&messages());
        assert_eq!(earlier.len(), 2);
        assert!(matches!(&items[0], Item::User { text, .. } if text == "second"));
        assert!(matches!(&items[1], Item::Call(call) if call.text == "text"));
        assert_eq!(items.len(), 4);
    }

    #[test]
    fn prompts_are_those_that_the_user_typed() {
        let found: Vec<String> = prompts(&messages()).into_iter().map(|prompt| prompt.uuid).collect();
        assert_eq!(found, ["p1", "p2", "p3"]);
    }
}
