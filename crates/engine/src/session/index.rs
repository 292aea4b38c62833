//! The first pass over a transcript: where each line of the tree lies and what it hangs on, a few bytes per line.
//!
//! What is broken is mended here as far as the tree goes: a line that says it hangs on one that is not there hangs on the
//! line before it, so that one spoilt line never costs the conversation before it. A parent is looked for among earlier
//! lines first; so an id that was given twice means the line that was meant, and nothing goes in circles.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use super::labels::Labels;
use super::line::{BRIEF, Branch, Key, Kind, Line, REFUSED, REPLACEMENT, TOOL_START};
use super::lines::{Lines, Step};
use super::starts::Starts;

/// How many steps may be spent on looking for circles, beside one per line.
const CLIMBS: usize = 1 << 20;

/// A line of the tree, by its number.
pub(super) type Place = u32;

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
    print: u32,
    pub(super) parent: Option<Place>,
    /// The line that it follows or answers, where that is not its parent.
    pub(super) other: Option<Place>,
    pub(super) kind: Kind,
    pub(super) branch: Branch,
    pub(super) meta: bool,
    pub(super) summary: bool,
}

impl Node {
    /// Whether it is something that was said in the conversation itself.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.kind, Kind::User | Kind::Assistant) && self.branch == Branch::Main && !self.meta
    }
}

/// What was wrong with a transcript, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Lines that could not be read, or not wholly.
    pub unreadable: usize,
    /// Lines that stand there twice.
    pub duplicates: usize,
    /// Lines that hang on one that is not there.
    pub adopted: usize,
    /// Calls that have no result.
    pub unanswered: usize,
    /// Results that have no call.
    pub stray_results: usize,
}

impl Repairs {
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
pub struct Facts {
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
    by_key: HashMap<Key, Place>,
    /// What the model was told before a line.
    pub(super) briefs: HashMap<Key, Vec<Span>>,
    /// Calls that had begun.
    pub(super) started: Starts,
    /// Messages that a provider has refused, and where that is said.
    pub(super) refused: HashSet<Key>,
    pub(super) refusals: Vec<Span>,
    /// Lines that say which parts of the conversation are kept elsewhere.
    pub(super) replacements: Vec<Span>,
    pub(super) labels: Labels,
    pub(super) facts: Facts,
    pub(super) repairs: Repairs,
    /// Lines whose parent was not found among those before them.
    homeless: Vec<(Place, Key)>,
    /// Where the lines begin that are taken in; of those before, only facts are noted.
    begin: u64,
    /// Whether a line answers one that was not found.
    has_strangers: bool,
}

impl Index {
    /// Reads a transcript through.
    pub(super) fn scan(reader: impl BufRead) -> io::Result<Self> {
        let mut index = Self::read(reader, 0)?;
        index.house();
        Ok(index)
    }

    /// Reads a transcript through, and takes in the lines from an offset on; none if they do not stand for themselves.
    pub(super) fn scan_from(reader: impl BufRead, begin: u64) -> io::Result<Option<Self>> {
        let index = Self::read(reader, begin)?;
        let has_root = index.nodes.iter().any(|node| node.is_said() && node.parent.is_none());
        let is_whole = index.homeless.is_empty() && !index.has_strangers && !has_root;
        Ok(is_whole.then_some(index))
    }

    /// Reads the transcript of a subagent through: what stands beside a session is its own conversation.
    pub(super) fn scan_subagent(reader: impl BufRead) -> io::Result<Self> {
        let mut index = Self::read(reader, 0)?;
        index.nodes.iter_mut().for_each(|node| node.branch = Branch::Main);
        index.house();
        Ok(index)
    }

    fn read(reader: impl BufRead, begin: u64) -> io::Result<Self> {
        let mut index = Self { begin, ..Self::default() };
        let mut lines = Lines::new(reader);
        while let Some(step) = lines.next()? {
            match step {
                Step::Line(offset, bytes) | Step::Tail(offset, bytes) => {
                    index.take(offset, bytes);
                    index.labels.seen(offset + bytes.len() as u64);
                }
                Step::TooLong => index.repairs.unreadable += 1,
            }
        }
        Ok(index)
    }

    /// Whether a transcript has a line of the tree that fits; reads no further than that.
    pub(super) fn has(reader: impl BufRead, fits: fn(&Node) -> bool) -> io::Result<bool> {
        let mut index = Self::default();
        let mut lines = Lines::new(reader);
        while let Some(step) = lines.next()? {
            if let Step::Line(offset, bytes) | Step::Tail(offset, bytes) = step {
                index.take(offset, bytes);
            }
            if index.nodes.pop().is_some_and(|node| fits(&node)) {
                return Ok(true);
            }
            index.by_key.clear();
        }
        Ok(false)
    }

    /// The line with this name.
    pub(super) fn find(&self, uuid: &str) -> Option<Place> {
        self.by_key.get(&Key::of(uuid)).copied()
    }

    pub(super) fn node(&self, place: Place) -> &Node {
        &self.nodes[place as usize]
    }

    /// Takes a line in, or several where the ends between them were lost.
    fn take(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while let Some((line, end)) = Line::first(bytes) {
            let rest = bytes[end..].trim_ascii_start();
            if rest.is_empty() {
                return self.take_line(&line, offset, bytes);
            }
            if !rest.starts_with(b"{") {
                break;
            }
            self.take_line(&line, offset, &bytes[..end]);
            (offset, bytes) = (offset + end as u64, &bytes[end..]);
        }
        if bytes.trim_ascii().is_empty() {
            return;
        }
        self.repairs.unreadable += 1;
        if let Some((line, skipped)) = Line::read(bytes) {
            self.take_line(&line, offset + skipped as u64, &bytes[skipped..]);
        }
    }

    fn take_line(&mut self, line: &Line<'_>, offset: u64, bytes: &[u8]) {
        let span = Span { offset, length: u32::try_from(bytes.len()).unwrap_or(u32::MAX) };
        self.note_facts(line);
        if offset < self.begin {
            return;
        }
        match (line.kind(), line.uuid()) {
            (Some(kind), Some(uuid)) => self.add(line, kind, Key::of(&uuid), span),
            _ if line.kind_is(TOOL_START) => self.started.note(line),
            _ if line.kind_is(REFUSED) => {
                self.refused.extend(line.message_uuids().iter().map(|uuid| Key::of(uuid)));
                self.refusals.push(span);
            }
            _ if line.kind_is(BRIEF) => {
                if let Some(before) = line.before() {
                    self.briefs.entry(Key::of(&before)).or_default().push(span);
                }
            }
            _ if line.kind_is(REPLACEMENT) => self.replacements.push(span),
            _ => self.labels.note(line, bytes, offset),
        }
    }

    fn note_facts(&mut self, line: &Line<'_>) {
        if let Some(title) = line.custom_title().filter(|title| !title.is_empty()) {
            self.facts.title = Some(title.into_owned());
        } else if let (Some(title), None) = (line.ai_title(), &self.facts.title) {
            self.facts.title = Some(title.into_owned());
        }
        if let Some(cwd) = line.cwd().filter(|cwd| self.facts.cwd.as_deref() != Some(cwd)) {
            self.facts.cwd = Some(cwd.into_owned());
        }
    }

    fn add(&mut self, line: &Line<'_>, kind: Kind, key: Key, span: Span) {
        let place = Place::try_from(self.nodes.len()).unwrap_or(Place::MAX);
        let wanted = line.parent().map(|uuid| Key::of(&uuid));
        let parent = wanted.and_then(|key| self.by_key.get(&key).copied());
        let print = line.fingerprint(span.length);
        if let Some(earlier) = self.by_key.get(&key).map(|place| self.node(*place))
            && (earlier.print, earlier.parent) == (print, parent)
        {
            self.repairs.duplicates += 1;
            return;
        }
        if let (Some(wanted), None) = (wanted, parent) {
            self.homeless.push((place, wanted));
        }
        let other = match kind {
            Kind::Boundary => line.logical_parent(),
            Kind::User => line.source(),
            Kind::Assistant | Kind::Cleared | Kind::Link => None,
        };
        self.has_strangers |=
            kind == Kind::User && other.as_ref().is_some_and(|uuid| self.find(uuid).is_none());
        let other = other.and_then(|uuid| self.find(&uuid));
        let (meta, summary) = (line.is_meta(), line.is_summary());
        self.nodes.push(Node { span, print, parent, other, kind, branch: line.branch(), meta, summary });
        self.by_key.insert(key, place);
        // Whoever knows the prompt by its first name means what is said in its place.
        if let Some(first) = line.copy_of() {
            self.by_key.insert(Key::of(&first), place);
        }
    }

    /// Gives every line a parent that names one it cannot have: the line of that name further down, or the one before it.
    fn house(&mut self) {
        let mut steps = self.nodes.len() + CLIMBS;
        for (place, wanted) in std::mem::take(&mut self.homeless) {
            self.repairs.adopted += 1;
            let later = self.by_key.get(&wanted).copied();
            let before = self.before(place);
            let fit =
                later.into_iter().chain(before).find(|parent| !self.hangs_on(*parent, place, &mut steps));
            self.nodes[place as usize].parent = fit;
        }
    }

    /// The line of the conversation before this one. Branches are not mended: nothing hangs on them.
    fn before(&self, place: Place) -> Option<Place> {
        if self.node(place).branch == Branch::Side {
            return None;
        }
        (0..place).rev().find(|earlier| self.node(*earlier).branch == Branch::Main)
    }

    /// Whether a line hangs on another, as far as we can afford to know.
    fn hangs_on(&self, mut place: Place, above: Place, steps: &mut usize) -> bool {
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
