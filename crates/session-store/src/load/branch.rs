//! Selects the active branch of a transcript: from the last message of the main branch up to its root, to the last
//! compaction, or to where the conversation was cleared. Checks that `--resume-drops-turn` drops only the turn that the
//! host named.

use std::collections::HashSet;
use std::io::{Read, Seek};

use crate::entry::{EntryBranch, EntryKind};
use crate::load::entry_reader::{EntryReader, TurnRole};
use crate::load::index::{Index, NodeId};
use crate::load::{LoadError, LoadRange};

/// The last message in the file that has no child message.
pub(crate) fn find_leaf(index: &Index) -> Option<NodeId> {
    let messages = || (0..index.nodes.len() as NodeId).filter(|node_id| index.node(*node_id).is_message());
    let answered: HashSet<NodeId> =
        messages().filter_map(|node_id| previous_message(index, node_id)).collect();
    messages().rev().find(|node_id| !answered.contains(node_id)).or_else(|| messages().next_back())
}

/// The entry to resume from: the leaf, or a later clear.
pub(crate) fn find_resume_point(index: &Index) -> Option<NodeId> {
    let is_cleared = |node_id: &NodeId| {
        let node = index.node(*node_id);
        node.kind == EntryKind::Cleared && node.branch == EntryBranch::Main
    };
    let cleared = (0..index.nodes.len() as NodeId).rev().find(is_cleared);
    find_leaf(index).max(cleared)
}

/// The entries from the root to a leaf. Stops at a compaction boundary that has a summary; a boundary without one, left
/// by an engine that was killed, is passed through to its logical parent. Sidechain entries are skipped, even as
/// ancestors.
pub(crate) fn branch_to(index: &Index, leaf: Option<NodeId>) -> Vec<NodeId> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut has_summary = false;
    let mut next = leaf;
    while let Some(node_id) = next.filter(|node_id| seen.insert(*node_id)) {
        let node = index.node(node_id);
        if node.branch == EntryBranch::Main {
            path.push(node_id);
        }
        has_summary |= node.is_summary;
        next = match node.kind {
            EntryKind::CompactBoundary if has_summary => None,
            EntryKind::CompactBoundary => node.parent.or(node.logical_parent),
            EntryKind::Cleared => None,
            EntryKind::User | EntryKind::Assistant | EntryKind::Other => node.parent,
        };
    }
    path.reverse();
    path
}

/// The nearest ancestor that is a message.
pub(crate) fn previous_message(index: &Index, node_id: NodeId) -> Option<NodeId> {
    let mut next = index.node(node_id).parent;
    while let Some(node_id) = next {
        let node = index.node(node_id);
        if node.is_message() {
            return Some(node_id);
        }
        next = node.parent;
    }
    None
}

/// The last entry to load.
pub(crate) fn select_leaf<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    until: &LoadRange,
) -> Result<Option<NodeId>, LoadError> {
    let last = find_resume_point(index);
    let find = |uuid: &String| index.find(uuid).ok_or_else(|| LoadError::NoSuchMessage(uuid.clone()));
    let (at, dropped_prompt) =
        (until.last_message.as_ref().map(find).transpose()?, until.dropped_prompt.as_ref());
    let Some(dropped_prompt) = dropped_prompt else { return Ok(at.or(last)) };
    let prompt = index.find(dropped_prompt).ok_or_else(|| {
        LoadError::Rejected(format!(
            "the session has no message {dropped_prompt}. Give the uuid of the prompt whose turn is to be dropped."
        ))
    })?;
    let at = at.or_else(|| previous_message(index, prompt));
    let path = branch_to(index, last);
    let kept_count = match at {
        None => 0,
        Some(at) => {
            path.iter().position(|node_id| *node_id == at).map(|node_id| node_id + 1).ok_or_else(|| {
                LoadError::Rejected("the message to return to is not in the current conversation.".into())
            })?
        }
    };
    check_dropped_entries(index, reader, &path[kept_count..], prompt)?;
    Ok(at)
}

/// Checks that all dropped entries belong to the turn of a prompt.
fn check_dropped_entries<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    dropped: &[NodeId],
    prompt: NodeId,
) -> Result<(), LoadError> {
    let mut has_started = false;
    for node_id in dropped {
        has_started |= *node_id == prompt;
        let Some(message) = reader.read_message(index.node(*node_id))? else { continue };
        let is_foreign = match message.role {
            TurnRole::Prompt => *node_id != prompt,
            TurnRole::ToolResult | TurnRole::Reply => !has_started,
            TurnRole::EngineNote => false,
        };
        if is_foreign {
            return Err(LoadError::Rejected(format!(
                "the message {} would be dropped too, but is not part of that turn. Resume without the flag to keep it.",
                message.uuid
            )));
        }
    }
    Ok(())
}
