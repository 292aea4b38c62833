//! Which calls had begun, and which agents made them.

use std::collections::{HashMap, HashSet};

use super::line::{Key, Line};

/// Calls that had begun.
#[derive(Debug, Clone, Default)]
pub(super) struct Starts {
    calls: HashSet<Key>,
    /// The agents that were sent.
    agents: HashMap<Key, String>,
}

impl Starts {
    /// Takes in a line that says that a call has begun.
    pub(super) fn note(&mut self, line: &Line<'_>) {
        let Some(call) = line.tool_use_id().map(|id| Key::of(&id)) else { return };
        self.calls.insert(call);
        if let Some(agent) = line.agent_id().filter(|id| !id.is_empty()) {
            self.agents.insert(call, agent.into_owned());
        }
    }

    /// Whether a call had begun.
    pub(super) fn has(&self, call: &str) -> bool {
        self.calls.contains(&Key::of(call))
    }

    /// The agent that made a call.
    pub(super) fn agent(&self, call: &str) -> Option<&str> {
        self.agents.get(&Key::of(call)).map(String::as_str)
    }
}
