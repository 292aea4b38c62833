//! Which lines of a transcript are the conversation: from the last thing said on the main line up to its root, to the
//! summary that took the root's place, or to where it was cleared.

use std::collections::HashSet;

use super::index::{Index, Place};
use super::line::{Branch, Kind};

/// The last line of the conversation: the last in the file that nothing was said after.
pub(super) fn leaf(index: &Index) -> Option<Place> {
    let said = || (0..index.nodes.len() as Place).filter(|place| index.node(*place).is_said());
    let answered: HashSet<Place> = said().filter_map(|place| said_before(index, place)).collect();
    said().rev().find(|place| !answered.contains(place)).or_else(|| said().next_back())
}

/// The line that a session goes on from: the last of the conversation, or the one at which it was cleared since.
pub(super) fn end(index: &Index) -> Option<Place> {
    let is_cleared = |place: &Place| {
        let node = index.node(*place);
        node.kind == Kind::Cleared && node.branch == Branch::Main
    };
    let cleared = (0..index.nodes.len() as Place).rev().find(is_cleared);
    leaf(index).max(cleared)
}

/// The lines from the root to a leaf. A summary stands for everything before its boundary; a boundary that no summary
/// follows, because the engine ended in between, stands for nothing. What a subagent said is passed over, also where the
/// conversation hangs on it.
pub(super) fn path(index: &Index, leaf: Option<Place>) -> Vec<Place> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut summarised = false;
    let mut next = leaf;
    while let Some(place) = next.filter(|place| seen.insert(*place)) {
        let node = index.node(place);
        if node.branch == Branch::Main {
            path.push(place);
        }
        summarised |= node.summary;
        next = match node.kind {
            Kind::Boundary if summarised => None,
            Kind::Boundary => node.parent.or(node.other),
            Kind::Cleared => None,
            Kind::User | Kind::Assistant | Kind::Link => node.parent,
        };
    }
    path.reverse();
    path
}

/// What was said last before a line, along its branch.
pub(super) fn said_before(index: &Index, place: Place) -> Option<Place> {
    let mut next = index.node(place).parent;
    while let Some(place) = next {
        let node = index.node(place);
        if node.is_said() {
            return Some(place);
        }
        next = node.parent;
    }
    None
}
