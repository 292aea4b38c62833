//! Agent in a session that may have a team: the same tool, with the fields for teammates in its schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::agent::{self, AgentTool};
use super::{Effects, Example, Tool, ToolContext, ToolResult};

pub(super) struct TeamAgentTool;

/// The same input with a larger schema.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Input(agent::Input);

/// Additional schema fields for starting a teammate.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its looks count: `agent::Input` has the fields")]
struct TeamFields {
    /// Makes it a teammate of your team (see TeamCreate); mail reaches it by this name
    name: Option<String>,
    team_name: Option<String>,
    /// "plan": it changes nothing until you have approved the plan that it hands in
    mode: Option<String>,
    /// The agentId of one that has ended: it goes on with all that it knows
    resume: Option<String>,
}

impl JsonSchema for Input {
    fn schema_name() -> Cow<'static, str> {
        "AgentInTeam".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = agent::Input::json_schema(generator);
        let more = TeamFields::json_schema(generator).to_value();
        let own = schema.get_mut("properties").and_then(|fields| fields.as_object_mut());
        if let (Some(own), Some(more)) = (own, more["properties"].as_object()) {
            own.extend(more.clone());
        }
        schema
    }
}

impl Tool for TeamAgentTool {
    type Input = Input;

    const NAME: &'static str = AgentTool::NAME;
    const ALIASES: &'static [&'static str] = AgentTool::ALIASES;
    const DESCRIPTION: &'static str = AgentTool::DESCRIPTION;

    fn effects(input: &Input) -> Effects {
        AgentTool::effects(&input.0)
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        Tool::run(&AgentTool, input.0, call).await
    }

    fn examples() -> Vec<Example> {
        AgentTool::examples()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::AnyTool;
    use super::*;

    fn schema_of(tool: &dyn AnyTool) -> Value {
        serde_json::from_str(tool.spec().input_schema.as_str()).unwrap()
    }

    #[test]
    fn the_schema_adds_only_the_teammate_fields() {
        let (alone, in_team) = (schema_of(&AgentTool), schema_of(&TeamAgentTool));
        let more = ["name", "team_name", "mode", "resume"];
        for field in more {
            assert_eq!(in_team["properties"][field]["type"], "string", "{in_team}");
            assert!(alone["properties"].get(field).is_none(), "{field}");
        }
        let mut rest = in_team.clone();
        let fields = rest["properties"].as_object_mut().unwrap();
        fields.retain(|field, _| !more.contains(&field.as_str()));
        assert_eq!(rest, alone);
    }
}
