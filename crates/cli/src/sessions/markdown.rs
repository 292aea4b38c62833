//! Renders a conversation as Markdown. Pure.

use serde_json::Value;
use whimbrel_session_store::transcript_reader::Message;

/// Maximum number of lines per tool result.
const MAX_OUTPUT_LINES: usize = 40;

/// Renders a message; empty if there is nothing to read in it.
pub(super) fn render_message(message: &Message) -> String {
    let parts: Vec<String> = match &message.message["content"] {
        Value::String(text) => vec![close_fences(text.trim())],
        Value::Array(blocks) => blocks.iter().map(render_block).collect(),
        _ => Vec::new(),
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let text = parts.join("\n\n");
    match (message.kind.as_str(), is_prompt(message)) {
        _ if text.is_empty() => String::new(),
        ("user", true) => format!("## Prompt\n\n{text}\n\n"),
        _ => format!("{text}\n\n"),
    }
}

/// Returns whether a message is not a tool result.
fn is_prompt(message: &Message) -> bool {
    match &message.message["content"] {
        Value::Array(blocks) => !blocks.iter().any(|block| block["type"] == "tool_result"),
        _ => true,
    }
}

fn render_block(block: &Value) -> String {
    match block["type"].as_str() {
        Some("text") => close_fences(block["text"].as_str().unwrap_or_default().trim()),
        Some("tool_use") => render_call(block["name"].as_str().unwrap_or("?"), &block["input"]),
        Some("tool_result") => render_output(&result_text(&block["content"]), block["is_error"] == true),
        Some("image") => "*(an image)*".into(),
        Some("document") => "*(a document)*".into(),
        _ => String::new(),
    }
}

fn render_call(name: &str, input: &Value) -> String {
    let fields = input.as_object().into_iter().flatten();
    let mut text = format!("**{name}**");
    for (field, value) in fields {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if value.contains('\n') || value.len() > 80 {
            text += &format!("\n\n{field}:\n{}", fence(&value));
        } else {
            text += &format!(" {field}: `{}`", value.replace('`', "'"));
        }
    }
    text
}

fn render_output(text: &str, failed: bool) -> String {
    let total = text.lines().count();
    let mut lines: Vec<&str> = text.lines().take(MAX_OUTPUT_LINES).collect();
    let more = format!("... {} more lines", total.saturating_sub(MAX_OUTPUT_LINES));
    if total > MAX_OUTPUT_LINES {
        lines.push(&more);
    }
    let heading = if failed { "Failed:\n" } else { "" };
    if lines.is_empty() { String::new() } else { heading.to_owned() + &fence(&lines.join("\n")) }
}

/// Closes a code fence that was left open: it would swallow everything after it.
fn close_fences(text: &str) -> String {
    let mut open: Option<&str> = None;
    for line in text.lines().map(str::trim_start) {
        let marker = line.chars().next().filter(|marker| matches!(marker, '`' | '~')).unwrap_or(' ');
        let (fence, rest) = line.split_at(line.len() - line.trim_start_matches(marker).len());
        if marker == ' ' || fence.len() < 3 {
            continue;
        }
        open = match open {
            None if marker == '~' || !rest.contains('`') => Some(fence),
            Some(opening)
                if opening.starts_with(marker) && fence.len() >= opening.len() && rest.trim().is_empty() =>
            {
                None
            }
            same => same,
        };
    }
    open.map_or_else(|| text.to_owned(), |fence| format!("{text}\n{fence}"))
}

/// Fences a text with more backticks than any in it.
fn fence(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// Returns the text of a tool result.
pub(super) fn result_text(content: &Value) -> String {
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

    fn render(kind: &str, content: &Value) -> String {
        render_message(&Message {
            kind: kind.into(),
            uuid: "u".into(),
            session_id: "s".into(),
            message: json!({ "content": content }),
            parent_tool_use_id: None,
            timestamp: None,
            tool_use_result: None,
            command_exit: None,
        })
    }

    #[test]
    fn each_kind_of_block_is_rendered() {
        assert_eq!(render("user", &json!("Do it\n")), "## Prompt\n\nDo it\n\n");
        let reply = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."},
            {"type": "tool_use", "name": "Bash", "input": {"command": "ls", "timeout": 5}}]);
        assert_eq!(render("assistant", &reply), "Yes.\n\n**Bash** command: `ls` timeout: `5`\n\n");
        let result = json!([{"type": "tool_result", "is_error": true, "content": [{"type": "text", "text": "a ``` b\n"}]}]);
        assert_eq!(render("user", &result), "Failed:\n````\na ``` b\n````\n\n");
        let long = json!([{"type": "tool_result", "content": "x\n".repeat(50)}]);
        assert!(render("user", &long).contains("\n... 10 more lines\n"));
        assert_eq!(render("user", &json!([{"type": "tool_result", "content": ""}])), "");
        assert_eq!(render("assistant", &json!([{"type": "thinking", "thinking": "hm"}])), "");
        assert_eq!(render("user", &json!(7)), "");
    }

    #[test]
    fn open_fence_is_closed() {
        let rows = [
            ("a\n```rust\nb", "a\n```rust\nb\n```"),
            ("```\na\n```", "```\na\n```"),
            ("````\n```\n", "````\n```\n````"),
            ("~~~\n```", "~~~\n```\n~~~"),
            ("inline ``` here", "inline ``` here"),
            ("```a``` b", "```a``` b"),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(close_fences(text.trim()), expected, "{text}");
        }
    }
}
