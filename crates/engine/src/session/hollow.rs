//! Pictures and documents without their bytes. A copy of a transcript that went over the wire lacks the large ones: a note
//! stands there, which providers would refuse as data.

use whimbrel_wire::content::{Block, ResultContent, Source};

/// How much of some data is looked at: a note shows itself by its first letters.
const LOOKED_AT: usize = 64;

/// The block as it can be sent: a text that says what is missing, if its bytes are not there.
pub(super) fn fill(block: Block) -> Block {
    match block {
        Block::Image { source } if is_hollow(&source) => missing("picture"),
        Block::Document { source, .. } if is_hollow(&source) => missing("document"),
        Block::ToolResult { tool_use_id, content: Some(ResultContent::Blocks(blocks)), is_error } => {
            let content = Some(ResultContent::Blocks(blocks.into_iter().map(fill).collect()));
            Block::ToolResult { tool_use_id, content, is_error }
        }
        block => block,
    }
}

fn is_hollow(source: &Source) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    match source {
        Source::Base64 { data, .. } => data.is_empty() || !data.bytes().take(LOOKED_AT).all(is_base64),
        Source::Url { .. } | Source::Text { .. } | Source::File { .. } => false,
    }
}

fn missing(what: &str) -> Block {
    Block::text(format!("(A {what} stood here that was too large to be kept with the conversation.)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_lost_its_bytes_is_said_to_be_missing() {
        let document = |data: &str| Block::Document {
            source: Source::Base64 { media_type: "application/pdf".into(), data: data.into() },
            title: None,
        };
        let result = |block: Block| Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![Block::text("d.pdf"), block])),
            is_error: None,
        };
        let note = " [... 4000 bytes left out to keep the line short]";
        assert_eq!(fill(document("QUJD")), document("QUJD"));
        assert_eq!(fill(document(note)), missing("document"));
        assert_eq!(fill(result(document(note))), result(missing("document")));
        assert_eq!(fill(result(document("QUJD"))), result(document("QUJD")));
    }
}
