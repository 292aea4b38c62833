//! TeamCreate: creates a team of long-lived agents.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct TeamCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    team_name: String,
    #[serde(default)]
    description: String,
}

impl Tool for TeamCreateTool {
    type Input = Input;

    const NAME: &'static str = super::TEAM_CREATE;

    const DESCRIPTION: &'static str = "Founds a team with you as its lead. Agent calls with a `name` then start teammates: they live on between errands, and mail (SendMessage) wakes them and you. One that is started with `mode: \"plan\"` asks you to approve its plan (plan_approval_response) before it changes anything.";

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let agents =
            call.agents.ok_or_else(|| ToolError::Rejected("This agent cannot found a team.".into()))?;
        let meta = agents.team().create(&input.team_name, &input.description).map_err(ToolError::Rejected)?;
        let team = agents.team().name().unwrap_or_default();
        let list = match call.task_list.switch_to_team(&team) {
            true => " From now on the task list is the team's own, which is empty.",
            false => "",
        };
        Ok(ToolOutput::text(format!("The team {team} is founded. You are team-lead.{list}"), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("who leads no session founds no team", json!({"team_name": "crew"}))
                .expect_error(&["cannot"]),
        ]
    }
}
