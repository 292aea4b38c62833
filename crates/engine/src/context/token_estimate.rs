//! Estimates of tokens, for content that the provider has not counted yet.

use whimbrel_wire::{Block, RawJson};

/// Estimate for text.
const BYTES_PER_TOKEN: u64 = 4;

/// Estimate for an image.
const IMAGE_TOKENS: u64 = 1_600;

/// Estimate for a page of a document, in tokens and in bytes.
const PAGE_TOKENS_AND_BYTES: (u64, u64) = (2_000, 50_000);
/// Limit on pages of a document in a request.
const MAX_DOCUMENT_PAGES: u64 = 100;
/// Limit on pages in one tool result.
const MAX_RESULT_PAGES: u64 = 20;

/// Estimates the tokens of a block. Images and documents are not measured by their bytes: scans have many bytes and
/// few pages.
pub fn estimate_tokens(block: &Block) -> u64 {
    estimate_with_page_limit(block, MAX_DOCUMENT_PAGES)
}

fn estimate_with_page_limit(block: &Block, pages: u64) -> u64 {
    match block {
        Block::Image { .. } => IMAGE_TOKENS,
        Block::Document { .. } => {
            (json_size(block) / PAGE_TOKENS_AND_BYTES.1 + 1).min(pages) * PAGE_TOKENS_AND_BYTES.0
        }
        Block::ToolResult { content: Some(content), .. } => match content {
            whimbrel_wire::content::ResultContent::Blocks(blocks) => {
                blocks.iter().map(|block| estimate_with_page_limit(block, MAX_RESULT_PAGES)).sum()
            }
            whimbrel_wire::content::ResultContent::Text(text) => text.len() as u64 / BYTES_PER_TOKEN,
        },
        Block::Text { text, .. } => text.len() as u64 / BYTES_PER_TOKEN,
        block => json_size(block) / BYTES_PER_TOKEN,
    }
}

fn json_size(block: &Block) -> u64 {
    RawJson::from_value(block).map_or(0, |json| json.as_str().len() as u64)
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::content::{ResultContent, Source};

    use super::*;

    #[test]
    fn scanned_document_counts_by_pages() {
        let document = |bytes: usize| {
            let source = Source::Base64 { media_type: "application/pdf".into(), data: "A".repeat(bytes) };
            Block::Document { source, title: None }
        };
        let read = |bytes| Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![document(bytes)])),
            is_error: None,
        };
        assert_eq!(estimate_tokens(&document(60_000)), 4_000);
        assert_eq!(estimate_tokens(&document(20 << 20)), 200_000);
        assert_eq!(estimate_tokens(&read(20 << 20)), 40_000);
    }

    #[test]
    fn images_are_not_measured_by_bytes() {
        let image = serde_json::json!({
            "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(400_000)},
        });
        let image: Block = serde_json::from_value(image).unwrap();
        assert_eq!(estimate_tokens(&image), 1_600);
        let result = Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![image, Block::text("x".repeat(400))])),
            is_error: None,
        };
        assert_eq!(estimate_tokens(&result), 1_700);
    }
}
