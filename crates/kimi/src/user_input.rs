//! What a client sends as `user_input`: a text, or parts.

use serde_json::Value;
use whimbrel::wire::content::{Block, Content, Source};

use crate::json_rpc::{INPUT_NOT_SUPPORTED, RpcError};

/// Checks the input of a prompt, and returns it for the engine.
pub(crate) fn to_content(user_input: &Value) -> Result<Content, RpcError> {
    match user_input {
        Value::String(text) => Ok(Content::Text(text.clone())),
        _ => to_blocks(user_input).map(Content::Blocks),
    }
}

/// The blocks of an input.
pub(crate) fn to_blocks(user_input: &Value) -> Result<Vec<Block>, RpcError> {
    match user_input {
        Value::String(text) => Ok(vec![Block::text(text)]),
        Value::Array(parts) => parts.iter().filter_map(|part| to_block(part).transpose()).collect(),
        _ => Err(RpcError::invalid_params("`user_input` must be a text or a list of parts.")),
    }
}

/// Whether the input has an image.
pub(crate) fn has_image(content: &Content) -> bool {
    matches!(content, Content::Blocks(blocks) if blocks.iter().any(|block| matches!(block, Block::Image { .. })))
}

/// The text of an input.
pub(crate) fn text(content: &Content) -> String {
    content.joined_text()
}

/// A part as a block; `None` for a thought, which is not input.
fn to_block(part: &Value) -> Result<Option<Block>, RpcError> {
    let missing = |field: &str| RpcError::invalid_params(format!("A part of `user_input` has no `{field}`."));
    match part["type"].as_str() {
        Some("text") => Ok(Some(Block::text(part["text"].as_str().ok_or_else(|| missing("text"))?))),
        Some("image_url") => {
            let url = part["image_url"]["url"].as_str().ok_or_else(|| missing("image_url.url"))?;
            Ok(Some(Block::Image { source: image_source(url)? }))
        }
        Some("think") => Ok(None),
        Some(kind @ ("audio_url" | "video_url")) => Err(RpcError::new(
            INPUT_NOT_SUPPORTED,
            format!("Parts of the type {kind} are not supported. Send text and images."),
        )),
        Some(kind) => Err(RpcError::invalid_params(format!("{kind:?} is not a type of a part."))),
        None => Err(missing("type")),
    }
}

fn image_source(url: &str) -> Result<Source, RpcError> {
    let Some(data) = url.strip_prefix("data:") else { return Ok(Source::Url { url: url.to_owned() }) };
    let (media_type, data) = data
        .split_once(";base64,")
        .ok_or_else(|| RpcError::invalid_params("The data URI of an image is not in base64."))?;
    Ok(Source::Base64 { media_type: media_type.to_owned(), data: data.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_become_blocks_or_errors() {
        let image = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
        let picture =
            Block::Image { source: Source::Base64 { media_type: "image/png".into(), data: "QQ==".into() } };
        let link = Block::Image { source: Source::Url { url: "https://x/y.png".into() } };
        let rows = [
            ("text", json!([{"type": "text", "text": "a"}]), Ok(vec![Block::text("a")])),
            ("data", image("data:image/png;base64,QQ=="), Ok(vec![picture])),
            ("link", image("https://x/y.png"), Ok(vec![link])),
            ("thought", json!([{"type": "think", "think": "a"}]), Ok(vec![])),
            ("audio", json!([{"type": "audio_url", "audio_url": {"url": "x"}}]), Err(INPUT_NOT_SUPPORTED)),
            ("unknown", json!([{"type": "smell"}]), Err(crate::json_rpc::INVALID_PARAMS)),
            ("number", json!(7), Err(crate::json_rpc::INVALID_PARAMS)),
        ];
        for (name, input, expected) in rows {
            assert_eq!(to_blocks(&input).map_err(|error| error.code), expected, "{name}");
        }
    }
}
