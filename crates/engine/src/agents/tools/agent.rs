//! Agent: runs a subagent and waits for its report, unless it runs in the background. In a session that may have a
//! team, the schema of the tool also has the fields for teammates.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use whimbrel_tools::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::PermissionMode;

use crate::agents::definition::GENERAL_PURPOSE;
use crate::agents::team::teammate::JoinedTeammate;
use crate::agents::{AgentDefinitions, AgentReport, AgentSpawner, SpawnOutcome, SpawnRequest, SpawnedAgent};
use crate::next_step::TurnEnd;
use crate::runtime_settings::parse_effort;

/// Built-in agent types in the tool's description.
const BUILT_IN_TYPES: [(&str, &str); 3] =
    [(GENERAL_PURPOSE, " (default)"), ("Explore", " (read-only)"), ("Plan", "")];

pub(super) struct AgentTool;

/// The description of the tool if some built-in types are not available; `None` if it is unchanged.
pub(crate) fn describe_tool(definitions: &AgentDefinitions) -> Option<String> {
    let available: Vec<_> =
        BUILT_IN_TYPES.iter().filter(|(name, _)| definitions.get(name).is_some()).collect();
    let base =
        AgentTool::DESCRIPTION.split(" Types: ").next().filter(|_| available.len() < BUILT_IN_TYPES.len())?;
    let types: Vec<String> = available.iter().map(|(name, note)| format!("{name}{note}")).collect();
    match types.is_empty() {
        true => Some(base.to_owned()),
        false => Some(format!("{base} Types: {}.", types.join(", "))),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AgentInput {
    /// The task in 3-5 words
    description: String,
    /// The complete task; the subagent sees nothing else
    prompt: String,
    subagent_type: Option<String>,
    /// Overrides the agent's model
    model: Option<String>,
    #[serde(default, deserialize_with = "lenient::maybe_flag")]
    run_in_background: Option<bool>,
    #[schemars(extend("enum" = ["worktree"]))]
    isolation: Option<String>,
    #[schemars(skip)]
    name: Option<String>,
    #[schemars(skip)]
    resume: Option<String>,
    #[schemars(skip)]
    effort: Option<String>,
    #[schemars(skip)]
    max_turns: Option<u32>,
    #[schemars(skip)]
    team_name: Option<String>,
    #[schemars(skip)]
    mode: Option<PermissionMode>,
}

impl Tool for AgentTool {
    type Input = AgentInput;

    const NAME: &'static str = whimbrel_wire::tool_names::AGENT;
    const ALIASES: &'static [&'static str] = &["Task"];
    const DESCRIPTION: &'static str = "Starts a subagent with a fresh context and returns its report. Use it for \
        broad searches and for work whose details you do not need. Calls in the same reply run in parallel. Types: \
        general-purpose (default), Explore (read-only), Plan.";

    fn effects(_: &AgentInput) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: AgentInput, call: ToolContext) -> ToolResult {
        let Some(agents) = AgentSpawner::from_context(&call).cloned() else {
            return Err(ToolError::Rejected(
                "This agent cannot start subagents. Do the work yourself.".into(),
            ));
        };
        let request = SpawnRequest {
            agent_type: input.subagent_type.unwrap_or_else(|| GENERAL_PURPOSE.into()),
            description: input.description,
            prompt: input.prompt,
            model: input.model,
            effort: input.effort.as_deref().and_then(parse_effort),
            max_turns: input.max_turns.filter(|limit| *limit > 0),
            name: input.name,
            background: input.run_in_background,
            isolation: input.isolation,
            mode: input.mode,
            skill: None,
        };
        // A resumed agent keeps its role: no new teammate.
        if input.resume.is_none()
            && let Some(name) =
                request.name.as_deref().or(input.team_name.as_deref().map(|_| request.agent_type.as_str()))
            && agents.resolve_team(input.team_name.as_deref())?.is_some()
        {
            return agents
                .start_teammate(&request, name, &call)
                .await
                .map(|joined| teammate_result(&joined, &request));
        }
        let outcome = match &input.resume {
            Some(agent_id) => agents.resume(agent_id, &request, &call).await?,
            None => agents.spawn(request.clone(), &call).await?,
        };
        match outcome {
            SpawnOutcome::Finished(report) => report_result(&report, &request),
            SpawnOutcome::Background(spawned) => Ok(background_result(&spawned, &request)),
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "unknown agent types are rejected",
                json!({"description": "x", "prompt": "y", "subagent_type": "z"}),
            )
            .expect_error(&["subagent"]),
            Example::new(
                "worktree isolation needs a subagent",
                json!({"description": "x", "prompt": "y", "isolation": "worktree"}),
            )
            .expect_error(&["subagent"]),
        ]
    }
}

/// The error of a call whose subagent did not complete.
pub(crate) fn report_error(report: &AgentReport) -> Option<ToolError> {
    match report.outcome.end {
        TurnEnd::Done => None,
        TurnEnd::AbortedTools if !report.stopped => {
            let text = "The user denied a tool call of the subagent and stopped it.";
            Some(ToolError::StopTurn(text.into()))
        }
        TurnEnd::BudgetExceeded => Some(ToolError::StopTurn(report.text())),
        TurnEnd::AbortedStreaming
        | TurnEnd::AbortedTools
        | TurnEnd::MaxTurns
        | TurnEnd::ApiError
        | TurnEnd::Refused
        | TurnEnd::OutputLimit
        | TurnEnd::NoStructuredOutput
        | TurnEnd::ContextTooLong
        | TurnEnd::HookStopped
        | TurnEnd::Stalled
        | TurnEnd::Conflict
        | TurnEnd::HookDeferred => Some(ToolError::Failed(report.text())),
    }
}

/// Result of a finished subagent.
fn report_result(report: &AgentReport, request: &SpawnRequest) -> ToolResult {
    if let Some(error) = report_error(report) {
        return Err(error);
    }
    let text = report.text();
    let mut meta = json!({
        "status": "completed",
        "prompt": request.prompt,
        "agentId": report.agent_id,
        "agentType": request.agent_type,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": report.model,
        "totalDurationMs": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": report.usage.total(),
        "totalToolUseCount": report.task_usage.tool_uses,
        "usage": report.usage,
        "costUsd": report.cost_usd,
    });
    if let Some(worktree) = &report.kept_worktree {
        meta["worktreePath"] = worktree.path.display().to_string().into();
        meta["worktreeBranch"] = worktree.branch.clone().into();
    }
    let id_note = format!("agentId: {} (pass it as `resume` to continue this agent)", report.agent_id);
    Ok(ToolOutput { content: ResultContent::Blocks(vec![Block::text(text), Block::text(id_note)]), meta })
}

/// Part of the result of a call that leaves an agent in the background.
pub(super) const NOTIFIED_WHEN_DONE: &str = "You are notified when it is done";

/// Result of a call that started a background agent.
pub(crate) fn background_result(spawned: &SpawnedAgent, request: &SpawnRequest) -> ToolOutput {
    let SpawnedAgent { agent_id, output_file } = spawned;
    let text = format!(
        "The agent works in the background. agentId: {agent_id}. {NOTIFIED_WHEN_DONE}; do not wait for it or duplicate its work. Its report goes \
         to {}.",
        output_file.display()
    );
    let meta = json!({
        "status": "async_launched",
        "isAsync": true,
        "agentId": agent_id,
        "description": request.description,
        "prompt": request.prompt,
        "outputFile": output_file,
        "canReadOutputFile": true,
    });
    ToolOutput { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

/// Result of a call that started a teammate.
fn teammate_result(joined: &JoinedTeammate, request: &SpawnRequest) -> ToolOutput {
    let JoinedTeammate { spec, team, requires_plan } = joined;
    let id = format!("{}@{team}", spec.name);
    let text = format!(
        "{} has joined the team {team} and is working (task {}). Reach it with SendMessage; you are notified when it \
         sends a message or becomes idle.",
        spec.name, spec.task_id
    );
    let meta = json!({
        "status": "teammate_spawned",
        "prompt": request.prompt,
        "teammate_id": id,
        "agent_id": id,
        "agent_type": spec.agent_type,
        "model": spec.model,
        "name": spec.name,
        "team_name": team,
        "task_id": spec.task_id,
        "plan_mode_required": requires_plan,
        "is_splitpane": false,
    });
    ToolOutput { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

/// The tool in a session that may have a team.
pub(super) struct TeamAgentTool;

/// The same input with a larger schema.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct TeamInput(AgentInput);

/// Additional schema fields for starting a teammate.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used; the fields are in `AgentInput`")]
struct TeamFields {
    /// Starts a teammate in your team (see TeamCreate); SendMessage reaches it by this name
    name: Option<String>,
    team_name: Option<String>,
    /// "plan": it changes nothing until you approve its plan
    mode: Option<String>,
    /// The agentId of a finished agent to continue with its full context
    resume: Option<String>,
}

impl JsonSchema for TeamInput {
    fn schema_name() -> Cow<'static, str> {
        "AgentInTeam".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = AgentInput::json_schema(generator);
        let extra = TeamFields::json_schema(generator).to_value();
        let properties = schema.get_mut("properties").and_then(|fields| fields.as_object_mut());
        if let (Some(properties), Some(extra)) = (properties, extra["properties"].as_object()) {
            properties.extend(extra.clone());
        }
        schema
    }
}

impl Tool for TeamAgentTool {
    type Input = TeamInput;

    const NAME: &'static str = AgentTool::NAME;
    const ALIASES: &'static [&'static str] = AgentTool::ALIASES;
    const DESCRIPTION: &'static str = AgentTool::DESCRIPTION;

    fn effects(input: &TeamInput) -> Effects {
        AgentTool::effects(&input.0)
    }

    async fn run(&self, input: TeamInput, call: ToolContext) -> ToolResult {
        Tool::run(&AgentTool, input.0, call).await
    }

    fn examples() -> Vec<Example> {
        AgentTool::examples()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use whimbrel_tools::api::AnyTool;

    use super::*;

    #[test]
    fn unavailable_types_are_not_described() {
        let all = AgentDefinitions::built_in();
        assert_eq!(describe_tool(&all), None);
        assert!(
            AgentTool::DESCRIPTION.ends_with(" Types: general-purpose (default), Explore (read-only), Plan.")
        );
        let rows: [(&[&str], &str); 3] = [
            (&["Explore"], " run in parallel. Types: general-purpose (default), Plan."),
            (&["Plan", GENERAL_PURPOSE], " run in parallel. Types: Explore (read-only)."),
            (&["Explore", "Plan", GENERAL_PURPOSE], " run in parallel."),
        ];
        for (denied, end) in rows {
            let text = describe_tool(&all.excluding(denied)).unwrap();
            assert!(text.ends_with(end), "{denied:?}: {text}");
        }
    }

    fn schema_of(tool: &dyn AnyTool) -> Value {
        serde_json::from_str(tool.spec().input_schema.as_str()).unwrap()
    }

    #[test]
    fn the_schema_adds_only_the_teammate_fields() {
        let (base, in_team) = (schema_of(&AgentTool), schema_of(&TeamAgentTool));
        let extra = ["name", "team_name", "mode", "resume"];
        for field in extra {
            assert_eq!(in_team["properties"][field]["type"], "string", "{in_team}");
            assert!(base["properties"].get(field).is_none(), "{field}");
        }
        let mut rest = in_team.clone();
        let fields = rest["properties"].as_object_mut().unwrap();
        fields.retain(|field, _| !extra.contains(&field.as_str()));
        assert_eq!(rest, base);
    }
}
