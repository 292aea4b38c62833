//! Loads a conversation from a transcript in two passes: one over all lines, which builds a compact index, and one over
//! the entries of the active branch. The file is only read; defects are repaired in the result.

mod branch;
pub(crate) mod entry_reader;
pub(crate) mod index;
pub mod open_calls;
mod partial_index;
pub mod repair;
pub mod rewind;
mod siblings;
#[cfg(test)]
mod tests;
mod tool_calls;

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek};

use whimbrel_models::History;
use whimbrel_wire::content::{Block, Role};

use crate::awaited_agents::AwaitedAgent;
use crate::cost_state::CostState;
use crate::entry::HiddenText;
pub use crate::entry::IdKey;
use crate::load::entry_reader::{EntryReader, TurnRole};
use crate::load::index::{Index, Node, NodeId, Span};
pub use crate::load::index::{RecordedState, RepairCounts};
use crate::load::open_calls::{LastCalls, OpenCall};
use crate::load::repair::{MessageContent, RepairedHistory, block_placeholders, message_placeholder, repair};
use crate::load::siblings::BranchEntry;
use crate::load::tool_calls::ToolSearchCalls;
pub use crate::metadata::MetadataEntries;

const READ_BUFFER_SIZE: usize = 256 * 1024;

/// The part of a conversation to load; all of it by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadRange {
    /// The last message to load.
    pub last_message: Option<String>,
    /// The prompt whose turn is dropped. Loading fails if any other message would be lost.
    pub dropped_prompt: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("The transcript cannot be read: {0}.")]
    Io(#[from] io::Error),
    /// The last message to load does not exist.
    #[error("No message found with message.uuid of: {0}")]
    NoSuchMessage(String),
    /// Messages other than the turn named by the host would be dropped.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    Rejected(String),
}

#[derive(Debug, Default)]
pub struct LoadedConversation {
    /// Messages to send to the model.
    pub history: History,
    /// The history contains thinking without a signature, which some providers reject.
    pub has_unsigned_thinking: bool,
    /// Uuid of the last entry.
    pub leaf: Option<String>,
    pub call_ids: HashSet<String>,
    /// Texts that the model has received hidden from the user.
    pub hidden_texts: HashSet<IdKey>,
    /// The permission mode that was last announced to the model.
    pub announced_mode: Option<String>,
    /// Uuids of all messages.
    pub uuids: HashSet<IdKey>,
    pub metadata: MetadataEntries,
    /// Background agents whose reports the conversation awaits.
    pub awaited_agents: Vec<AwaitedAgent>,
    /// Cost of the session so far, as last recorded.
    pub cost: Option<CostState>,
    /// Deferred tools loaded so far, in order.
    pub loaded_tools: Vec<String>,
    /// Number of prompts.
    pub turns: u32,
    /// Tokens of the last request and its reply, as reported by the provider.
    pub context_tokens: u64,
    pub recorded: RecordedState,
    pub repairs: RepairCounts,
    /// Calls that had started and have no result.
    pub unfinished_calls: Vec<String>,
    /// Calls of the last reply to which the history has no result; only if they were requested.
    pub open_calls: Vec<OpenCall>,
    /// Positions of the conversation's entries, in order.
    pub(super) spans: Vec<Span>,
}

/// Loads a conversation from a transcript.
pub fn load<R: Read + Seek>(file: R, until: &LoadRange) -> Result<LoadedConversation, LoadError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = match until {
        LoadRange { last_message: None, dropped_prompt: None } => partial_index::build_index(&mut file)?,
        // The named message can be anywhere in the file.
        _ => Index::scan(&mut file)?,
    };
    build_conversation(file, &index, until)
}

/// Loads a conversation whose last reply may have calls that never started. They are in `open_calls`.
pub fn load_with_open_calls<R: Read + Seek>(file: R) -> Result<LoadedConversation, LoadError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = partial_index::build_index(&mut file)?;
    file.rewind()?;
    let leaf = branch::find_resume_point(&index);
    Ok(load_branch(&mut EntryReader::new(file), &index, (leaf, BranchPart::Whole), LastCalls::Open)?)
}

/// Loads the transcript of a subagent, whose entries are all marked as sidechain.
pub(super) fn load_subagent<R: Read + Seek>(file: R) -> Result<LoadedConversation, LoadError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = Index::scan_subagent(&mut file)?;
    build_conversation(file, &index, &LoadRange::default())
}

fn build_conversation<R: Read + Seek>(
    mut file: BufReader<R>,
    index: &Index,
    until: &LoadRange,
) -> Result<LoadedConversation, LoadError> {
    file.rewind()?;
    let mut reader = EntryReader::new(file);
    let leaf = branch::select_leaf(index, &mut reader, until)?;
    let part = match until {
        LoadRange { last_message: Some(_), .. } => BranchPart::UpToEntry,
        LoadRange { dropped_prompt: Some(_), .. } => BranchPart::WithoutLastTurn,
        LoadRange { last_message: None, dropped_prompt: None } => BranchPart::Whole,
    };
    Ok(load_branch(&mut reader, index, (leaf, part), LastCalls::Answered)?)
}

/// How much of a branch the leaf ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BranchPart {
    Whole,
    WithoutLastTurn,
    /// Later parts of the reply of the leaf do not belong to it.
    UpToEntry,
}

fn load_branch<R: Read + Seek>(
    reader: &mut EntryReader<R>,
    index: &Index,
    (leaf, part): (Option<NodeId>, BranchPart),
    last_calls: LastCalls,
) -> io::Result<LoadedConversation> {
    let path = branch::branch_to(index, leaf);
    let entries =
        siblings::collect_entries(index, reader, &path, leaf.filter(|_| part == BranchPart::UpToEntry))?;
    let mut loaded = LoadedConversation {
        recorded: index.recorded.clone(),
        cost: index.cost.clone(),
        repairs: index.repairs,
        ..LoadedConversation::default()
    };
    if let Some(leaf) = leaf {
        loaded.leaf = reader.read_uuid(index.node(leaf).span)?;
    }
    let messages = loaded.collect_messages(index, reader, entries)?;
    loaded.spans.extend(index.rejection_spans.iter().chain(&index.replacement_spans));
    loaded.metadata = index.metadata.clone();
    let RepairedHistory { history, calls, unanswered, open_calls, stray_results, has_unsigned_thinking } =
        repair(messages, &index.started, last_calls);
    loaded.repairs.unanswered = unanswered.len();
    loaded.repairs.stray_results = stray_results;
    loaded.unfinished_calls = unanswered.into_iter().filter(|id| index.started.contains(id)).collect();
    loaded.history = history;
    loaded.open_calls = open_calls;
    loaded.has_unsigned_thinking = has_unsigned_thinking;
    loaded.call_ids = calls;
    loaded.awaited_agents = index.awaited_agents(leaf.filter(|_| part != BranchPart::Whole));
    // An agent counts only while the model sees the call that started it.
    loaded.awaited_agents.retain(|agent| loaded.call_ids.contains(&agent.tool_use_id));
    Ok(loaded)
}

/// Positions of the entries that the user can see, in order, and the defects of the transcript.
pub(super) fn conversation_spans<R: Read + Seek>(file: R) -> io::Result<(Vec<Span>, RepairCounts)> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = partial_index::build_index(&mut file)?;
    file.rewind()?;
    let path = branch::branch_to(&index, branch::find_resume_point(&index));
    let mut entries = siblings::collect_entries(&index, &mut EntryReader::new(file), &path, None)?;
    entries.retain(|entry| entry.is_visible);
    let unreadable_entries =
        entries.iter().filter(|entry| entry.message.as_ref().is_some_and(|message| message.is_garbled));
    let unreadable = index.repairs.unreadable + unreadable_entries.count();
    let repairs = RepairCounts { unreadable, ..index.repairs };
    Ok((entries.into_iter().map(|entry| entry.span).collect(), repairs))
}

/// Checks whether a transcript contains a message.
pub fn has_messages(file: impl Read) -> io::Result<bool> {
    Index::any_node(BufReader::with_capacity(READ_BUFFER_SIZE, file), Node::is_message)
}

impl LoadedConversation {
    pub fn has_messages(&self) -> bool {
        !self.history.is_empty()
    }

    /// Collects the messages with the hidden texts inserted before them, and records tools, usage and recorded state of
    /// each entry.
    fn collect_messages<R: Read + Seek>(
        &mut self,
        index: &Index,
        reader: &mut EntryReader<R>,
        entries: Vec<BranchEntry>,
    ) -> io::Result<Vec<MessageContent>> {
        let mut messages = Vec::with_capacity(entries.len());
        let mut searches = ToolSearchCalls::default();
        for BranchEntry { span, message, is_visible, .. } in entries {
            let Some(mut message) = message else {
                self.loaded_tools.extend(reader.read_loaded_tools(span)?);
                self.spans.push(span);
                continue;
            };
            let name = IdKey::new(&message.uuid);
            self.uuids.insert(name);
            let is_rejected = index.rejected.contains(&name);
            for hidden_text in index.hidden_texts.get(&name).into_iter().flatten() {
                self.spans.push(*hidden_text);
                let hidden_text = reader.read_hidden_text(*hidden_text)?.filter(|_| !is_rejected);
                if let Some(HiddenText { text, announced_mode }) = hidden_text {
                    self.hidden_texts.insert(IdKey::new(&text));
                    self.announced_mode = announced_mode.or_else(|| self.announced_mode.take());
                    messages.push(MessageContent::from_hidden_text(text));
                }
            }
            self.spans.push(span);
            if is_rejected {
                message.content.blocks = block_placeholders(&message.content.blocks);
                let repeats = messages.last().is_some_and(|last| {
                    last.blocks == [message_placeholder()] && last.blocks == message.content.blocks
                });
                if repeats || !is_visible {
                    continue;
                }
            }
            self.repairs.unreadable += usize::from(message.is_garbled);
            searches.record(&message.content.blocks);
            if searches.has_result_in(&message.content.blocks) {
                self.loaded_tools.extend(reader.read_loaded_tools(span)?);
            }
            self.turns += u32::from(message.role == TurnRole::Prompt);
            if let (TurnRole::EngineNote, [Block::Text { text, .. }]) =
                (message.role, &message.content.blocks[..])
            {
                self.hidden_texts.insert(IdKey::new(text));
            }
            self.recorded.mode = message.mode.or_else(|| self.recorded.mode.take());
            self.recorded.model = message.model.or_else(|| self.recorded.model.take());
            self.context_tokens = message.usage.map_or(self.context_tokens, |usage| usage.total());
            messages.push(message.content);
        }
        Ok(messages)
    }
}

impl MessageContent {
    fn from_hidden_text(text: String) -> Self {
        Self { role: Role::User, reply: None, blocks: vec![Block::text(text)], starts_recorded: false }
    }
}
