//! Reads a transcript back. Two passes: one over all lines, which keeps a few bytes of each that still counts, and one over
//! those that are the conversation. The file is only read; whatever is wrong with it is mended in what comes out.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek};

use whimbrel_models::History;
use whimbrel_wire::content::{Block, Role};

use super::siblings::{self, BranchEntry};
use super::truncate;
pub use super::index::{TranscriptFacts, RepairCounts};
use super::index::{Index, Node, Span};
pub use super::metadata::MetadataEntries;
pub use super::entry::IdKey;
use super::partial_index;
use super::tool_searches;
use super::repair::{RepairedHistory, MessageContent, repair};
use super::branch;
use super::entry_reader::{TurnRole, EntryReader};
use super::rejected::{message_placeholder, block_placeholders};

/// How much is read at once.
const READ_BUFFER_SIZE: usize = 256 * 1024;

/// Up to where a conversation is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadRange {
    /// The last message that counts.
    pub last_message: Option<String>,
    /// The prompt whose turn is dropped by that. If anything else would be lost, nothing is read.
    pub dropped_prompt: Option<String>,
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
pub struct LoadedConversation {
    /// What the model is sent.
    pub history: History,
    /// Whether there is thinking in it that nobody has signed, which not every provider takes back.
    pub has_unsigned_thinking: bool,
    /// The last line of the conversation.
    pub leaf: Option<String>,
    /// The ids of all calls in it.
    pub call_ids: HashSet<String>,
    /// What the model was told beside the conversation.
    pub hidden_texts: HashSet<IdKey>,
    /// The ids of its messages.
    pub uuids: HashSet<IdKey>,
    /// What it is recognised by in lists.
    pub metadata: MetadataEntries,
    /// The tools that were loaded in it, in order.
    pub loaded_tools: Vec<String>,
    /// How many prompts it has.
    pub turns: u32,
    /// Tokens of the last request and its reply, as the provider counted them.
    pub context_tokens: u64,
    /// What else the transcript says.
    pub facts: TranscriptFacts,
    /// What was wrong with it.
    pub repairs: RepairCounts,
    /// Calls that had begun and have no result.
    pub unfinished_calls: Vec<String>,
    /// Where the lines of the conversation lie, in order.
    pub(super) spans: Vec<Span>,
}

/// Reads a transcript back, up to where it is wanted.
pub fn load<R: Read + Seek>(file: R, until: &LoadRange) -> Result<LoadedConversation, LoadError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = match until {
        LoadRange { last_message: None, dropped_prompt: None } => partial_index::build_index(&mut file, branch::find_resume_point)?,
        // It may be any message.
        _ => Index::scan(&mut file)?,
    };
    build_conversation(file, &index, until)
}

/// Reads the transcript of a subagent back, in which everything stands beside the session's own conversation.
pub(super) fn load_subagent<R: Read + Seek>(file: R) -> Result<LoadedConversation, LoadError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = Index::scan_subagent(&mut file)?;
    build_conversation(file, &index, &LoadRange::default())
}

fn build_conversation<R: Read + Seek>(mut file: BufReader<R>, index: &Index, until: &LoadRange) -> Result<LoadedConversation, LoadError> {
    file.rewind()?;
    let mut reader = EntryReader::new(file);
    let leaf = truncate::select_leaf(index, &mut reader, until)?;
    let last = leaf.filter(|_| until.last_message.is_some());
    let steps = siblings::collect_entries(index, &mut reader, &branch::branch_to(index, leaf), last)?;
    let mut loaded = LoadedConversation { facts: index.facts.clone(), repairs: index.repairs, ..LoadedConversation::default() };
    if let Some(leaf) = leaf {
        loaded.leaf = reader.read_uuid(index.node(leaf).span)?;
    }
    let said = loaded.collect_messages(index, &mut reader, steps)?;
    loaded.spans.extend(index.rejection_spans.iter().chain(&index.replacement_spans));
    loaded.metadata = index.metadata.clone();
    let RepairedHistory { history, calls, unanswered, stray_results, has_unsigned_thinking: unsigned } = repair(said, &index.started);
    loaded.repairs.unanswered = unanswered.len();
    loaded.repairs.stray_results = stray_results;
    loaded.unfinished_calls = unanswered.into_iter().filter(|id| index.started.contains(id)).collect();
    loaded.history = history;
    loaded.has_unsigned_thinking = unsigned;
    loaded.call_ids = calls;
    Ok(loaded)
}

/// Where the lines of a conversation lie that everybody may read, in order, and what was wrong with the transcript.
pub(super) fn conversation_spans<R: Read + Seek>(file: R) -> io::Result<(Vec<Span>, RepairCounts)> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = partial_index::build_index(&mut file, branch::find_leaf)?;
    file.rewind()?;
    let path = branch::branch_to(&index, branch::find_leaf(&index));
    let mut steps = siblings::collect_entries(&index, &mut EntryReader::new(file), &path, None)?;
    steps.retain(|step| step.is_visible);
    let garbled = steps.iter().filter(|step| step.message.as_ref().is_some_and(|heard| heard.is_garbled));
    let unreadable = index.repairs.unreadable + garbled.count();
    let repairs = RepairCounts { unreadable, ..index.repairs };
    Ok((steps.into_iter().map(|step| step.span).collect(), repairs))
}

/// Whether anything was said in a transcript.
pub fn has_messages(file: impl Read) -> io::Result<bool> {
    Index::any_node(BufReader::with_capacity(READ_BUFFER_SIZE, file), Node::is_message)
}

impl LoadedConversation {
    /// Whether anything was said.
    pub fn has_messages(&self) -> bool {
        !self.history.is_empty()
    }

    /// Notes what the lines of the conversation say beside their words, and gives the words: what the model was told
    /// before a line stands before it.
    fn collect_messages<R: Read + Seek>(
        &mut self,
        index: &Index,
        reader: &mut EntryReader<R>,
        steps: Vec<BranchEntry>,
    ) -> io::Result<Vec<MessageContent>> {
        let mut said = Vec::with_capacity(steps.len());
        let mut searches = HashSet::new();
        for BranchEntry { span, message: heard, is_visible: is_said } in steps {
            let Some(mut heard) = heard else {
                self.loaded_tools.extend(reader.read_loaded_tools(span)?);
                self.spans.push(span);
                continue;
            };
            let name = IdKey::new(&heard.uuid);
            self.uuids.insert(name);
            let is_refused = index.rejected.contains(&name);
            for brief in index.hidden_texts.get(&name).into_iter().flatten() {
                self.spans.push(*brief);
                if let Some(text) = reader.read_hidden_text(*brief)?.filter(|_| !is_refused) {
                    self.hidden_texts.insert(IdKey::new(&text));
                    said.push(MessageContent::from_hidden_text(text));
                }
            }
            self.spans.push(span);
            if is_refused {
                heard.content.blocks = block_placeholders(&heard.content.blocks);
                let repeats = said
                    .last()
                    .is_some_and(|last| last.blocks == [message_placeholder()] && last.blocks == heard.content.blocks);
                if repeats || !is_said {
                    continue;
                }
            }
            self.repairs.unreadable += usize::from(heard.is_garbled);
            if tool_searches::track_tool_search(&heard.content.blocks, &mut searches) {
                self.loaded_tools.extend(reader.read_loaded_tools(span)?);
            }
            self.turns += u32::from(heard.role == TurnRole::Prompt);
            if let (TurnRole::EngineNote, [Block::Text { text, .. }]) = (heard.role, &heard.content.blocks[..]) {
                self.hidden_texts.insert(IdKey::new(text));
            }
            self.facts.mode = heard.mode.or_else(|| self.facts.mode.take());
            self.facts.model = heard.model.or_else(|| self.facts.model.take());
            self.context_tokens = heard.usage.map_or(self.context_tokens, |usage| usage.total());
            said.push(heard.content);
        }
        Ok(said)
    }
}

impl MessageContent {
    fn from_hidden_text(text: String) -> Self {
        Self { role: Role::User, reply: None, blocks: vec![Block::text(text)], starts_recorded: false }
    }
}

#[cfg(test)]
mod tests;
