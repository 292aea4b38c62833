//! TeamDelete: dissolves the team, once nobody of it is at work.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};

/// The tool.
pub(super) struct TeamDelete;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for TeamDelete {
    type Input = Input;

    const NAME: &'static str = super::TEAM_DELETE;

    const DESCRIPTION: &'static str = "Dissolves your team and removes its files. Nobody may be at work.";

    fn touches(_: &Input) -> Touches {
        Touches::Session
    }

    async fn run(&self, _: Input, call: Call) -> Output {
        let agents = call.agents.ok_or_else(|| Trouble::Refused("This agent has no team.".into()))?;
        let deleted = agents.teams().delete();
        if agents.teams().name().is_none() {
            call.agenda.come_home();
        }
        let meta = deleted.map_err(Trouble::Refused)?;
        Ok(Done::text("The team is dissolved.", meta))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("who has no team cannot dissolve one", json!({})).fails(&["no team"])]
    }
}
