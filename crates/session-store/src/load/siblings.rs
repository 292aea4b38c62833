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
    pub(crate) span: Span,
    /// The message in it; none for entries that only link others.
    pub(crate) message: Option<LoadedMessage>,
    /// Visible to the user, not only to the model.
    pub(crate) is_visible: bool,
}

/// Reads the entries of a branch and inserts the siblings that belong to them, none after `last` if it is given.
pub(crate) fn collect_entries<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    path: &[NodeId],
    last: Option<NodeId>,
) -> io::Result<Vec<BranchEntry>> {
    let mut steps: HashMap<NodeId, BranchEntry> = HashMap::with_capacity(path.len());
    for place in path {
        let node = index.node(*place);
        steps.insert(
            *place,
            BranchEntry {
                span: node.span,
                message: reader.read_message(node)?,
                is_visible: node.is_message(),
            },
        );
    }
    let mut open = unanswered_calls(steps.values());
    let mut after: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let first = path.first().copied().unwrap_or_default();
    let dropped = abandoned_ranges(index, path, &steps);
    for (place, node) in (first..).zip(&index.nodes[first as usize..]) {
        if last.is_some_and(|last| place > last) {
            break;
        }
        if !node.is_message() || steps.contains_key(&place) || is_within(&dropped, place) {
            continue;
        }
        let above = node.logical_parent.or_else(|| branch::previous_message(index, place));
        let Some((above, beside)) = above.and_then(|above| Some((above, steps.get(&above)?))) else {
            continue;
        };
        let Some(mut heard) = reader.read_message(node)? else { continue };
        let belongs = match node.kind {
            EntryKind::User => {
                heard
                    .content
                    .blocks
                    .retain(|block| answered_call_id(block).is_some_and(|id| open.remove(id)));
                !heard.content.blocks.is_empty()
            }
            EntryKind::Assistant | EntryKind::CompactBoundary | EntryKind::Cleared | EntryKind::Other => {
                is_same_reply(&heard, beside)
            }
        };
        if belongs {
            open.extend(heard.content.blocks.iter().filter_map(started_call_id).map(str::to_owned));
            after.entry(above).or_default().push(place);
            steps.insert(place, BranchEntry { span: node.span, message: Some(heard), is_visible: true });
        }
    }
    let mut todo: Vec<NodeId> = path.iter().rev().copied().collect();
    let mut gathered = Vec::with_capacity(steps.len());
    while let Some(place) = todo.pop() {
        gathered.extend(steps.remove(&place));
        todo.extend(after.remove(&place).into_iter().flatten().rev());
    }
    Ok(gathered)
}

/// Ranges of entries that a rewind abandoned: those between a prompt and its parent message. A prompt follows the last
/// message unless the user went back to an earlier one.
fn abandoned_ranges(
    index: &Index,
    path: &[NodeId],
    steps: &HashMap<NodeId, BranchEntry>,
) -> BTreeMap<NodeId, NodeId> {
    let role = |place: &NodeId| Some(steps.get(place)?.message.as_ref()?.role);
    let prompts = path.iter().filter(|place| role(place) == Some(TurnRole::Prompt));
    prompts.filter_map(|prompt| Some((branch::previous_message(index, *prompt)?, *prompt))).collect()
}

fn is_within(gaps: &BTreeMap<NodeId, NodeId>, place: NodeId) -> bool {
    gaps.range(..place).next_back().is_some_and(|(_, end)| place < *end)
}

/// Ids of tool calls without a result.
fn unanswered_calls<'a>(steps: impl Iterator<Item = &'a BranchEntry> + Clone) -> HashSet<String> {
    let blocks = steps.filter_map(|step| step.message.as_ref()).flat_map(|heard| &heard.content.blocks);
    let answered: HashSet<&str> = blocks.clone().filter_map(answered_call_id).collect();
    blocks.filter_map(started_call_id).filter(|id| !answered.contains(id)).map(str::to_owned).collect()
}

fn is_same_reply(heard: &LoadedMessage, beside: &BranchEntry) -> bool {
    let reply = beside.message.as_ref().and_then(|heard| heard.content.reply.as_ref());
    reply.is_some() && reply == heard.content.reply.as_ref()
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
