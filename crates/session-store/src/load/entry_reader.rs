//! Second pass over a transcript: reads single entries by position and parses their messages.

use std::borrow::Cow;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::value::RawValue;
use whimbrel_wire::Usage;
use whimbrel_wire::content::{Block, Role};
use whimbrel_wire::message::SYNTHETIC_MODEL;

use crate::entry::{self, EntryKind, HiddenText, TranscriptEntry};
use crate::load::index::{Node, Span};
use crate::load::repair::MessageContent;

/// Text that the engine writes when the user interrupts a turn.
const INTERRUPTION_PREFIX: &str = "[Request interrupted by user";

pub(crate) struct EntryReader<R> {
    file: BufReader<R>,
    /// Current offset in the file.
    position: u64,
    line: Vec<u8>,
}

/// A message read from a transcript.
#[derive(Debug, Clone)]
pub(crate) struct LoadedMessage {
    pub(crate) uuid: String,
    pub(crate) content: MessageContent,
    pub(crate) role: TurnRole,
    /// Permission mode at the time of the message.
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// Some of its content could not be parsed.
    pub(crate) is_garbled: bool,
}

/// Role of a message within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnRole {
    /// Starts a turn.
    Prompt,
    ToolResult,
    /// Written by the engine with the role of the user.
    EngineNote,
    Reply,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

impl<R: Read + Seek> EntryReader<R> {
    /// Creates a reader; the file must be at its start.
    pub(crate) fn new(file: BufReader<R>) -> Self {
        Self { file, position: 0, line: Vec::new() }
    }

    /// Reads a line, with lone surrogates replaced.
    pub(crate) fn read_bytes(&mut self, span: Span) -> io::Result<&[u8]> {
        let by = i64::try_from(span.offset)
            .ok()
            .zip(i64::try_from(self.position).ok())
            .map(|(to, from)| to - from);
        match by {
            Some(by) => self.file.seek_relative(by)?,
            None => self.file.seek(SeekFrom::Start(span.offset)).map(drop)?,
        }
        self.line.resize(span.length as usize, 0);
        let read = self.file.read_exact(&mut self.line);
        self.position = span.offset + u64::from(span.length);
        read?;
        if let Cow::Owned(whole) = entry::replace_lone_surrogates(&self.line) {
            self.line = whole;
        }
        Ok(&self.line)
    }

    /// Reads the message of a node; `None` for entries without one.
    pub(crate) fn read_message(&mut self, node: &Node) -> io::Result<Option<LoadedMessage>> {
        let role = match node.kind {
            EntryKind::User => Role::User,
            EntryKind::Assistant => Role::Assistant,
            EntryKind::CompactBoundary | EntryKind::Rewound | EntryKind::Other => return Ok(None),
        };
        let bytes = self.read_bytes(node.span)?;
        // The line parsed in the first pass, so it parses again unless the file was changed meanwhile.
        Ok(serde_json::from_slice::<TranscriptEntry<'_>>(bytes)
            .ok()
            .and_then(|line| parse_message(&line, role)))
    }

    /// Reads a hidden-text entry.
    pub(crate) fn read_hidden_text(&mut self, span: Span) -> io::Result<Option<HiddenText>> {
        let bytes = self.read_bytes(span)?;
        let line = serde_json::from_slice::<TranscriptEntry<'_>>(bytes).ok();
        Ok(line.and_then(|line| {
            let announced_mode = line.permission_mode().map(Cow::into_owned);
            Some(HiddenText { text: line.text()?.into_owned(), announced_mode })
        }))
    }

    /// Reads the deferred tools that an entry records as loaded.
    pub(crate) fn read_loaded_tools(&mut self, span: Span) -> io::Result<Vec<String>> {
        let bytes = self.read_bytes(span)?;
        let line = serde_json::from_slice::<TranscriptEntry<'_>>(bytes).ok();
        Ok(line.map(|line| line.loaded_tools()).unwrap_or_default())
    }

    pub(crate) fn read_uuid(&mut self, span: Span) -> io::Result<Option<String>> {
        let bytes = self.read_bytes(span)?;
        let line = serde_json::from_slice::<TranscriptEntry<'_>>(bytes).ok();
        Ok(line.and_then(|line| line.uuid().map(Cow::into_owned)))
    }
}

fn parse_message(line: &TranscriptEntry<'_>, role: Role) -> Option<LoadedMessage> {
    let uuid = line.uuid()?.into_owned();
    let message = line.message.and_then(|message| serde_json::from_str::<RawMessage<'_>>(message.get()).ok());
    let is_unread = message.is_none();
    let RawMessage { id, model, content, usage } =
        message.unwrap_or(RawMessage { id: None, model: None, content: None, usage: None });
    // Synthetic messages are for the host only.
    let (blocks, unreadable_count) = match (model.as_deref(), content) {
        (Some(SYNTHETIC_MODEL), _) | (_, None) => (Vec::new(), 0),
        (_, Some(content)) => parse_blocks(content.get()),
    };
    let part = match role {
        Role::Assistant => TurnRole::Reply,
        Role::User if blocks.iter().any(|block| matches!(block, Block::ToolResult { .. })) => {
            TurnRole::ToolResult
        }
        Role::User if line.is_meta() || line.is_summary() || is_interruption(&blocks) => TurnRole::EngineNote,
        Role::User => TurnRole::Prompt,
    };
    Some(LoadedMessage {
        content: MessageContent {
            role,
            reply: id.filter(|id| !id.is_empty()),
            blocks,
            starts_recorded: line.starts_recorded(),
        },
        uuid,
        role: part,
        mode: line.permission_mode().map(Cow::into_owned),
        usage: usage.and_then(|usage| serde_json::from_str(usage.get()).ok()),
        model: model.filter(|model| model != SYNTHETIC_MODEL),
        is_garbled: is_unread || unreadable_count > 0,
    })
}

/// Parses the blocks of a message. Invalid ones are dropped and counted.
fn parse_blocks(content: &str) -> (Vec<Block>, usize) {
    if let Ok(text) = serde_json::from_str::<String>(content) {
        return (vec![Block::text(text)], 0);
    }
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(content) else { return (Vec::new(), 1) };
    let read: Vec<Block> = all.iter().filter_map(|block| serde_json::from_str(block.get()).ok()).collect();
    let unreadable_count = all.len() - read.len();
    (read, unreadable_count)
}

fn is_interruption(blocks: &[Block]) -> bool {
    matches!(blocks, [Block::Text { text, .. }] if text.starts_with(INTERRUPTION_PREFIX))
}
