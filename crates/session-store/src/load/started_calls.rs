//! Tool calls that had started, and the agents that run them.

use std::collections::{HashMap, HashSet};

use crate::entry::{IdKey, TranscriptEntry};

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
