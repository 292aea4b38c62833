//! What a server answers to a call, as a tool result: texts, pictures, and files for what a model cannot read.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, CustomResult, Resource, ResourceContents, ServerResult};
use serde::Deserialize;
use serde_json::Value;
use whimbrel_wire::content::{Block, ResultContent};

use crate::tasks::{Capture, size};
use crate::tools::{Done, Output, Trouble, picture};
use crate::{files, ids};

/// How many pictures of one result the model is shown.
const PICTURES: usize = 20;

/// Where long things go, and what is long.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    /// The folder.
    pub(super) spill: PathBuf,
    /// How many bytes of text the model is shown.
    pub(super) limit: usize,
}

/// The result of a call. Pictures are decoded and files written beside the async threads.
pub(super) async fn output(result: ServerResult, shelf: Shelf) -> Output {
    let answer = Answer::read(result).map_err(Trouble::Failed)?;
    let plain = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    if answer.content.iter().all(plain) && answer.text_length() <= shelf.limit {
        return answer.output(&shelf);
    }
    let work = files::aside(move || answer.output(&shelf));
    work.await.unwrap_or_else(|error| Err(Trouble::Failed(format!("The result could not be read: {error}."))))
}

/// Blocks of a prompt or anything else that a server says.
pub(super) async fn blocks(content: Vec<ContentBlock>, shelf: Shelf) -> Vec<Block> {
    let work = files::aside(move || Reading::new(&shelf).all(content));
    work.await.unwrap_or_default()
}

/// Blocks for the model, their text within the limit.
pub(super) async fn fitted(blocks: Vec<Block>, shelf: Shelf) -> Vec<Block> {
    let length: usize = blocks.iter().filter_map(text_of).map(str::len).sum();
    if length <= shelf.limit {
        return blocks;
    }
    let work = files::aside(move || Reading::new(&shelf).cut(blocks));
    work.await.unwrap_or_else(|error| vec![Block::text(format!("The result could not be read: {error}."))])
}

/// A text for the model: one that is too long goes into a file, and both ends are shown.
pub(super) async fn long_text(text: String, shelf: &Shelf) -> String {
    if text.len() <= shelf.limit {
        return text;
    }
    let path = shelf.spill.join(format!("{}.txt", ids::task('m')));
    let work = files::aside(move || kept(path, &[&text]));
    work.await.unwrap_or_else(|error| format!("The text could not be read: {error}."))
}

/// Puts texts into a file, and says what the model is shown of them.
fn kept(path: PathBuf, texts: &[&str]) -> String {
    let mut capture = Capture::in_memory(path);
    for text in texts {
        capture.take(text.as_bytes());
        capture.take(b"\n");
    }
    capture.finish().for_model()
}

/// An answer, as far as it can be read.
struct Answer {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
    is_error: bool,
}

impl Answer {
    fn read(result: ServerResult) -> Result<Self, String> {
        match result {
            ServerResult::CallToolResult(CallToolResult {
                content, structured_content, is_error, ..
            }) => Ok(Self { content, structured: structured_content, is_error: is_error.unwrap_or(false) }),
            ServerResult::EmptyResult(_) => {
                Ok(Self { content: Vec::new(), structured: None, is_error: false })
            }
            ServerResult::CustomResult(CustomResult(value)) => Self::lenient(value),
            _ => Err("The server's answer is no result of a tool.".into()),
        }
    }

    /// An answer in which something does not fit: what does is taken, the rest is shown as it is.
    fn lenient(mut value: Value) -> Result<Self, String> {
        let is_error = value.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let content = match value.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
            Some(Value::String(text)) => vec![ContentBlock::text(text)],
            _ => {
                return Err(format!(
                    "The server's answer is no result of a tool: {}",
                    beginning(&value.to_string())
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

    fn output(mut self, shelf: &Shelf) -> Output {
        if let (true, Some(structured)) = (self.content.is_empty(), &self.structured) {
            self.content.push(ContentBlock::text(structured.to_string()));
        }
        let blocks = Reading::new(shelf).all(self.content);
        if self.is_error {
            let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
            let text = texts.join("\n");
            let text =
                if text.trim().is_empty() { "The tool failed and did not say why.".into() } else { text };
            return Err(Trouble::Failed(text));
        }
        let blocks = if blocks.is_empty() { vec![Block::text("(no output)")] } else { blocks };
        let meta = serde_json::to_value(&blocks).unwrap_or_default();
        Ok(Done { content: ResultContent::Blocks(blocks), meta })
    }
}

fn block(value: &Value) -> ContentBlock {
    ContentBlock::deserialize(value).unwrap_or_else(|_| {
        ContentBlock::text(format!("[content of an unknown kind] {}", beginning(&value.to_string())))
    })
}

fn beginning(text: &str) -> String {
    text.chars().take(500).collect()
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// Turns contents into blocks that a model can read.
struct Reading<'a> {
    shelf: &'a Shelf,
    pictures: usize,
}

impl<'a> Reading<'a> {
    fn new(shelf: &'a Shelf) -> Self {
        Self { shelf, pictures: 0 }
    }

    fn all(mut self, content: Vec<ContentBlock>) -> Vec<Block> {
        let blocks: Vec<Block> = content.into_iter().map(|content| self.one(content)).collect();
        let length: usize = blocks.iter().filter_map(text_of).map(str::len).sum();
        if length <= self.shelf.limit { blocks } else { self.cut(blocks) }
    }

    fn one(&mut self, content: ContentBlock) -> Block {
        match content {
            ContentBlock::Text(text) => Block::text(text.text),
            ContentBlock::Image(image) => self.picture(&image.data, &image.mime_type),
            ContentBlock::Audio(audio) => self.file("audio", &audio.data, Some(&audio.mime_type)),
            ContentBlock::Resource(resource) => self.resource(resource.resource),
            ContentBlock::ResourceLink(link) => Block::text(link_text(&link)),
            _ => Block::text("[content of an unknown kind]"),
        }
    }

    fn resource(&mut self, resource: ResourceContents) -> Block {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                Block::text(format!("[resource {uri}]\n{text}"))
            }
            ResourceContents::BlobResourceContents { mime_type: Some(kind), blob, .. }
                if kind.starts_with("image/") =>
            {
                self.picture(&blob, &kind)
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.file(&format!("resource {uri}"), &blob, mime_type.as_deref())
            }
            _ => Block::text("[a resource of an unknown kind]"),
        }
    }

    /// A picture for the model. What it says of itself does not count: it must be one.
    fn picture(&mut self, data: &str, kind: &str) -> Block {
        self.pictures += 1;
        if self.pictures > PICTURES {
            return self.file("a further picture", data, Some(kind));
        }
        let shown = decoded(data).and_then(|bytes| picture(&bytes));
        shown.unwrap_or_else(|why| Block::text(format!("[an image ({kind}) that cannot be shown: {why}]")))
    }

    /// Bytes that a model cannot read are put into a file.
    fn file(&self, what: &str, data: &str, kind: Option<&str>) -> Block {
        let kind = kind.unwrap_or("application/octet-stream");
        let saved = decoded(data).and_then(|bytes| save(&self.shelf.spill, &bytes, kind));
        Block::text(match saved {
            Ok((path, length)) => format!("[{what}: {kind}, {}, saved to {}]", size(length), path.display()),
            Err(why) => format!("[{what}: {kind}, which cannot be read: {why}]"),
        })
    }

    /// Too much text: all of it goes into a file, and both ends are shown.
    fn cut(&self, blocks: Vec<Block>) -> Vec<Block> {
        let path = self.shelf.spill.join(format!("{}.txt", ids::task('m')));
        let (texts, others): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| text_of(block).is_some());
        let shown = kept(path, &texts.iter().filter_map(text_of).collect::<Vec<_>>());
        std::iter::once(Block::text(shown)).chain(others).collect()
    }
}

fn link_text(link: &Resource) -> String {
    let description = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("[resource {} ({}){description}; ReadMcpResourceTool reads it]", link.uri, link.name)
}

fn decoded(data: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(data.trim()).map_err(|error| format!("it is no base64: {error}"))
}

/// Saves bytes under a name of their own, and says where and how many they are.
pub(super) fn save(spill: &Path, bytes: &[u8], kind: &str) -> Result<(PathBuf, u64), String> {
    let path = spill.join(format!("{}.{}", ids::task('m'), extension(kind)));
    files::create(&path, bytes).map_err(|error| format!("it cannot be saved: {error}"))?;
    Ok((path, bytes.len() as u64))
}

/// An ending by which programs know what is in a file.
fn extension(kind: &str) -> &str {
    let subtype = kind.split([';', '+']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    match subtype {
        "plain" => "txt",
        "jpeg" => "jpg",
        "mpeg" => "mp3",
        known if (1..=8).contains(&known.len()) && known.bytes().all(|sign| sign.is_ascii_alphanumeric()) => {
            known
        }
        _ => "bin",
    }
}
