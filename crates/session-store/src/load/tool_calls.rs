//! Tool calls that matter for loading: those that had started, and searches that loaded deferred tools.

use std::collections::{HashMap, HashSet};

use whimbrel_wire::content::Block;
use whimbrel_wire::tool_names::TOOL_SEARCH;

use crate::entry::{IdKey, TranscriptEntry};

/// Tool calls that had started, and the agents that run them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartedCalls {
    calls: HashSet<IdKey>,
    /// Agents by call.
    agents: HashMap<IdKey, String>,
}

impl StartedCalls {
    /// Records a tool-start entry.
    pub(crate) fn record(&mut self, line: &TranscriptEntry<'_>) {
        let Some(call) = line.tool_use_id().map(|id| IdKey::new(&id)) else { return };
        self.calls.insert(call);
        if let Some(agent) = line.agent_id().filter(|id| !id.is_empty()) {
            self.agents.insert(call, agent.into_owned());
        }
    }

    pub(crate) fn contains(&self, call: &str) -> bool {
        self.calls.contains(&IdKey::new(call))
    }

    /// The agent that runs a call.
    pub(crate) fn agent_for(&self, call: &str) -> Option<&str> {
        self.agents.get(&IdKey::new(call)).map(String::as_str)
    }
}

/// ToolSearch calls of the messages so far. The entry of a result records the tools that it loaded.
#[derive(Debug, Default)]
pub(crate) struct ToolSearchCalls(HashSet<String>);

impl ToolSearchCalls {
    /// Records the ToolSearch calls of a message.
    pub(crate) fn record(&mut self, blocks: &[Block]) {
        self.0.extend(blocks.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, .. } if name == TOOL_SEARCH => Some(id.clone()),
            _ => None,
        }));
    }

    /// Returns whether a message contains the result of a recorded call.
    pub(crate) fn has_result_in(&self, blocks: &[Block]) -> bool {
        let is_result = |block: &Block| matches!(block, Block::ToolResult { tool_use_id, .. } if self.0.contains(tool_use_id));
        blocks.iter().any(is_result)
    }
}
