//! Which lines of a transcript are the conversation: from the last thing said on the main line up to its root, to the
//! summary that took the root's place, or to where it was cleared.

use std::collections::HashSet;

use super::index::{Index, NodeId};
use super::entry::{EntryBranch, EntryKind};

/// The last line of the conversation: the last in the file that nothing was said after.
pub(super) fn find_leaf(index: &Index) -> Option<NodeId> {
    let said = || (0..index.nodes.len() as NodeId).filter(|place| index.node(*place).is_message());
    let answered: HashSet<NodeId> = said().filter_map(|place| previous_message(index, place)).collect();
    said().rev().find(|place| !answered.contains(place)).or_else(|| said().next_back())
}

/// The line that a session goes on from: the last of the conversation, or the one at which it was cleared since.
pub(super) fn find_resume_point(index: &Index) -> Option<NodeId> {
    let is_cleared = |place: &NodeId| {
        let node = index.node(*place);
        node.kind == EntryKind::Cleared && node.branch == EntryBranch::Main
    };
    let cleared = (0..index.nodes.len() as NodeId).rev().find(is_cleared);
    find_leaf(index).max(cleared)
}

/// The lines from the root to a leaf. A summary stands for everything before its boundary; a boundary that no summary
/// follows, because the engine ended in between, stands for nothing. What a subagent said is passed over, also where the
/// conversation hangs on it.
pub(super) fn branch_to(index: &Index, leaf: Option<NodeId>) -> Vec<NodeId> {
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

/// What was said last before a line, along its branch.
pub(super) fn previous_message(index: &Index, place: NodeId) -> Option<NodeId> {
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
