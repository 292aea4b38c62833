//! Sanitizes prompts: blocks that every provider rejects are dropped before they enter the conversation. Blocks on
//! which providers may differ, such as unknown types, are kept.

use std::borrow::Cow;

use whimbrel_session_store::load::repair::is_valid_source;
use whimbrel_wire::content::{Block, Content};

/// Returns the content without invalid blocks, and warnings about what was dropped.
pub fn sanitize(content: &Content) -> (Cow<'_, Content>, Vec<String>) {
    let Content::Blocks(blocks) = content else { return (Cow::Borrowed(content), Vec::new()) };
    let reasons: Vec<Option<&'static str>> = blocks.iter().map(rejection_reason).collect();
    let warnings: Vec<String> =
        reasons.iter().flatten().map(|reason| format!("{reason} It is left out.")).collect();
    if warnings.is_empty() {
        return (Cow::Borrowed(content), warnings);
    }
    let kept = blocks.iter().zip(&reasons).filter(|(_, error)| error.is_none());
    let mut valid: Vec<Block> = kept.map(|(block, _)| block.clone()).collect();
    valid.extend(warnings.iter().map(|warning| Block::text(format!("({warning})"))));
    (Cow::Owned(Content::Blocks(valid)), warnings)
}

/// The reason why a block is invalid in a prompt, if it is.
fn rejection_reason(block: &Block) -> Option<&'static str> {
    match block {
        Block::ToolResult { .. } => Some("The prompt has a tool result, but no tool call is pending."),
        Block::ToolUse { .. } => Some("The prompt has a tool call, which only a model can make."),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => {
            Some("The prompt has a thinking block, which only a model can make.")
        }
        Block::Image { source } if !is_valid_source(source) => {
            Some("The prompt has an image that is not valid base64.")
        }
        Block::Document { source, .. } if !is_valid_source(source) => {
            Some("The prompt has a document that is not valid base64.")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn invalid_blocks_are_dropped_with_warning() {
        let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
        let rows: [(Value, Option<&str>); 7] = [
            (json!({"type": "text", "text": "x"}), None),
            (json!({"type": "brand_new", "x": 1}), None),
            (image("aGk="), None),
            (image("!!!"), Some("image that is not valid base64")),
            (image(""), Some("image that is not valid base64")),
            (json!({"type": "tool_result", "tool_use_id": "t"}), Some("no tool call is pending")),
            (json!({"type": "tool_use", "id": "t", "name": "x", "input": {}}), Some("only a model")),
        ];
        for (block, expected) in rows {
            let content: Content =
                serde_json::from_value(json!([{"type": "text", "text": "see"}, block])).unwrap();
            let (sanitized, warnings) = sanitize(&content);
            match expected {
                None => assert_eq!((sanitized.as_ref(), warnings), (&content, Vec::new())),
                Some(part) => {
                    assert!(warnings.len() == 1 && warnings[0].contains(part), "{warnings:?}");
                    assert_eq!(sanitized.joined_text(), format!("see\n({})", warnings[0]));
                }
            }
        }
    }
}
