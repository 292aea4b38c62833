//! Converts MCP content to blocks: texts, images, and files for content that models cannot read.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, CustomResult, Resource, ResourceContents, ServerResult};
use serde::Deserialize;
use serde_json::Value;
use whimbrel_os::byte_size::format_size;
use whimbrel_os::{files, ids};
use whimbrel_process::OutputCapture;
use whimbrel_wire::content::Block;

use whimbrel_models::images::image_block;

/// Maximum number of images of a result that the model sees.
const MAX_IMAGES: usize = 20;

const NO_ERROR_MESSAGE: &str = "The tool failed without an error message.";

/// Limit of the text shown to the model, and directory for the rest.
#[derive(Debug, Clone)]
pub struct OutputLimits {
    pub output_dir: PathBuf,
    pub max_text_bytes: usize,
}

/// What the model reads about a failed call: a text, or a text with images.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedCall(Vec<Block>);

impl FailedCall {
    /// Creates it from the content of a result. Texts are joined if there is nothing else.
    pub fn from_content(content: Vec<Block>) -> Self {
        let texts: Vec<&str> = content.iter().filter_map(block_text).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() {
            let images = content.into_iter().filter(|block| block_text(block).is_none());
            return Self(std::iter::once(Block::text(NO_ERROR_MESSAGE)).chain(images).collect());
        }
        if texts.len() == content.len() { text.into() } else { Self(content) }
    }

    /// The blocks, of which at least one is a text.
    pub fn into_content(self) -> Vec<Block> {
        self.0
    }

    /// The texts, one per line.
    pub fn text(&self) -> String {
        self.0.iter().filter_map(block_text).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether there is nothing but text.
    pub fn is_text(&self) -> bool {
        self.0.iter().all(|block| block_text(block).is_some())
    }
}

impl From<String> for FailedCall {
    fn from(text: String) -> Self {
        Self(vec![Block::text(text)])
    }
}

impl From<&str> for FailedCall {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Converts the result of a `tools/call`. Images are decoded and files written on a blocking thread.
pub(crate) async fn convert_call_result(
    result: ServerResult,
    limits: OutputLimits,
) -> Result<Vec<Block>, FailedCall> {
    let parsed = CallResult::parse(result)?;
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    if parsed.content.iter().all(is_text) && parsed.text_length() <= limits.max_text_bytes {
        return parsed.into_blocks(&limits);
    }
    let work = files::run_blocking(move || parsed.into_blocks(&limits));
    work.await.unwrap_or_else(|error| Err(format!("The result could not be read: {error}.").into()))
}

/// Converts the content blocks of a prompt.
pub(crate) async fn to_blocks(content: Vec<ContentBlock>, limits: OutputLimits) -> Vec<Block> {
    let work = files::run_blocking(move || BlockConverter::new(&limits).convert_all(content));
    work.await.unwrap_or_default()
}

/// Truncates the text of blocks to the limit; the whole text goes to a file.
pub(crate) async fn fit_blocks(blocks: Vec<Block>, limits: OutputLimits) -> Vec<Block> {
    let length: usize = blocks.iter().filter_map(block_text).map(str::len).sum();
    if length <= limits.max_text_bytes {
        return blocks;
    }
    let work = files::run_blocking(move || BlockConverter::new(&limits).spill_text(blocks));
    work.await.unwrap_or_else(|error| vec![Block::text(format!("The result could not be read: {error}."))])
}

/// Truncates a text to the limit: the whole goes to a file, the model sees both ends.
pub async fn fit_text(text: String, limits: &OutputLimits) -> String {
    if text.len() <= limits.max_text_bytes {
        return text;
    }
    let path = limits.output_dir.join(format!("{}.txt", ids::new_task_id('m')));
    let work = files::run_blocking(move || spill_texts(path, &[&text]));
    work.await.unwrap_or_else(|error| format!("The text could not be read: {error}."))
}

/// Writes texts to a file and returns the truncated form for the model.
fn spill_texts(path: PathBuf, texts: &[&str]) -> String {
    let mut capture = OutputCapture::in_memory(path);
    for text in texts {
        capture.push(text.as_bytes());
        capture.push(b"\n");
    }
    capture.finish().render_for_model()
}

/// Parsed result of a call.
struct CallResult {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
    is_error: bool,
}

impl CallResult {
    fn parse(result: ServerResult) -> Result<Self, String> {
        match result {
            ServerResult::CallToolResult(CallToolResult {
                content, structured_content, is_error, ..
            }) => Ok(Self { content, structured: structured_content, is_error: is_error.unwrap_or(false) }),
            ServerResult::EmptyResult(_) => {
                Ok(Self { content: Vec::new(), structured: None, is_error: false })
            }
            ServerResult::CustomResult(CustomResult(value)) => Self::parse_leniently(value),
            _ => Err("The server's response is not a tool result.".into()),
        }
    }

    /// Parses a result that does not match the protocol: valid blocks are used, others are shown as JSON.
    fn parse_leniently(mut value: Value) -> Result<Self, String> {
        let is_error = value.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let content = match value.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => blocks.iter().map(parse_block).collect(),
            Some(Value::String(text)) => vec![ContentBlock::text(text)],
            _ => {
                return Err(format!(
                    "The server's response is not a tool result: {}",
                    excerpt(&value.to_string())
                ));
            }
        };
        let structured = value.get_mut("structuredContent").map(Value::take);
        Ok(Self { content, structured, is_error })
    }

    fn text_length(&self) -> usize {
        let length = |block: &ContentBlock| block.as_text().map_or(0, |text| text.text.len());
        self.content.iter().map(length).sum()
    }

    fn into_blocks(mut self, limits: &OutputLimits) -> Result<Vec<Block>, FailedCall> {
        if let (true, Some(structured)) = (self.content.is_empty(), &self.structured) {
            self.content.push(ContentBlock::text(structured.to_string()));
        }
        let blocks = BlockConverter::new(limits).convert_all(self.content);
        if self.is_error {
            return Err(FailedCall::from_content(blocks));
        }
        Ok(if blocks.is_empty() { vec![Block::text("(no output)")] } else { blocks })
    }
}

fn parse_block(value: &Value) -> ContentBlock {
    ContentBlock::deserialize(value).unwrap_or_else(|_| {
        ContentBlock::text(format!("[content of unknown type] {}", excerpt(&value.to_string())))
    })
}

fn excerpt(text: &str) -> String {
    text.chars().take(500).collect()
}

fn block_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// Converts MCP content to blocks that models can read.
struct BlockConverter<'a> {
    limits: &'a OutputLimits,
    images: usize,
}

impl<'a> BlockConverter<'a> {
    fn new(limits: &'a OutputLimits) -> Self {
        Self { limits, images: 0 }
    }

    fn convert_all(mut self, content: Vec<ContentBlock>) -> Vec<Block> {
        let blocks: Vec<Block> = content.into_iter().map(|content| self.convert(content)).collect();
        let length: usize = blocks.iter().filter_map(block_text).map(str::len).sum();
        if length <= self.limits.max_text_bytes { blocks } else { self.spill_text(blocks) }
    }

    fn convert(&mut self, content: ContentBlock) -> Block {
        match content {
            ContentBlock::Text(text) => Block::text(text.text),
            ContentBlock::Image(image) => self.image_block(&image.data, &image.mime_type),
            ContentBlock::Audio(audio) => self.file_block("audio", &audio.data, Some(&audio.mime_type)),
            ContentBlock::Resource(resource) => self.resource_block(resource.resource),
            ContentBlock::ResourceLink(link) => Block::text(render_link(&link)),
            _ => Block::text("[content of unknown type]"),
        }
    }

    fn resource_block(&mut self, resource: ResourceContents) -> Block {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                Block::text(format!("[resource {uri}]\n{text}"))
            }
            ResourceContents::BlobResourceContents { mime_type: Some(kind), blob, .. }
                if kind.starts_with("image/") =>
            {
                self.image_block(&blob, &kind)
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.file_block(&format!("resource {uri}"), &blob, mime_type.as_deref())
            }
            _ => Block::text("[resource of unknown type]"),
        }
    }

    /// Image for the model. The declared type is ignored; the bytes must be a supported image.
    fn image_block(&mut self, data: &str, mime_type: &str) -> Block {
        self.images += 1;
        if self.images > MAX_IMAGES {
            return self.file_block("too many images", data, Some(mime_type));
        }
        let block =
            decode_base64(data).and_then(|bytes| image_block(&bytes).map_err(|error| error.to_string()));
        block.unwrap_or_else(|error| Block::text(format!("[image ({mime_type}) not shown: {error}]")))
    }

    /// Saves content that models cannot read to a file.
    fn file_block(&self, label: &str, data: &str, mime_type: Option<&str>) -> Block {
        let mime_type = mime_type.unwrap_or("application/octet-stream");
        let saved =
            decode_base64(data).and_then(|bytes| save_bytes(&self.limits.output_dir, &bytes, mime_type));
        Block::text(match saved {
            Ok((path, length)) => {
                format!("[{label}: {mime_type}, {}, saved to {}]", format_size(length), path.display())
            }
            Err(error) => format!("[{label}: {mime_type}, not readable: {error}]"),
        })
    }

    /// Moves all text to a file and shows both ends.
    fn spill_text(&self, blocks: Vec<Block>) -> Vec<Block> {
        let path = self.limits.output_dir.join(format!("{}.txt", ids::new_task_id('m')));
        let (texts, others): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| block_text(block).is_some());
        let preview = spill_texts(path, &texts.iter().filter_map(block_text).collect::<Vec<_>>());
        std::iter::once(Block::text(preview)).chain(others).collect()
    }
}

fn render_link(link: &Resource) -> String {
    let description = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("[resource {} ({}){description}; ReadMcpResourceTool reads it]", link.uri, link.name)
}

fn decode_base64(data: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(data.trim()).map_err(|error| format!("not valid base64: {error}"))
}

/// Saves bytes to a new file; returns path and size.
pub fn save_bytes(output_dir: &Path, bytes: &[u8], mime_type: &str) -> Result<(PathBuf, u64), String> {
    let path = output_dir.join(format!("{}.{}", ids::new_task_id('m'), extension(mime_type)));
    files::create(&path, bytes).map_err(|error| format!("cannot be saved: {error}"))?;
    Ok((path, bytes.len() as u64))
}

/// File extension for a MIME type.
fn extension(mime_type: &str) -> &str {
    let subtype =
        mime_type.split([';', '+']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    match subtype {
        "plain" => "txt",
        "jpeg" => "jpg",
        "mpeg" => "mp3",
        known if (1..=8).contains(&known.len()) && known.bytes().all(|c| c.is_ascii_alphanumeric()) => known,
        _ => "bin",
    }
}
