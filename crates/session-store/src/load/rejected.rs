//! Placeholders for messages that a provider rejected permanently. The originals stay in the transcript and are not
//! sent again.

use whimbrel_wire::content::{Block, ResultContent};

const MESSAGE_PLACEHOLDER: &str = "(A message stood here that the provider refused. It is left out.)";

const RESULT_PLACEHOLDER: &str = "(The call was made, but the provider refused its result. It is left out.)";

pub fn message_placeholder() -> Block {
    Block::text(MESSAGE_PLACEHOLDER)
}

/// Placeholders for blocks: each tool result stays a result, because its call needs one; all other blocks become one
/// text.
pub fn block_placeholders(blocks: &[Block]) -> Vec<Block> {
    let mut stand_ins: Vec<Block> = blocks.iter().filter_map(result_placeholder).collect();
    if stand_ins.len() < blocks.len() {
        stand_ins.push(message_placeholder());
    }
    stand_ins
}

fn result_placeholder(block: &Block) -> Option<Block> {
    match block {
        Block::ToolResult { tool_use_id, is_error, .. } => Some(Block::ToolResult {
            tool_use_id: tool_use_id.clone(),
            content: Some(ResultContent::Text(RESULT_PLACEHOLDER.into())),
            is_error: *is_error,
        }),
        _ => None,
    }
}
