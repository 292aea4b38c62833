//! Selects the active branch of a transcript: from the last message of the main branch, or from where a rewind went, up
//! to its root or to the last compaction. Checks that `--resume-drops-turn` drops only the turn that the
//! host named.

use std::collections::HashSet;
use std::io::{Read, Seek};

use crate::entry::{EntryBranch, EntryKind};
use crate::load::entry_reader::{EntryReader, TurnRole};
use crate::load::index::{Index, Node, NodeId};
use crate::load::{LoadError, LoadRange};

/// The last message in the file that has no child message.
fn find_leaf(index: &Index) -> Option<NodeId> {
    let messages = || (0..index.nodes.len() as NodeId).filter(|node_id| index.node(*node_id).is_message());
    let answered: HashSet<NodeId> =
        messages().filter_map(|node_id| previous_message(index, node_id)).collect();
    messages().rev().find(|node_id| !answered.contains(node_id)).or_else(|| messages().next_back())
}

/// The entry to resume from: the leaf, or a later rewind.
pub(crate) fn find_resume_point(index: &Index) -> Option<NodeId> {
    let is_rewind = |node_id: &NodeId| {
        let node = index.node(*node_id);
        node.kind == EntryKind::Rewound && node.branch == EntryBranch::Main
    };
    let rewind = (0..index.nodes.len() as NodeId).rev().find(is_rewind);
    find_leaf(index).max(rewind)
}

/// The entries from the root to a leaf. Stops at a compaction boundary that has a summary; a boundary without one, left
/// by an engine that was killed, is passed through to its logical parent. Sidechain entries are skipped, even as
/// ancestors.
pub(crate) fn branch_to(index: &Index, leaf: Option<NodeId>) -> Vec<NodeId> {
    let mut has_summary = false;
    collect_ancestors(index, leaf, |node| {
        has_summary |= node.is_summary;
        match node.kind {
            EntryKind::CompactBoundary if has_summary => None,
            _ => parent_across_compaction(node),
        }
    })
}

/// The same without a stop: also the entries that a compaction replaced.
pub(crate) fn lineage_of(index: &Index, leaf: Option<NodeId>) -> Vec<NodeId> {
    collect_ancestors(index, leaf, parent_across_compaction)
}

fn parent_across_compaction(node: &Node) -> Option<NodeId> {
    match node.kind {
        EntryKind::CompactBoundary => node.parent.or(node.logical_parent),
        EntryKind::User | EntryKind::Assistant | EntryKind::Rewound | EntryKind::Other => node.parent,
    }
}

/// A leaf and its ancestors of the main branch, from the first to the leaf.
fn collect_ancestors(
    index: &Index,
    leaf: Option<NodeId>,
    mut parent_of: impl FnMut(&Node) -> Option<NodeId>,
) -> Vec<NodeId> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut next = leaf;
    while let Some(node_id) = next.filter(|node_id| seen.insert(*node_id)) {
        let node = index.node(node_id);
        if node.branch == EntryBranch::Main {
            path.push(node_id);
        }
        next = parent_of(node);
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
