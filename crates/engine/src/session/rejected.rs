//! What takes the place of messages that a provider has refused for good. They stay in the transcript, marked; the model is
//! not sent them again.

use whimbrel_wire::content::{Block, ResultContent};

/// Stands for a message.
const MESSAGE_PLACEHOLDER: &str = "(A message stood here that the provider refused. It is left out.)";

/// Stands for a result.
const RESULT_PLACEHOLDER: &str = "(The call was made, but the provider refused its result. It is left out.)";

/// What stands in the place of a message.
pub(crate) fn message_placeholder() -> Block {
    Block::text(MESSAGE_PLACEHOLDER)
}

/// What stands in the place of blocks: results stay results, because their calls need them; all else is one note.
pub(crate) fn block_placeholders(blocks: &[Block]) -> Vec<Block> {
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
