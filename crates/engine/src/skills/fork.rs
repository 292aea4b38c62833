//! A skill that a subagent does, apart from the conversation (`context: fork`): what it says is the subagent's errand, and
//! the conversation sees the report only.

use std::sync::Arc;

use serde_json::json;

use super::desk::Loaded;
use crate::agents::definition::GENERAL;
use crate::agents::{Agents, Errand, Sent};
use crate::tools::{Call, Done, Output, came_to_nothing, works_beside};

/// The errand that a skill is.
pub(crate) fn errand(loaded: Loaded) -> Errand {
    let (name, head) = (&loaded.file.name, &loaded.recipe.head);
    let kind = head.agent.as_deref().map(str::trim).filter(|kind| !kind.is_empty());
    Errand {
        kind: kind.unwrap_or(GENERAL).into(),
        description: name.clone(),
        prompt: format!("/{name} {}", loaded.arguments).trim_end().into(),
        model: head.model().map(Into::into),
        effort: head.effort(),
        background: Some(false),
        skill: Some(Arc::new(loaded)),
        ..Errand::default()
    }
}

/// Has a subagent do what a skill says, for a call of the model.
pub(super) async fn run(agents: &Agents, loaded: Loaded, call: &Call) -> Output {
    let name = loaded.file.name.clone();
    let errand = errand(loaded);
    let report = match agents.send(errand.clone(), call).await? {
        Sent::Back(report) => report,
        Sent::Away(launched) => return Ok(works_beside(&launched, &errand)),
    };
    if let Some(trouble) = came_to_nothing(&report) {
        return Err(trouble);
    }
    let said = report.text();
    let meta = json!({
        "success": true,
        "commandName": name,
        "status": "forked",
        "agentId": report.agent_id,
        "result": said,
    });
    Ok(Done::text(format!("A subagent has done the skill {name}. Its report:\n\n{said}"), meta))
}
