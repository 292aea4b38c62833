//! Renders a history as plain text (pure), for a summary of a conversation that is too long to be sent in full.

use whimbrel_models::history::ApiMessage;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::{Block, Role};

/// Limit on one text block.
const MAX_TEXT_BYTES: usize = 12_000;

/// Limit on a tool result or the input of a call.
const MAX_RESULT_BYTES: usize = 1_500;

/// Divisor that gives the share of the beginning, where the task is.
const HEAD_DIVISOR: usize = 4;

/// Renders the history in about `limit` bytes: the beginning and, mainly, the end.
pub(super) fn render_history(messages: &[ApiMessage], limit: usize) -> String {
    let texts = messages
        .iter()
        .flat_map(|message| message.content.iter().filter_map(|block| render_block(message.role, block)));
    truncate_middle(
        &texts.collect::<Vec<_>>().join("\n"),
        limit,
        "\n\n(Part of the conversation is left out here.)\n\n",
    )
}

/// Renders one block; thinking and reminders are skipped.
fn render_block(role: Role, block: &Block) -> Option<String> {
    Some(match block {
        Block::Text { text, .. } if text.starts_with("<system-reminder>") => return None,
        Block::Text { text, .. } => {
            let speaker = match role {
                Role::User => "User",
                Role::Assistant => "Agent",
            };
            format!("{speaker}: {}", truncate_middle(text, MAX_TEXT_BYTES, " [...] "))
        }
        Block::ToolUse { name, input, .. } => {
            format!(
                "Agent calls {name}: {}",
                truncate_middle(&input.to_string(), MAX_RESULT_BYTES, " [...] ")
            )
        }
        Block::ToolResult { content, .. } => {
            let text = content.as_ref().map(result_text).unwrap_or_default();
            format!("Result: {}", truncate_middle(&text, MAX_RESULT_BYTES, " [...] "))
        }
        Block::Image { .. } => "(an image)".to_owned(),
        Block::Document { .. } => "(a document)".to_owned(),
        _ => return None,
    })
}

fn result_text(content: &ResultContent) -> String {
    match content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => {
            let texts = blocks.iter().map(|block| match block {
                Block::Text { text, .. } => text.as_str(),
                _ => "(content that is not text)",
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Truncates a text to about `limit` bytes by removing its middle.
fn truncate_middle(text: &str, limit: usize, gap: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / HEAD_DIVISOR);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / HEAD_DIVISOR));
    format!("{}{gap}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(role: &str, content: &serde_json::Value) -> ApiMessage {
        serde_json::from_value(json!({"role": role, "content": content})).unwrap()
    }

    #[test]
    fn messages_and_calls_are_rendered_in_order() {
        let messages = [
            message(
                "user",
                &json!([{"type": "text", "text": "<system-reminder>\nToday"}, {"type": "text", "text": "Look."}]),
            ),
            message(
                "assistant",
                &json!([
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "a"}},
                ]),
            ),
            message(
                "user",
                &json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "hello"}]}]),
            ),
            message("assistant", &json!([{"type": "text", "text": "It says hello."}])),
        ];
        let texts =
            "User: Look.\nAgent calls Read: {\"file_path\":\"a\"}\nResult: hello\nAgent: It says hello.";
        assert_eq!(render_history(&messages, 10_000), texts);
    }

    #[test]
    fn long_history_keeps_beginning_and_end() {
        let user_message = |text: String| message("user", &json!([{"type": "text", "text": text}]));
        let messages: Vec<ApiMessage> =
            (0..2000).map(|n| user_message(format!("number {n} größer"))).collect();
        let texts = render_history(&messages, 4_000);
        assert!(texts.len() < 4_100, "{}", texts.len());
        assert!(texts.starts_with("User: number 0 ") && texts.ends_with("number 1999 größer"));
        assert!(texts.contains("left out"));
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ß".repeat(100_000)}]);
        assert!(render_history(&[message("user", &result)], 1_000_000).len() < 2_000);
    }
}
