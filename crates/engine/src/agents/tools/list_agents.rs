//! ListAgents: lists the other agents and their state.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_tools::api::{
    Effects, Example, Tool, ToolContext, ToolError, ToolLoading, ToolOutput, ToolResult,
};

use crate::agents::AgentSpawner;
use crate::agents::registry::ReachableAgent;
use crate::agents::team::message::count_text;
use crate::agents::team::{LEAD, MemberStatus};

pub(super) struct ListAgentsTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ListAgentsInput {}

impl Tool for ListAgentsTool {
    type Input = ListAgentsInput;

    const NAME: &'static str = "ListAgents";

    const ALIASES: &'static [&'static str] = &["ListPeers"];

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Lists the agents you can message: teammates, running subagents, and finished \
        ones that can be continued.";

    fn effects(_: &ListAgentsInput) -> Effects {
        Effects::None
    }

    async fn run(&self, _: ListAgentsInput, call: ToolContext) -> ToolResult {
        let agents = AgentSpawner::from_context(&call)
            .cloned()
            .ok_or_else(|| ToolError::Rejected("This agent cannot reach other agents.".into()))?;
        let lead = agents.is_teammate().then(Row::for_lead);
        let (teammates, subagents) = (agents.reachable_teammates(), agents.reachable_agents());
        let others = teammates.iter().map(Row::for_teammate).chain(subagents.iter().map(Row::for_agent));
        let rows: Vec<Row> = lead.into_iter().chain(others).collect();
        let lines: Vec<String> = rows.iter().map(Row::render_line).collect();
        let text = if lines.is_empty() { "There are no other agents.".to_owned() } else { lines.join("\n") };
        let listed: Vec<Value> = rows.iter().map(Row::to_json).collect();
        Ok(ToolOutput::text(text, json!({"agents": listed, "team_name": agents.team().name()})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an agent without others is rejected", json!({}))
                .expect_error(&["cannot reach other agents"]),
        ]
    }
}

/// One listed agent.
struct Row {
    id: String,
    name: Option<String>,
    agent_type: String,
    description: String,
    /// State in the text for the model.
    state: &'static str,
    /// State in the tool result for the host.
    status: &'static str,
}

impl Row {
    fn for_lead() -> Self {
        Self {
            id: LEAD.into(),
            name: None,
            agent_type: "main".into(),
            description: "team lead".into(),
            state: "active",
            status: "there",
        }
    }

    fn for_teammate(member: &MemberStatus) -> Self {
        let state = if member.is_active { "working" } else { "idle" };
        Self {
            id: member.spec.task_id.clone(),
            name: Some(member.spec.name.clone()),
            agent_type: member.spec.agent_type.clone(),
            description: match member.unread {
                0 => "teammate".into(),
                unread => format!("teammate, {} unread", count_text(unread)),
            },
            state,
            status: state,
        }
    }

    fn for_agent(agent: &ReachableAgent) -> Self {
        let state = if agent.is_running { "working" } else { "ended" };
        Self {
            id: agent.id.clone(),
            name: agent.name.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            state,
            status: state,
        }
    }

    fn render_line(&self) -> String {
        let name_prefix = self.name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        format!("- {name_prefix}{} ({}): {}, {}", self.id, self.agent_type, self.state, self.description)
    }

    fn to_json(&self) -> Value {
        json!({
            "agentId": self.id, "name": self.name, "agentType": self.agent_type, "description": self.description,
            "status": self.status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_is_active_for_the_model_and_there_for_the_host() {
        let lead = Row::for_lead();
        assert_eq!(lead.render_line(), format!("- {LEAD} (main): active, team lead"));
        assert_eq!(lead.to_json()["status"], "there");
    }
}
