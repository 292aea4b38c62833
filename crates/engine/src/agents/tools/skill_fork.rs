//! Skills with `context: fork`: a subagent runs them, and the conversation gets only its report.

use std::sync::Arc;

use serde_json::json;
use whimbrel_tools::api::{ToolContext, ToolOutput, ToolResult};

use super::agent::{background_result, report_error};
use crate::agents::definition::GENERAL_PURPOSE;
use crate::agents::{AgentSpawner, SpawnOutcome, SpawnRequest};
use crate::skills::InvokedSkill;

/// Subagent task of a skill.
pub(crate) fn spawn_request(skill: InvokedSkill) -> SpawnRequest {
    let (name, head) = (&skill.file.name, &skill.parsed.front_matter);
    let agent_type = head.agent.as_deref().map(str::trim).filter(|agent_type| !agent_type.is_empty());
    SpawnRequest {
        agent_type: agent_type.unwrap_or(GENERAL_PURPOSE).into(),
        description: name.clone(),
        prompt: format!("/{name} {}", skill.arguments).trim_end().into(),
        model: head.model().map(Into::into),
        effort: head.effort(),
        background: Some(false),
        skill: Some(Arc::new(skill)),
        ..SpawnRequest::default()
    }
}

/// Runs a skill in a subagent for a call of the model.
pub(super) async fn run(agents: &AgentSpawner, skill: InvokedSkill, call: &ToolContext) -> ToolResult {
    let name = skill.file.name.clone();
    let request = spawn_request(skill);
    let report = match agents.spawn(request.clone(), call).await? {
        SpawnOutcome::Finished(report) => report,
        SpawnOutcome::Background(spawned) => return Ok(background_result(&spawned, &request)),
    };
    if let Some(error) = report_error(&report) {
        return Err(error);
    }
    let text = report.text();
    let meta = json!({
        "success": true,
        "commandName": name,
        "status": "forked",
        "agentId": report.agent_id,
        "result": text,
    });
    Ok(ToolOutput::text(format!("A subagent has run the skill {name}. Its report:\n\n{text}"), meta))
}
