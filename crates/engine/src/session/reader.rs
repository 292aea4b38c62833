//! The second pass over a transcript: reads single lines by where they lie, and what was said in them.

use std::borrow::Cow;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::value::RawValue;
use whimbrel_wire::Usage;
use whimbrel_wire::content::{Block, Role};

use super::index::{Node, Span};
use super::line::{self, Kind, Line};
use super::mend::Said;
use crate::conversation::SYNTHETIC;

/// How interrupted turns end: said by the engine, not by a person.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Reads lines of a transcript.
pub(super) struct Reader<R> {
    file: BufReader<R>,
    /// Where the file stands.
    at: u64,
    line: Vec<u8>,
}

/// Something that was said.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) uuid: String,
    pub(super) said: Said,
    pub(super) role: Part,
    /// The permission mode it was said in.
    pub(super) mode: Option<String>,
    /// The model that said it.
    pub(super) model: Option<String>,
    /// What the provider counted.
    pub(super) usage: Option<Usage>,
    /// Whether some of it could not be read.
    pub(super) garbled: bool,
}

/// What a line is in the course of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Begins a turn.
    Prompt,
    /// Answers a call.
    Result,
    /// Said by the engine in the person's place.
    Remark,
    /// Said by the model.
    Reply,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

impl<R: Read + Seek> Reader<R> {
    /// A reader of a file that stands at its beginning.
    pub(super) fn new(file: BufReader<R>) -> Self {
        Self { file, at: 0, line: Vec::new() }
    }

    /// The bytes of a line, half characters mended.
    pub(super) fn bytes(&mut self, span: Span) -> io::Result<&[u8]> {
        let by = i64::try_from(span.offset).ok().zip(i64::try_from(self.at).ok()).map(|(to, from)| to - from);
        match by {
            Some(by) => self.file.seek_relative(by)?,
            None => self.file.seek(SeekFrom::Start(span.offset)).map(drop)?,
        }
        self.line.resize(span.length as usize, 0);
        let read = self.file.read_exact(&mut self.line);
        self.at = span.offset + u64::from(span.length);
        read?;
        if let Cow::Owned(whole) = line::whole(&self.line) {
            self.line = whole;
        }
        Ok(&self.line)
    }

    /// What is said in a line; nothing in one that is only a link.
    pub(super) fn hear(&mut self, node: &Node) -> io::Result<Option<Heard>> {
        let role = match node.kind {
            Kind::User => Role::User,
            Kind::Assistant => Role::Assistant,
            Kind::Boundary | Kind::Cleared | Kind::Link => return Ok(None),
        };
        let bytes = self.bytes(node.span)?;
        // It was read before, so it can be read again, unless somebody has changed the file meanwhile.
        Ok(serde_json::from_slice::<Line<'_>>(bytes).ok().and_then(|line| heard(&line, role)))
    }

    /// The text of a line that the model was told beside the conversation.
    pub(super) fn told(&mut self, span: Span) -> io::Result<Option<String>> {
        let bytes = self.bytes(span)?;
        let line = serde_json::from_slice::<Line<'_>>(bytes).ok();
        Ok(line.and_then(|line| line.text().map(Cow::into_owned)))
    }

    /// The tools that a line says were loaded.
    pub(super) fn tools(&mut self, span: Span) -> io::Result<Vec<String>> {
        let bytes = self.bytes(span)?;
        let line = serde_json::from_slice::<Line<'_>>(bytes).ok();
        Ok(line.map(|line| line.tools()).unwrap_or_default())
    }

    /// The name of a line.
    pub(super) fn name(&mut self, span: Span) -> io::Result<Option<String>> {
        let bytes = self.bytes(span)?;
        let line = serde_json::from_slice::<Line<'_>>(bytes).ok();
        Ok(line.and_then(|line| line.uuid().map(Cow::into_owned)))
    }
}

fn heard(line: &Line<'_>, role: Role) -> Option<Heard> {
    let uuid = line.uuid()?.into_owned();
    let message = line.message.and_then(|message| serde_json::from_str::<Message<'_>>(message.get()).ok());
    let is_unread = message.is_none();
    let Message { id, model, content, usage } =
        message.unwrap_or(Message { id: None, model: None, content: None, usage: None });
    // What no model wrote is for the host only.
    let (blocks, lost) = match (model.as_deref(), content) {
        (Some(SYNTHETIC), _) | (_, None) => (Vec::new(), 0),
        (_, Some(content)) => blocks(content.get()),
    };
    let part = match role {
        Role::Assistant => Part::Reply,
        Role::User if blocks.iter().any(|block| matches!(block, Block::ToolResult { .. })) => Part::Result,
        Role::User if line.is_meta() || line.is_summary() || is_interruption(&blocks) => Part::Remark,
        Role::User => Part::Prompt,
    };
    Some(Heard {
        said: Said {
            role,
            reply: id.filter(|id| !id.is_empty()),
            blocks,
            starts_recorded: line.starts_recorded(),
        },
        uuid,
        role: part,
        mode: line.permission_mode().map(Cow::into_owned),
        usage: usage.and_then(|usage| serde_json::from_str(usage.get()).ok()),
        model: model.filter(|model| model != SYNTHETIC),
        garbled: is_unread || lost > 0,
    })
}

/// The blocks of a message. One that makes no sense is left out and counted; the others stay.
fn blocks(content: &str) -> (Vec<Block>, usize) {
    if let Ok(text) = serde_json::from_str::<String>(content) {
        return (vec![Block::text(text)], 0);
    }
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(content) else { return (Vec::new(), 1) };
    let read: Vec<Block> = all.iter().filter_map(|block| serde_json::from_str(block.get()).ok()).collect();
    let lost = all.len() - read.len();
    (read, lost)
}

fn is_interruption(blocks: &[Block]) -> bool {
    matches!(blocks, [Block::Text { text, .. }] if text.starts_with(INTERRUPTED))
}
