//! TeamDelete: deletes the team, once no teammate is working.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct TeamDeleteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for TeamDeleteTool {
    type Input = Input;

    const NAME: &'static str = super::TEAM_DELETE;

    const DESCRIPTION: &'static str = "Dissolves your team and removes its files. Nobody may be at work.";

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, _: Input, call: ToolContext) -> ToolResult {
        let agents = call.agents.ok_or_else(|| ToolError::Rejected("This agent has no team.".into()))?;
        let deleted = agents.team().delete();
        if agents.team().name().is_none() {
            call.task_list.switch_to_session();
        }
        let meta = deleted.map_err(ToolError::Rejected)?;
        Ok(ToolOutput::text("The team is dissolved.", meta))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("who has no team cannot dissolve one", json!({})).expect_error(&["no team"])]
    }
}
