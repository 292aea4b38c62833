//! What a prompt may hold: blocks that every provider refuses are taken out before they can spoil the conversation. What
//! providers may differ about, such as kinds of blocks that we do not know, is left to them.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use whimbrel_wire::content::{Block, Content, Source};

/// The content as it can be sent, and what the host should know about what was taken out of it.
pub fn sanitize(content: &Content) -> (Cow<'_, Content>, Vec<String>) {
    let Content::Blocks(blocks) = content else { return (Cow::Borrowed(content), Vec::new()) };
    let troubles: Vec<Option<&'static str>> = blocks.iter().map(rejection_reason).collect();
    let warnings: Vec<String> =
        troubles.iter().flatten().map(|why| format!("{why} It is left out.")).collect();
    if warnings.is_empty() {
        return (Cow::Borrowed(content), warnings);
    }
    let fine = blocks.iter().zip(&troubles).filter(|(_, trouble)| trouble.is_none());
    let mut kept: Vec<Block> = fine.map(|(block, _)| block.clone()).collect();
    kept.extend(warnings.iter().map(|warning| Block::text(format!("({warning})"))));
    (Cow::Owned(Content::Blocks(kept)), warnings)
}

/// Why a block cannot stand in a prompt.
fn rejection_reason(block: &Block) -> Option<&'static str> {
    match block {
        Block::ToolResult { .. } => Some("The prompt has a tool result, but no call waits for one."),
        Block::ToolUse { .. } => Some("The prompt has a tool call, which only a model can make."),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => {
            Some("The prompt has thinking, which only a model can do.")
        }
        Block::Image { source } if !is_valid_source(source) => Some("The prompt has a picture that is not base64."),
        Block::Document { source, .. } if !is_valid_source(source) => {
            Some("The prompt has a document that is not base64.")
        }
        Block::Text { .. } | Block::Image { .. } | Block::Document { .. } | Block::Other(_) => None,
    }
}

/// Whether what is given as base64 is.
pub(crate) fn is_valid_source(source: &Source) -> bool {
    match source {
        Source::Base64 { data, .. } => !data.is_empty() && BASE64_STANDARD.decode(data).is_ok(),
        Source::Url { .. } | Source::Text { .. } | Source::File { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_every_provider_refuses_is_taken_out_and_said() {
        let picture = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
        let rows: [(Value, Option<&str>); 7] = [
            (json!({"type": "text", "text": "x"}), None),
            (json!({"type": "brand_new", "x": 1}), None),
            (picture("aGk="), None),
            (picture("!!!"), Some("picture that is not base64")),
            (picture(""), Some("picture that is not base64")),
            (json!({"type": "tool_result", "tool_use_id": "t"}), Some("no call waits")),
            (json!({"type": "tool_use", "id": "t", "name": "x", "input": {}}), Some("only a model")),
        ];
        for (block, expected) in rows {
            let content: Content =
                serde_json::from_value(json!([{"type": "text", "text": "see"}, block])).unwrap();
            let (vetted, warnings) = sanitize(&content);
            match expected {
                None => assert_eq!((vetted.as_ref(), warnings), (&content, Vec::new())),
                Some(words) => {
                    assert!(warnings.len() == 1 && warnings[0].contains(words), "{warnings:?}");
                    assert_eq!(vetted.joined_text(), format!("see\n({})", warnings[0]));
                }
            }
        }
    }
}
