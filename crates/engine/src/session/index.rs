//! The first pass over a transcript: where each line of the tree lies and what it hangs on, a few bytes per line.
//!
//! What is broken is mended here as far as the tree goes: a line that says it hangs on one that is not there hangs on the
//! line before it, so that one spoilt line never costs the conversation before it. A parent is looked for among earlier
//! lines first; so an id that was given twice means the line that was meant, and nothing goes in circles.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use super::metadata::MetadataEntries;
use super::entry::{HIDDEN_TEXT, EntryBranch, IdKey, EntryKind, TranscriptEntry, REJECTED, CONTENT_REPLACEMENT, TOOL_START};
use super::line_reader::{LineReader, ScannedLine};
use super::started_calls::StartedCalls;

/// How many steps may be spent on looking for circles, beside one per line.
const MAX_ANCESTOR_STEPS: usize = 1 << 20;

/// A line of the tree, by its number.
pub(super) type NodeId = u32;

/// Where a line lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// A line of the tree.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Span,
    /// Tells two lines of one name apart.
    fingerprint: u32,
    pub(super) parent: Option<NodeId>,
    /// The line that it follows or answers, where that is not its parent.
    pub(super) logical_parent: Option<NodeId>,
    pub(super) kind: EntryKind,
    pub(super) branch: EntryBranch,
    pub(super) is_meta: bool,
    pub(super) is_summary: bool,
}

impl Node {
    /// Whether it is something that was said in the conversation itself.
    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind, EntryKind::User | EntryKind::Assistant) && self.branch == EntryBranch::Main && !self.is_meta
    }
}

/// What was wrong with a transcript, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Lines that could not be read, or not wholly.
    pub unreadable: usize,
    /// Lines that stand there twice.
    pub duplicates: usize,
    /// Lines that hang on one that is not there.
    pub reparented: usize,
    /// Calls that have no result.
    pub unanswered: usize,
    /// Results that have no call.
    pub stray_results: usize,
}

impl RepairCounts {
    /// What whoever reads the transcript should know of it, if anything.
    pub fn warning(&self) -> Option<String> {
        let count = self.unreadable;
        let what = if count == 1 { "line of the transcript was" } else { "lines of the transcript were" };
        (count > 0).then(|| {
            format!("{count} unreadable {what} passed over; everything else that was said is there.")
        })
    }
}

/// What a transcript says beside its tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptFacts {
    /// Where the session worked last.
    pub cwd: Option<String>,
    /// The permission mode of the last prompt.
    pub mode: Option<String>,
    /// The model that spoke last.
    pub model: Option<String>,
    /// The session's title.
    pub title: Option<String>,
}

/// The index of a transcript.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) nodes: Vec<Node>,
    /// The last line with a name.
    by_key: HashMap<IdKey, NodeId>,
    /// What the model was told before a line.
    pub(super) hidden_texts: HashMap<IdKey, Vec<Span>>,
    /// Calls that had begun.
    pub(super) started: StartedCalls,
    /// Messages that a provider has refused, and where that is said.
    pub(super) rejected: HashSet<IdKey>,
    pub(super) rejection_spans: Vec<Span>,
    /// Lines that say which parts of the conversation are kept elsewhere.
    pub(super) replacement_spans: Vec<Span>,
    pub(super) metadata: MetadataEntries,
    pub(super) facts: TranscriptFacts,
    pub(super) repairs: RepairCounts,
    /// Lines whose parent was not found among those before them.
    orphans: Vec<(NodeId, IdKey)>,
    /// Where the lines begin that are taken in; of those before, only facts are noted.
    start_offset: u64,
    /// Whether a line answers one that was not found.
    has_unresolved_sources: bool,
}

impl Index {
    /// Reads a transcript through.
    pub(super) fn scan(reader: impl BufRead) -> io::Result<Self> {
        let mut index = Self::read(reader, 0)?;
        index.reparent_orphans();
        Ok(index)
    }

    /// Reads a transcript through, and takes in the lines from an offset on; none if they do not stand for themselves.
    pub(super) fn scan_from(reader: impl BufRead, begin: u64) -> io::Result<Option<Self>> {
        let index = Self::read(reader, begin)?;
        let has_root = index.nodes.iter().any(|node| node.is_message() && node.parent.is_none());
        let is_whole = index.orphans.is_empty() && !index.has_unresolved_sources && !has_root;
        Ok(is_whole.then_some(index))
    }

    /// Reads the transcript of a subagent through: what stands beside a session is its own conversation.
    pub(super) fn scan_subagent(reader: impl BufRead) -> io::Result<Self> {
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

    /// Whether a transcript has a line of the tree that fits; reads no further than that.
    pub(super) fn any_node(reader: impl BufRead, fits: fn(&Node) -> bool) -> io::Result<bool> {
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

    /// The line with this name.
    pub(super) fn find(&self, uuid: &str) -> Option<NodeId> {
        self.by_key.get(&IdKey::new(uuid)).copied()
    }

    pub(super) fn node(&self, place: NodeId) -> &Node {
        &self.nodes[place as usize]
    }

    /// Takes a line in, or several where the ends between them were lost.
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
        self.update_facts(line);
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
            _ => self.metadata.record_entry(line, bytes, offset),
        }
    }

    fn update_facts(&mut self, line: &TranscriptEntry<'_>) {
        if let Some(title) = line.custom_title().filter(|title| !title.is_empty()) {
            self.facts.title = Some(title.into_owned());
        } else if let (Some(title), None) = (line.ai_title(), &self.facts.title) {
            self.facts.title = Some(title.into_owned());
        }
        if let Some(cwd) = line.cwd().filter(|cwd| self.facts.cwd.as_deref() != Some(cwd)) {
            self.facts.cwd = Some(cwd.into_owned());
        }
    }

    fn add_node(&mut self, line: &TranscriptEntry<'_>, kind: EntryKind, key: IdKey, span: Span) {
        let place = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        let wanted = line.parent_uuid().map(|uuid| IdKey::new(&uuid));
        let parent = wanted.and_then(|key| self.by_key.get(&key).copied());
        let print = line.fingerprint(span.length);
        if let Some(earlier) = self.by_key.get(&key).map(|place| self.node(*place))
            && (earlier.fingerprint, earlier.parent) == (print, parent)
        {
            self.repairs.duplicates += 1;
            return;
        }
        if let (Some(wanted), None) = (wanted, parent) {
            self.orphans.push((place, wanted));
        }
        let other = match kind {
            EntryKind::CompactBoundary => line.logical_parent_uuid(),
            EntryKind::User => line.source_uuid(),
            EntryKind::Assistant | EntryKind::Cleared | EntryKind::Other => None,
        };
        self.has_unresolved_sources |=
            kind == EntryKind::User && other.as_ref().is_some_and(|uuid| self.find(uuid).is_none());
        let other = other.and_then(|uuid| self.find(&uuid));
        let (meta, summary) = (line.is_meta(), line.is_summary());
        self.nodes.push(Node { span, fingerprint: print, parent, logical_parent: other, kind, branch: line.branch(), is_meta: meta, is_summary: summary });
        self.by_key.insert(key, place);
        // Whoever knows the prompt by its first name means what is said in its place.
        if let Some(first) = line.copied_uuid() {
            self.by_key.insert(IdKey::new(&first), place);
        }
    }

    /// Gives every line a parent that names one it cannot have: the line of that name further down, or the one before it.
    fn reparent_orphans(&mut self) {
        let mut steps = self.nodes.len() + MAX_ANCESTOR_STEPS;
        for (place, wanted) in std::mem::take(&mut self.orphans) {
            self.repairs.reparented += 1;
            let later = self.by_key.get(&wanted).copied();
            let before = self.previous_main_node(place);
            let fit =
                later.into_iter().chain(before).find(|parent| !self.is_descendant(*parent, place, &mut steps));
            self.nodes[place as usize].parent = fit;
        }
    }

    /// The line of the conversation before this one. Branches are not mended: nothing hangs on them.
    fn previous_main_node(&self, place: NodeId) -> Option<NodeId> {
        if self.node(place).branch == EntryBranch::Sidechain {
            return None;
        }
        (0..place).rev().find(|earlier| self.node(*earlier).branch == EntryBranch::Main)
    }

    /// Whether a line hangs on another, as far as we can afford to know.
    fn is_descendant(&self, mut place: NodeId, above: NodeId, steps: &mut usize) -> bool {
        loop {
            if place == above || *steps == 0 {
                return true;
            }
            *steps -= 1;
            match self.node(place).parent {
                Some(parent) => place = parent,
                None => return false,
            }
        }
    }
}
