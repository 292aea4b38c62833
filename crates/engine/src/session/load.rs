//! Reads a transcript back. Two passes: one over all lines, which keeps a few bytes of each that still counts, and one over
//! those that are the conversation. The file is only read; whatever is wrong with it is mended in what comes out.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek};

use whimbrel_models::History;
use whimbrel_wire::content::{Block, Role};

use super::beside::{self, Step};
use super::cut;
pub use super::index::{Facts, Repairs};
use super::index::{Index, Node, Span};
pub use super::labels::Labels;
pub use super::line::Key;
use super::live;
use super::loaded;
use super::mend::{Mended, Said, mend};
use super::path;
use super::reader::{Part, Reader};
use super::refused::{note, stand_ins};

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// Up to where a conversation is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Until {
    /// The last message that counts.
    pub at: Option<String>,
    /// The prompt whose turn is dropped by that. If anything else would be lost, nothing is read.
    pub drops: Option<String>,
}

/// Why a conversation could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("The transcript cannot be read: {0}.")]
    Io(#[from] io::Error),
    /// The message that it is wanted up to is not there.
    #[error("No message found with message.uuid of: {0}")]
    NoSuchMessage(String),
    /// More would be dropped than the host knows of.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    Rejected(String),
}

/// A conversation, read back.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What the model is sent.
    pub history: History,
    /// Whether there is thinking in it that nobody has signed, which not every provider takes back.
    pub unsigned: bool,
    /// The last line of the conversation.
    pub leaf: Option<String>,
    /// The ids of all calls in it.
    pub calls: HashSet<String>,
    /// What the model was told beside the conversation.
    pub told: HashSet<Key>,
    /// The ids of its messages.
    pub names: HashSet<Key>,
    /// What it is recognised by in lists.
    pub labels: Labels,
    /// The tools that were loaded in it, in order.
    pub tools: Vec<String>,
    /// How many prompts it has.
    pub turns: u32,
    /// Tokens of the last request and its reply, as the provider counted them.
    pub counted: u64,
    /// What else the transcript says.
    pub facts: Facts,
    /// What was wrong with it.
    pub repairs: Repairs,
    /// Calls that had begun and have no result.
    pub unfinished: Vec<String>,
    /// Where the lines of the conversation lie, in order.
    pub(super) spans: Vec<Span>,
}

/// Reads a transcript back, up to where it is wanted.
pub fn load<R: Read + Seek>(file: R, until: &Until) -> Result<Loaded, LoadError> {
    let mut file = BufReader::with_capacity(PIECE, file);
    let index = match until {
        Until { at: None, drops: None } => live::index(&mut file, path::end)?,
        // It may be any message.
        _ => Index::scan(&mut file)?,
    };
    build(file, &index, until)
}

/// Reads the transcript of a subagent back, in which everything stands beside the session's own conversation.
pub(super) fn load_subagent<R: Read + Seek>(file: R) -> Result<Loaded, LoadError> {
    let mut file = BufReader::with_capacity(PIECE, file);
    let index = Index::scan_subagent(&mut file)?;
    build(file, &index, &Until::default())
}

fn build<R: Read + Seek>(mut file: BufReader<R>, index: &Index, until: &Until) -> Result<Loaded, LoadError> {
    file.rewind()?;
    let mut reader = Reader::new(file);
    let leaf = cut::leaf(index, &mut reader, until)?;
    let last = leaf.filter(|_| until.at.is_some());
    let steps = beside::gather(index, &mut reader, &path::path(index, leaf), last)?;
    let mut loaded = Loaded { facts: index.facts.clone(), repairs: index.repairs, ..Loaded::default() };
    if let Some(leaf) = leaf {
        loaded.leaf = reader.name(index.node(leaf).span)?;
    }
    let said = loaded.take(index, &mut reader, steps)?;
    loaded.spans.extend(index.refusals.iter().chain(&index.replacements));
    loaded.labels = index.labels.clone();
    let Mended { history, calls, unanswered, stray_results, unsigned } = mend(said, &index.started);
    loaded.repairs.unanswered = unanswered.len();
    loaded.repairs.stray_results = stray_results;
    loaded.unfinished = unanswered.into_iter().filter(|id| index.started.has(id)).collect();
    loaded.history = history;
    loaded.unsigned = unsigned;
    loaded.calls = calls;
    Ok(loaded)
}

/// Where the lines of a conversation lie that everybody may read, in order, and what was wrong with the transcript.
pub(super) fn conversation<R: Read + Seek>(file: R) -> io::Result<(Vec<Span>, Repairs)> {
    let mut file = BufReader::with_capacity(PIECE, file);
    let index = live::index(&mut file, path::leaf)?;
    file.rewind()?;
    let path = path::path(&index, path::leaf(&index));
    let mut steps = beside::gather(&index, &mut Reader::new(file), &path, None)?;
    steps.retain(|step| step.is_said);
    let garbled = steps.iter().filter(|step| step.heard.as_ref().is_some_and(|heard| heard.garbled));
    let unreadable = index.repairs.unreadable + garbled.count();
    let repairs = Repairs { unreadable, ..index.repairs };
    Ok((steps.into_iter().map(|step| step.span).collect(), repairs))
}

/// Whether anything was said in a transcript.
pub fn is_spoken(file: impl Read) -> io::Result<bool> {
    Index::has(BufReader::with_capacity(PIECE, file), Node::is_said)
}

impl Loaded {
    /// Whether anything was said.
    pub fn has_begun(&self) -> bool {
        !self.history.is_empty()
    }

    /// Notes what the lines of the conversation say beside their words, and gives the words: what the model was told
    /// before a line stands before it.
    fn take<R: Read + Seek>(
        &mut self,
        index: &Index,
        reader: &mut Reader<R>,
        steps: Vec<Step>,
    ) -> io::Result<Vec<Said>> {
        let mut said = Vec::with_capacity(steps.len());
        let mut searches = HashSet::new();
        for Step { span, heard, is_said } in steps {
            let Some(mut heard) = heard else {
                self.tools.extend(reader.tools(span)?);
                self.spans.push(span);
                continue;
            };
            let name = Key::of(&heard.uuid);
            self.names.insert(name);
            let is_refused = index.refused.contains(&name);
            for brief in index.briefs.get(&name).into_iter().flatten() {
                self.spans.push(*brief);
                if let Some(text) = reader.told(*brief)?.filter(|_| !is_refused) {
                    self.told.insert(Key::of(&text));
                    said.push(Said::brief(text));
                }
            }
            self.spans.push(span);
            if is_refused {
                heard.said.blocks = stand_ins(&heard.said.blocks);
                let repeats = said
                    .last()
                    .is_some_and(|last| last.blocks == [note()] && last.blocks == heard.said.blocks);
                if repeats || !is_said {
                    continue;
                }
            }
            self.repairs.unreadable += usize::from(heard.garbled);
            if loaded::answers_search(&heard.said.blocks, &mut searches) {
                self.tools.extend(reader.tools(span)?);
            }
            self.turns += u32::from(heard.role == Part::Prompt);
            if let (Part::Remark, [Block::Text { text, .. }]) = (heard.role, &heard.said.blocks[..]) {
                self.told.insert(Key::of(text));
            }
            self.facts.mode = heard.mode.or_else(|| self.facts.mode.take());
            self.facts.model = heard.model.or_else(|| self.facts.model.take());
            self.counted = heard.usage.map_or(self.counted, |usage| usage.total());
            said.push(heard.said);
        }
        Ok(said)
    }
}

impl Said {
    fn brief(text: String) -> Self {
        Self { role: Role::User, reply: None, blocks: vec![Block::text(text)], starts_recorded: false }
    }
}

#[cfg(test)]
mod tests;
