//! What agents below the agent do: their messages become events inside `SubagentEvent`.

use std::collections::HashMap;

use serde_json::json;
use whimbrel::wire::content::Block;
use whimbrel::wire::message::Assistant;

use super::{CallRecord, Event, content_part};
use crate::versions::{SUBAGENT_IDS, WireVersion};

/// The agents of a turn, by the call that started them.
#[derive(Default)]
pub(super) struct Subagents(HashMap<String, Subagent>);

#[derive(Default)]
struct Subagent {
    id: Option<String>,
    kind: Option<String>,
    /// Id of its last reply: a new one is a new step.
    message: String,
    step: u32,
    calls: HashMap<String, CallRecord>,
}

impl Subagents {
    /// A message of an agent. Its blocks come one by one, each complete.
    pub(super) fn translate_assistant(
        &mut self,
        parent: &str,
        message: &Assistant,
        version: WireVersion,
    ) -> Vec<Event> {
        let agent = self.0.entry(parent.to_owned()).or_default();
        agent.id = agent.id.take().or_else(|| message.agent_id.clone());
        agent.kind = agent.kind.take().or_else(|| message.subagent_type.clone());
        let mut events = Vec::new();
        if agent.message != message.message.id {
            agent.message.clone_from(&message.message.id);
            agent.step += 1;
            events.push(Event::new("StepBegin", json!({"n": agent.step})));
        }
        for block in &message.message.content {
            if let Block::ToolUse { id, name, input } = block {
                agent.calls.insert(id.clone(), CallRecord { tool: name.clone(), input: input.clone() });
                events.push(Event::whole_call(id, name, input));
            } else {
                events.extend(content_part(block));
            }
        }
        events.iter().map(|event| self.wrap(parent, event, version)).collect()
    }

    pub(super) fn take_call(&mut self, parent: &str, call: &str) -> Option<CallRecord> {
        self.0.get_mut(parent)?.calls.remove(call)
    }

    /// Puts an event inside `SubagentEvent`. The names of its fields have changed, and clients know only theirs.
    pub(super) fn wrap(&self, parent: &str, event: &Event, version: WireVersion) -> Event {
        let inner = json!({"type": event.kind, "payload": event.payload});
        let mut payload = json!({"task_tool_call_id": parent, "event": inner});
        if version >= SUBAGENT_IDS {
            let agent = self.0.get(parent);
            payload["parent_tool_call_id"] = parent.into();
            payload["agent_id"] = agent.and_then(|agent| agent.id.clone()).into();
            payload["subagent_type"] = agent.and_then(|agent| agent.kind.clone()).into();
        }
        Event::new("SubagentEvent", payload)
    }
}
