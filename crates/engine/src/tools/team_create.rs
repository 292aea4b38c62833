//! TeamCreate: founds a team of agents that live on between their errands.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};

/// The tool.
pub(super) struct TeamCreate;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    team_name: String,
    #[serde(default)]
    description: String,
}

impl Tool for TeamCreate {
    type Input = Input;

    const NAME: &'static str = super::TEAM_CREATE;

    const DESCRIPTION: &'static str = "Founds a team with you as its lead. Agent calls with a `name` then start teammates: they live on between errands, and mail (SendMessage) wakes them and you. One that is started with `mode: \"plan\"` asks you to approve its plan (plan_approval_response) before it changes anything.";

    fn touches(_: &Input) -> Touches {
        Touches::Session
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let agents = call.agents.ok_or_else(|| Trouble::Refused("This agent cannot found a team.".into()))?;
        let meta = agents.teams().create(&input.team_name, &input.description).map_err(Trouble::Refused)?;
        let team = agents.teams().name().unwrap_or_default();
        let list = match call.agenda.go_to_team(&team) {
            true => " From now on the task list is the team's own, which is empty.",
            false => "",
        };
        Ok(Done::text(format!("The team {team} is founded. You are team-lead.{list}"), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("who leads no session founds no team", json!({"team_name": "crew"}))
                .fails(&["cannot"]),
        ]
    }
}
