//! Prompts of the editor as prompts of the engine. Pure.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, ResourceLink, TextResourceContents,
};
use whimbrel::wire::content::{Block, Content, Source};

use crate::errors::{invalid_params, invalid_request};

/// Tag around the text of a file that the editor sends along.
pub(crate) const CONTEXT_TAG: &str = "<context ref=\"";

/// The command that editors do not get: it goes on with another session, of which the editor does not know the id.
pub(crate) const HIDDEN_COMMAND: &str = "clear";

/// Converts the blocks of a prompt.
pub(crate) fn to_content(blocks: Vec<ContentBlock>) -> Result<Content, Error> {
    if blocks.is_empty() {
        return Err(invalid_params("the prompt is empty"));
    }
    let mut converted: Vec<Block> = Vec::with_capacity(blocks.len());
    let mut first_typed = None;
    let mut is_last_typed = false;
    for block in blocks {
        let is_typed = matches!(block, ContentBlock::Text(_) | ContentBlock::ResourceLink(_));
        match (to_block(block)?, converted.last_mut()) {
            // A link in the middle of a sentence stays in it.
            (Block::Text { text, .. }, Some(Block::Text { text: before, .. }))
                if is_typed && is_last_typed =>
            {
                before.push_str(&text);
            }
            (block, _) => {
                if is_typed {
                    first_typed.get_or_insert(converted.len());
                }
                converted.push(block);
            }
        }
        is_last_typed = is_typed;
    }
    if let Some(index) = first_typed {
        prepare_command(&mut converted[..=index])?;
    }
    Ok(Content::Blocks(converted))
}

/// Lets the engine recognize a command in the last of these blocks, which the user typed: it looks at the beginning of
/// the prompt only.
fn prepare_command(blocks: &mut [Block]) -> Result<(), Error> {
    let Some(Block::Text { text, .. }) = blocks.last_mut() else { return Ok(()) };
    let Some(command) = text.trim_start().strip_prefix('/') else { return Ok(()) };
    if command.split_whitespace().next() == Some(HIDDEN_COMMAND) {
        return Err(invalid_request(format!(
            "/{HIDDEN_COMMAND} does not work in an editor, where a thread is one session: begin a new thread"
        )));
    }
    *text = translate_mcp_command(text.trim_start());
    blocks.rotate_right(1);
    Ok(())
}

fn to_block(block: ContentBlock) -> Result<Block, Error> {
    Ok(match block {
        ContentBlock::Text(text) => Block::text(text.text),
        ContentBlock::Image(image) => {
            Block::Image { source: Source::Base64 { media_type: image.mime_type, data: image.data } }
        }
        ContentBlock::ResourceLink(link) => Block::text(mention(&link)),
        ContentBlock::Resource(resource) => match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => Block::text(context(&text)),
            EmbeddedResourceResource::BlobResourceContents(blob) => attachment(blob),
            _ => return Err(invalid_params("the prompt has a resource of an unknown type")),
        },
        ContentBlock::Audio(_) => return Err(invalid_params("prompts with audio are not supported")),
        _ => return Err(invalid_params("the prompt has content of an unknown type")),
    })
}

/// A mention that the model can follow with Read.
fn mention(link: &ResourceLink) -> String {
    let path = link
        .uri
        .strip_prefix("file://")
        .map(|path| percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned());
    match path {
        Some(path) => format!("[{}]({path})", link.name),
        None => format!("[{}]({})", link.name, link.uri),
    }
}

/// The text of a file as the editor has it, which may not be saved yet.
fn context(resource: &TextResourceContents) -> String {
    let uri = resource.uri.replace('"', "%22");
    format!("{CONTEXT_TAG}{uri}\">\n{}\n</context>", resource.text)
}

fn attachment(blob: BlobResourceContents) -> Block {
    let media_type = blob.mime_type.unwrap_or_default();
    match media_type.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => {
            Block::Image { source: Source::Base64 { media_type, data: blob.blob } }
        }
        "application/pdf" => {
            Block::Document { source: Source::Base64 { media_type, data: blob.blob }, title: Some(blob.uri) }
        }
        _ => {
            Block::text(format!("[The attachment {} has a type that cannot be read: {media_type}]", blob.uri))
        }
    }
}

/// `/mcp:server:prompt` as the engine names it.
fn translate_mcp_command(text: &str) -> String {
    let Some(rest) = text.strip_prefix("/mcp:") else { return text.to_owned() };
    let (name, arguments) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    match name.split_once(':') {
        Some((server, prompt)) => format!("/mcp__{server}__{prompt}{arguments}"),
        None => text.to_owned(),
    }
}

/// The name of a command as the editor shows it.
pub(crate) fn shown_command_name(name: &str) -> String {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, prompt)) => format!("mcp:{server}:{prompt}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn convert(blocks: Value) -> Value {
        let blocks = serde_json::from_value(blocks).unwrap();
        json!(to_content(blocks).unwrap())
    }

    #[test]
    fn blocks_become_what_the_model_reads() {
        let resource = |resource: Value| json!([{"type": "resource", "resource": resource}]);
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let rows = [
            ("text", text("hi"), text("hi")),
            (
                "picture",
                json!([{"type": "image", "mimeType": "image/png", "data": "eA=="}]),
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}]),
            ),
            (
                "link within a sentence",
                json!([
                    {"type": "text", "text": "see "},
                    {"type": "resource_link", "uri": "file:///w/my%20file", "name": "my file"},
                    {"type": "text", "text": " please"},
                ]),
                text("see [my file](/w/my file) please"),
            ),
            (
                "unsaved text",
                resource(json!({"uri": "file:///w/a.py", "text": "x = 1"})),
                text("<context ref=\"file:///w/a.py\">\nx = 1\n</context>"),
            ),
            (
                "document",
                resource(json!({"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "eA=="})),
                json!([{"type": "document", "title": "file:///a.pdf",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="}}]),
            ),
            (
                "other attachment",
                resource(json!({"uri": "a.zip", "mimeType": "application/zip", "blob": "eA=="})),
                text("[The attachment a.zip has a type that cannot be read: application/zip]"),
            ),
            (
                "text behind a file",
                json!([
                    {"type": "resource", "resource": {"uri": "file:///w/a", "text": "x"}},
                    {"type": "text", "text": "explain "},
                    {"type": "resource_link", "uri": "file:///w/b", "name": "b"},
                    {"type": "resource", "resource": {"uri": "file:///w/c", "text": "y"}},
                    {"type": "text", "text": "!"},
                ]),
                json!([
                    {"type": "text", "text": "<context ref=\"file:///w/a\">\nx\n</context>"},
                    {"type": "text", "text": "explain [b](/w/b)"},
                    {"type": "text", "text": "<context ref=\"file:///w/c\">\ny\n</context>"},
                    {"type": "text", "text": "!"},
                ]),
            ),
            ("prompt of a server", text("/mcp:git:review 7"), text("/mcp__git__review 7")),
            (
                "command behind a picture",
                json!([
                    {"type": "image", "mimeType": "image/png", "data": "eA=="},
                    {"type": "text", "text": " /mcp:git:review 7"},
                ]),
                json!([
                    {"type": "text", "text": "/mcp__git__review 7"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}},
                ]),
            ),
        ];
        for (name, blocks, expected) in rows {
            assert_eq!(convert(blocks), expected, "{name}");
        }
    }

    #[test]
    fn unusable_prompts_are_rejected() {
        let rows = [
            ("empty", json!([])),
            ("audio", json!([{"type": "audio", "mimeType": "audio/wav", "data": ""}])),
            ("command that is not offered", json!([{"type": "text", "text": " /clear now"}])),
        ];
        for (name, blocks) in rows {
            assert!(to_content(serde_json::from_value(blocks).unwrap()).is_err(), "{name}");
        }
        let other = json!([{"type": "text", "text": "/clearer"}]);
        assert!(to_content(serde_json::from_value(other).unwrap()).is_ok());
    }
}
