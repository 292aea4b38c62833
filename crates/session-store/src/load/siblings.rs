//! Entries off the active branch that still belong to the conversation. The official engine attaches each result of
//! parallel tool calls to its own call, so all results but one, and sometimes parts of a reply, are siblings of the
//! branch. Siblings left by a rewind to an earlier message are excluded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read, Seek};

use whimbrel_wire::content::Block;

use crate::entry::EntryKind;
use crate::load::branch;
use crate::load::entry_reader::{EntryReader, LoadedMessage, TurnRole};
use crate::load::index::{Index, NodeId, Span};

/// An entry of the conversation.
#[derive(Debug)]
pub(crate) struct BranchEntry {
    pub(crate) node_id: NodeId,
    pub(crate) span: Span,
    /// The message in it; `None` for entries that only link others.
    pub(crate) message: Option<LoadedMessage>,
    /// Visible to the user, not only to the model.
    pub(crate) is_visible: bool,
}

/// Reads the entries of a branch and inserts the siblings that belong to them, but not after `last` if it is given.
pub(crate) fn collect_entries<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    path: &[NodeId],
    last: Option<NodeId>,
) -> io::Result<Vec<BranchEntry>> {
    let mut entries: HashMap<NodeId, BranchEntry> = HashMap::with_capacity(path.len());
    for node_id in path {
        let node = index.node(*node_id);
        entries.insert(
            *node_id,
            BranchEntry {
                node_id: *node_id,
                span: node.span,
                message: reader.read_message(node)?,
                is_visible: node.is_message(),
            },
        );
    }
    let mut open = unanswered_calls(entries.values());
    let mut after: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let first = path.first().copied().unwrap_or_default();
    let dropped = abandoned_ranges(index, path, &entries);
    for (node_id, node) in (first..).zip(&index.nodes[first as usize..]) {
        if last.is_some_and(|last| node_id > last) {
            break;
        }
        if !node.is_message() || entries.contains_key(&node_id) || is_within(&dropped, node_id) {
            continue;
        }
        let above = node.logical_parent.or_else(|| branch::previous_message(index, node_id));
        let Some((above, neighbor)) = above.and_then(|above| Some((above, entries.get(&above)?))) else {
            continue;
        };
        let Some(mut message) = reader.read_message(node)? else { continue };
        let is_part = match node.kind {
            EntryKind::User => {
                message
                    .content
                    .blocks
                    .retain(|block| answered_call_id(block).is_some_and(|id| open.remove(id)));
                !message.content.blocks.is_empty()
            }
            EntryKind::Assistant | EntryKind::CompactBoundary | EntryKind::Rewound | EntryKind::Other => {
                is_same_reply(&message, neighbor)
            }
        };
        if is_part {
            open.extend(message.content.blocks.iter().filter_map(started_call_id).map(str::to_owned));
            after.entry(above).or_default().push(node_id);
            let entry = BranchEntry { node_id, span: node.span, message: Some(message), is_visible: true };
            entries.insert(node_id, entry);
        }
    }
    let mut stack: Vec<NodeId> = path.iter().rev().copied().collect();
    let mut collected = Vec::with_capacity(entries.len());
    while let Some(node_id) = stack.pop() {
        collected.extend(entries.remove(&node_id));
        stack.extend(after.remove(&node_id).into_iter().flatten().rev());
    }
    Ok(collected)
}

/// Ranges of entries that a rewind abandoned: those between a prompt, or the entry of a rewind, and its parent message.
/// A prompt follows the last message unless the user went back to an earlier one.
fn abandoned_ranges(
    index: &Index,
    path: &[NodeId],
    entries: &HashMap<NodeId, BranchEntry>,
) -> BTreeMap<NodeId, NodeId> {
    let is_prompt = |node_id: NodeId| {
        entries.get(&node_id).and_then(|entry| entry.message.as_ref()).map(|message| message.role)
            == Some(TurnRole::Prompt)
    };
    let ends = path
        .iter()
        .filter(|node_id| index.node(**node_id).kind == EntryKind::Rewound || is_prompt(**node_id));
    ends.filter_map(|end| Some((branch::previous_message(index, *end)?, *end))).collect()
}

fn is_within(ranges: &BTreeMap<NodeId, NodeId>, node_id: NodeId) -> bool {
    ranges.range(..node_id).next_back().is_some_and(|(_, end)| node_id < *end)
}

/// Ids of tool calls without a result.
fn unanswered_calls<'a>(entries: impl Iterator<Item = &'a BranchEntry> + Clone) -> HashSet<String> {
    let blocks =
        entries.filter_map(|entry| entry.message.as_ref()).flat_map(|message| &message.content.blocks);
    let answered: HashSet<&str> = blocks.clone().filter_map(answered_call_id).collect();
    blocks.filter_map(started_call_id).filter(|id| !answered.contains(id)).map(str::to_owned).collect()
}

fn is_same_reply(message: &LoadedMessage, neighbor: &BranchEntry) -> bool {
    let reply = neighbor.message.as_ref().and_then(|message| message.content.reply.as_ref());
    reply.is_some() && reply == message.content.reply.as_ref()
}

fn answered_call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}

fn started_call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolUse { id, .. } => Some(id),
        _ => None,
    }
}
