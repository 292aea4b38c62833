//! What a subagent's transcript does not say about it, in a small file beside it: its kind, and who sent it for what.

use serde_json::json;

use super::home::Home;
use crate::files;
use crate::tasks::TaskFacts;

/// Writes the file, if transcripts are kept. Readers go on without it, so it is no matter if it cannot be written.
pub(super) fn write(home: &Home, facts: &TaskFacts, depth: usize, parent: Option<&str>) {
    let Some(place) = &home.place else { return };
    let folder = place.subagents(&home.identity.session);
    let about = json!({
        "agentType": facts.agent_type,
        "description": facts.description,
        "toolUseId": facts.tool_use_id,
        "spawnDepth": depth,
        "parentAgentId": parent,
    });
    let path = folder.join(format!("agent-{}.meta.json", facts.task_id));
    let _ = files::create_with_mode(&path, about.to_string().as_bytes(), 0o600);
}
