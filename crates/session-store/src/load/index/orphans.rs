//! Entries whose parent is missing: each gets the previous entry as its parent, so that one damaged line does not lose
//! the conversation before it.

use super::{Index, NodeId};
use crate::entry::EntryBranch;

/// Limit on ancestor steps when checking for cycles, in addition to one per entry.
const MAX_ANCESTOR_STEPS: usize = 1 << 20;

impl Index {
    /// Gives each orphan a parent: a later entry with the wanted uuid, else the entry before it.
    pub(super) fn reparent_orphans(&mut self) {
        let mut steps = self.nodes.len() + MAX_ANCESTOR_STEPS;
        for (node_id, wanted) in std::mem::take(&mut self.orphans) {
            self.repairs.reparented += 1;
            let successor = self.by_key.get(&wanted).copied();
            let before = self.previous_main_node(node_id);
            let parent = successor
                .into_iter()
                .chain(before)
                .find(|parent| !self.is_descendant(*parent, node_id, &mut steps));
            self.nodes[node_id as usize].parent = parent;
        }
    }

    /// The previous entry of the main branch; `None` for sidechain entries, which are not repaired.
    fn previous_main_node(&self, node_id: NodeId) -> Option<NodeId> {
        if self.node(node_id).branch == EntryBranch::Sidechain {
            return None;
        }
        (0..node_id).rev().find(|earlier| self.node(*earlier).branch == EntryBranch::Main)
    }

    /// Checks whether a node descends from another. Returns true when the step budget is exhausted, which rejects the
    /// candidate parent.
    fn is_descendant(&self, mut node_id: NodeId, above: NodeId, steps: &mut usize) -> bool {
        loop {
            if node_id == above || *steps == 0 {
                return true;
            }
            *steps -= 1;
            match self.node(node_id).parent {
                Some(parent) => node_id = parent,
                None => return false,
            }
        }
    }
}
