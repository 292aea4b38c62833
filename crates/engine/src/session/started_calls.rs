//! Which calls had begun, and which agents made them.

use std::collections::{HashMap, HashSet};

use super::entry::{IdKey, TranscriptEntry};

/// Calls that had begun.
#[derive(Debug, Clone, Default)]
pub(super) struct StartedCalls {
    calls: HashSet<IdKey>,
    /// The agents that were sent.
    agents: HashMap<IdKey, String>,
}

impl StartedCalls {
    /// Takes in a line that says that a call has begun.
    pub(super) fn record(&mut self, line: &TranscriptEntry<'_>) {
        let Some(call) = line.tool_use_id().map(|id| IdKey::new(&id)) else { return };
        self.calls.insert(call);
        if let Some(agent) = line.agent_id().filter(|id| !id.is_empty()) {
            self.agents.insert(call, agent.into_owned());
        }
    }

    /// Whether a call had begun.
    pub(super) fn contains(&self, call: &str) -> bool {
        self.calls.contains(&IdKey::new(call))
    }

    /// The agent that made a call.
    pub(super) fn agent_for(&self, call: &str) -> Option<&str> {
        self.agents.get(&IdKey::new(call)).map(String::as_str)
    }
}
