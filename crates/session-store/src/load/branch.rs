//! Selects the active branch of a transcript: from the last message of the main branch up to its root, to the last
//! compaction, or to where the conversation was cleared.

use std::collections::HashSet;

use crate::entry::{EntryBranch, EntryKind};
use crate::load::index::{Index, NodeId};

/// The last message in the file that has no child message.
pub(crate) fn find_leaf(index: &Index) -> Option<NodeId> {
    let said = || (0..index.nodes.len() as NodeId).filter(|place| index.node(*place).is_message());
    let answered: HashSet<NodeId> = said().filter_map(|place| previous_message(index, place)).collect();
    said().rev().find(|place| !answered.contains(place)).or_else(|| said().next_back())
}

/// The entry to resume from: the leaf, or a later clear.
pub(crate) fn find_resume_point(index: &Index) -> Option<NodeId> {
    let is_cleared = |place: &NodeId| {
        let node = index.node(*place);
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
    let mut summarised = false;
    let mut next = leaf;
    while let Some(place) = next.filter(|place| seen.insert(*place)) {
        let node = index.node(place);
        if node.branch == EntryBranch::Main {
            path.push(place);
        }
        summarised |= node.is_summary;
        next = match node.kind {
            EntryKind::CompactBoundary if summarised => None,
            EntryKind::CompactBoundary => node.parent.or(node.logical_parent),
            EntryKind::Cleared => None,
            EntryKind::User | EntryKind::Assistant | EntryKind::Other => node.parent,
        };
    }
    path.reverse();
    path
}

/// The nearest ancestor that is a message.
pub(crate) fn previous_message(index: &Index, place: NodeId) -> Option<NodeId> {
    let mut next = index.node(place).parent;
    while let Some(place) = next {
        let node = index.node(place);
        if node.is_message() {
            return Some(place);
        }
        next = node.parent;
    }
    None
}
