//! TeamCreate and TeamDelete: a team of long-lived agents.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_tools::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

use crate::agents::AgentSpawner;

pub(super) struct TeamCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TeamCreateInput {
    team_name: String,
    #[serde(default)]
    description: String,
}

impl Tool for TeamCreateTool {
    type Input = TeamCreateInput;

    const NAME: &'static str = whimbrel_wire::tool_names::TEAM_CREATE;

    const DESCRIPTION: &'static str = "Creates a team with you as its lead. Agent calls with a `name` then start \
        teammates. They stay between tasks, and messages (SendMessage) wake them and you. A teammate started with \
        `mode: \"plan\"` asks you to approve its plan (plan_approval_response) before it changes anything.";

    fn effects(_: &TeamCreateInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: TeamCreateInput, call: ToolContext) -> ToolResult {
        let agents = AgentSpawner::from_context(&call)
            .cloned()
            .ok_or_else(|| ToolError::Rejected("This agent cannot create a team.".into()))?;
        let meta = agents.team().create(&input.team_name, &input.description).map_err(ToolError::Rejected)?;
        let team = agents.team().name().unwrap_or_default();
        let list = match call.task_list.switch_to_team(&team) {
            true => " The session now uses the team's task list, which is empty.",
            false => "",
        };
        Ok(ToolOutput::text(format!("Created the team {team}. You are team-lead.{list}"), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an agent without a session is rejected", json!({"team_name": "crew"}))
                .expect_error(&["cannot"]),
        ]
    }
}

pub(super) struct TeamDeleteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TeamDeleteInput {}

impl Tool for TeamDeleteTool {
    type Input = TeamDeleteInput;

    const NAME: &'static str = whimbrel_wire::tool_names::TEAM_DELETE;

    const DESCRIPTION: &'static str = "Deletes your team and its files. No teammate may be working.";

    fn effects(_: &TeamDeleteInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, _: TeamDeleteInput, call: ToolContext) -> ToolResult {
        let agents = AgentSpawner::from_context(&call)
            .cloned()
            .ok_or_else(|| ToolError::Rejected("This agent has no team.".into()))?;
        let deleted = agents.team().delete();
        if agents.team().name().is_none() {
            call.task_list.switch_to_session();
        }
        let meta = deleted.map_err(ToolError::Rejected)?;
        Ok(ToolOutput::text("The team is deleted.", meta))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("an agent without a team is rejected", json!({})).expect_error(&["no team"])]
    }
}
