//! First pass over a transcript: position and parent of each entry, a few bytes per entry.
//!
//! Parents are searched among earlier entries first, so a duplicate uuid resolves to the intended entry and no cycles
//! arise. Entries whose parent is missing are repaired in `orphans`.

mod orphans;

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use crate::awaited_agents::{self, AWAITED_AGENTS, AwaitedAgent};
use crate::cost_state::{self, COST_STATE, CostState};
use crate::entry::{
    CONTENT_REPLACEMENT, EntryBranch, EntryKind, HIDDEN_TEXT, IdKey, REJECTED, TOOL_START, TranscriptEntry,
};
use crate::line_reader::{LineReader, ScannedLine};
use crate::load::tool_calls::StartedCalls;
use crate::metadata::MetadataEntries;

/// Index of a node in [`Index::nodes`].
pub(crate) type NodeId = u32;

/// Position of a line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// An entry of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    /// Distinguishes different entries with the same uuid.
    fingerprint: u32,
    pub(crate) parent: Option<NodeId>,
    /// For a compaction boundary or a rewind the entry before it; for a tool result the entry of its call, if recorded.
    pub(crate) logical_parent: Option<NodeId>,
    pub(crate) kind: EntryKind,
    pub(crate) branch: EntryBranch,
    pub(crate) is_meta: bool,
    pub(crate) is_summary: bool,
}

impl Node {
    /// True for user and assistant messages of the main branch that the user can see.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.kind, EntryKind::User | EntryKind::Assistant)
            && self.branch == EntryBranch::Main
            && !self.is_meta
    }
}

/// Defects found in a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Lines that could not be parsed, fully or in part.
    pub unreadable: usize,
    /// Entries written twice.
    pub duplicates: usize,
    /// Entries whose parent is missing.
    pub reparented: usize,
    /// Tool calls without a result.
    pub unanswered: usize,
    /// Tool results without a call.
    pub stray_results: usize,
}

impl RepairCounts {
    /// Warning for the user about unreadable lines.
    pub fn warning(&self) -> Option<String> {
        let count = self.unreadable;
        let what = if count == 1 { "line of the transcript was" } else { "lines of the transcript were" };
        (count > 0)
            .then(|| format!("{count} unreadable {what} skipped; the rest of the conversation is complete."))
    }
}

/// Session state recorded in a transcript outside the message tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedState {
    /// Last working directory.
    pub cwd: Option<String>,
    /// Permission mode of the last prompt.
    pub mode: Option<String>,
    /// Model of the last reply.
    pub model: Option<String>,
    pub title: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) nodes: Vec<Node>,
    /// The last node with each uuid.
    by_key: HashMap<IdKey, NodeId>,
    /// Hidden texts by the entry that they precede.
    pub(crate) hidden_texts: HashMap<IdKey, Vec<Span>>,
    pub(crate) started: StartedCalls,
    /// Messages that a provider rejected, and the entries that record this.
    pub(crate) rejected: HashSet<IdKey>,
    pub(crate) rejection_spans: Vec<Span>,
    /// Entries that name content stored elsewhere.
    pub(crate) replacement_spans: Vec<Span>,
    pub(crate) metadata: MetadataEntries,
    /// Awaited background agents, with the offset of each entry.
    awaited: Vec<(u64, Vec<AwaitedAgent>)>,
    /// The last recorded cost.
    pub(crate) cost: Option<CostState>,
    pub(crate) recorded: RecordedState,
    pub(crate) repairs: RepairCounts,
    /// Nodes whose parent was not found among earlier nodes.
    orphans: Vec<(NodeId, IdKey)>,
    /// Entries before this offset contribute only recorded state.
    start_offset: u64,
    /// A tool result names a call that was not found.
    has_unresolved_sources: bool,
}

impl Index {
    /// Indexes a whole transcript.
    pub(crate) fn scan(reader: impl BufRead) -> io::Result<Self> {
        let mut index = Self::read(reader, 0)?;
        index.reparent_orphans();
        Ok(index)
    }

    /// Indexes the entries from an offset on; `None` if they refer to earlier ones.
    pub(crate) fn scan_from(reader: impl BufRead, begin: u64) -> io::Result<Option<Self>> {
        let index = Self::read(reader, begin)?;
        let has_root = index.nodes.iter().any(|node| node.is_message() && node.parent.is_none());
        let is_whole = index.orphans.is_empty() && !index.has_unresolved_sources && !has_root;
        Ok(is_whole.then_some(index))
    }

    /// Indexes the transcript of a subagent, where sidechain entries are the conversation.
    pub(crate) fn scan_subagent(reader: impl BufRead) -> io::Result<Self> {
        let mut index = Self::read(reader, 0)?;
        index.nodes.iter_mut().for_each(|node| node.branch = EntryBranch::Main);
        index.reparent_orphans();
        Ok(index)
    }

    fn read(reader: impl BufRead, begin: u64) -> io::Result<Self> {
        let mut index = Self { start_offset: begin, ..Self::default() };
        let mut lines = LineReader::new(reader);
        while let Some(step) = lines.read_line()? {
            match step {
                ScannedLine::Complete(offset, bytes) | ScannedLine::Unterminated(offset, bytes) => {
                    index.add_line(offset, bytes);
                    index.metadata.mark_scanned(offset + bytes.len() as u64);
                }
                ScannedLine::TooLong => index.repairs.unreadable += 1,
            }
        }
        Ok(index)
    }

    /// Checks for a node that matches, and stops reading at the first.
    pub(crate) fn any_node(reader: impl BufRead, fits: fn(&Node) -> bool) -> io::Result<bool> {
        let mut index = Self::default();
        let mut lines = LineReader::new(reader);
        while let Some(step) = lines.read_line()? {
            if let ScannedLine::Complete(offset, bytes) | ScannedLine::Unterminated(offset, bytes) = step {
                index.add_line(offset, bytes);
            }
            if index.nodes.pop().is_some_and(|node| fits(&node)) {
                return Ok(true);
            }
            index.by_key.clear();
        }
        Ok(false)
    }

    pub(crate) fn find(&self, uuid: &str) -> Option<NodeId> {
        self.by_key.get(&IdKey::new(uuid)).copied()
    }

    pub(crate) fn node(&self, node_id: NodeId) -> &Node {
        &self.nodes[node_id as usize]
    }

    /// Adds the entry of a line, or several if newlines between them were lost.
    fn add_line(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while let Some((line, end)) = TranscriptEntry::parse_first(bytes) {
            let rest = bytes[end..].trim_ascii_start();
            if rest.is_empty() {
                return self.add_entry(&line, offset, bytes);
            }
            if !rest.starts_with(b"{") {
                break;
            }
            self.add_entry(&line, offset, &bytes[..end]);
            (offset, bytes) = (offset + end as u64, &bytes[end..]);
        }
        if bytes.trim_ascii().is_empty() {
            return;
        }
        self.repairs.unreadable += 1;
        if let Some((line, skipped)) = TranscriptEntry::parse(bytes) {
            self.add_entry(&line, offset + skipped as u64, &bytes[skipped..]);
        }
    }

    fn add_entry(&mut self, line: &TranscriptEntry<'_>, offset: u64, bytes: &[u8]) {
        let span = Span { offset, length: u32::try_from(bytes.len()).unwrap_or(u32::MAX) };
        self.update_recorded_state(line);
        if offset < self.start_offset {
            return;
        }
        match (line.kind(), line.uuid()) {
            (Some(kind), Some(uuid)) => self.add_node(line, kind, IdKey::new(&uuid), span),
            _ if line.is_type(TOOL_START) => self.started.record(line),
            _ if line.is_type(REJECTED) => {
                self.rejected.extend(line.rejected_uuids().iter().map(|uuid| IdKey::new(uuid)));
                self.rejection_spans.push(span);
            }
            _ if line.is_type(HIDDEN_TEXT) => {
                if let Some(before) = line.before_uuid() {
                    self.hidden_texts.entry(IdKey::new(&before)).or_default().push(span);
                }
            }
            _ if line.is_type(CONTENT_REPLACEMENT) => self.replacement_spans.push(span),
            _ if line.is_type(AWAITED_AGENTS) => {
                self.awaited.push((offset, awaited_agents::parse_entry(bytes)));
            }
            _ if line.is_type(COST_STATE) => self.cost = cost_state::parse_entry(bytes).or(self.cost.take()),
            _ => self.metadata.record_entry(line, bytes, offset),
        }
    }

    /// The awaited agents at the end of the transcript, or at a message: before the next message of the conversation.
    pub(crate) fn awaited_agents(&self, at: Option<NodeId>) -> Vec<AwaitedAgent> {
        let end = at.and_then(|at| {
            let after = self.node(at).span.offset;
            let messages =
                self.nodes.iter().filter(|node| node.is_message() && node.branch == EntryBranch::Main);
            messages.map(|node| node.span.offset).filter(|offset| *offset > after).min()
        });
        let is_before_end = |offset: u64| end.is_none_or(|end| offset < end);
        let entry = self.awaited.iter().rfind(|(offset, _)| is_before_end(*offset));
        entry.map(|(_, agents)| agents.clone()).unwrap_or_default()
    }

    fn update_recorded_state(&mut self, line: &TranscriptEntry<'_>) {
        if let Some(title) = line.custom_title().filter(|title| !title.is_empty()) {
            self.recorded.title = Some(title.into_owned());
        } else if let (Some(title), None) = (line.ai_title(), &self.recorded.title) {
            self.recorded.title = Some(title.into_owned());
        }
        if let Some(cwd) = line.cwd().filter(|cwd| self.recorded.cwd.as_deref() != Some(cwd)) {
            self.recorded.cwd = Some(cwd.into_owned());
        }
    }

    fn add_node(&mut self, line: &TranscriptEntry<'_>, kind: EntryKind, key: IdKey, span: Span) {
        let node_id = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        let wanted = line.parent_uuid().map(|uuid| IdKey::new(&uuid));
        let parent = wanted.and_then(|key| self.by_key.get(&key).copied());
        let fingerprint = line.fingerprint(span.length);
        if let Some(earlier) = self.by_key.get(&key).map(|node_id| self.node(*node_id))
            && (earlier.fingerprint, earlier.parent) == (fingerprint, parent)
        {
            self.repairs.duplicates += 1;
            return;
        }
        if let (Some(wanted), None) = (wanted, parent) {
            self.orphans.push((node_id, wanted));
        }
        let other = match kind {
            EntryKind::CompactBoundary => line.logical_parent_uuid(),
            EntryKind::User => line.source_uuid(),
            EntryKind::Rewound => line.left_uuid(),
            EntryKind::Assistant | EntryKind::Other => None,
        };
        self.has_unresolved_sources |=
            kind == EntryKind::User && other.as_ref().is_some_and(|uuid| self.find(uuid).is_none());
        let other = other.and_then(|uuid| self.find(&uuid));
        let (meta, summary) = (line.is_meta(), line.is_summary());
        self.nodes.push(Node {
            span,
            fingerprint,
            parent,
            logical_parent: other,
            kind,
            branch: line.branch(),
            is_meta: meta,
            is_summary: summary,
        });
        self.by_key.insert(key, node_id);
        // References to the original uuid of a copied prompt resolve to the copy.
        if let Some(first) = line.copied_uuid() {
            self.by_key.insert(IdKey::new(&first), node_id);
        }
    }
}
