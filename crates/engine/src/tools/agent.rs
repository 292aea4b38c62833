//! Agent: runs a subagent and waits for its report, unless it runs in the background.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::PermissionMode;

use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::agents::definition::GENERAL_PURPOSE;
use crate::agents::team::teammate::JoinedTeammate;
use crate::agents::{AgentDefinitions, AgentReport, LaunchOutcome, LaunchedAgent, SubagentTask};
use crate::next_step::TurnEnd;
use crate::setup::model::parse_effort;

/// Built-in agent types in the tool's description.
const BUILT_IN_TYPES: [(&str, &str); 3] =
    [(GENERAL_PURPOSE, " (default)"), ("Explore", " (only looks)"), ("Plan", "")];

pub(super) struct AgentTool;

/// The description of the tool if some built-in types are not available; `None` if it is unchanged.
pub(crate) fn describe_tool(kinds: &AgentDefinitions) -> Option<String> {
    let there: Vec<_> = BUILT_IN_TYPES.iter().filter(|(name, _)| kinds.get(name).is_some()).collect();
    let does =
        AgentTool::DESCRIPTION.split(" Types: ").next().filter(|_| there.len() < BUILT_IN_TYPES.len())?;
    let types: Vec<String> = there.iter().map(|(name, note)| format!("{name}{note}")).collect();
    match types.is_empty() {
        true => Some(does.to_owned()),
        false => Some(format!("{does} Types: {}.", types.join(", "))),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The errand in 3-5 words
    description: String,
    /// The whole errand; the subagent knows nothing else
    prompt: String,
    subagent_type: Option<String>,
    /// A model other than its own
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
    type Input = Input;

    const NAME: &'static str = super::AGENT;
    const ALIASES: &'static [&'static str] = &["Task"];
    const DESCRIPTION: &'static str = "Hands an errand to a subagent with a fresh context and returns its report. Good for broad searches and side work whose details you do not need. Several calls in one reply run side by side. Types: general-purpose (default), Explore (only looks), Plan.";

    fn effects(_: &Input) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let Some(agents) = call.agents.clone() else {
            return Err(ToolError::Rejected("This agent may not start a subagent. Do it yourself.".into()));
        };
        let errand = SubagentTask {
            agent_type: input.subagent_type.unwrap_or_else(|| GENERAL_PURPOSE.into()),
            description: input.description,
            prompt: input.prompt,
            model: input.model,
            effort: input.effort.as_deref().and_then(parse_effort),
            max_turns: input.max_turns.filter(|most| *most > 0),
            name: input.name,
            background: input.run_in_background,
            isolation: input.isolation,
            mode: input.mode,
            skill: None,
        };
        // A resumed agent keeps its role: no new teammate.
        if input.resume.is_none()
            && let Some(name) =
                errand.name.as_deref().or(input.team_name.as_deref().map(|_| errand.agent_type.as_str()))
            && agents.resolve_team(input.team_name.as_deref())?.is_some()
        {
            return agents
                .start_teammate(&errand, name, &call)
                .await
                .map(|joined| teammate_result(&joined, &errand));
        }
        let sent = match &input.resume {
            Some(agent_id) => agents.resume(agent_id, &errand, &call).await?,
            None => agents.spawn(errand.clone(), &call).await?,
        };
        match sent {
            LaunchOutcome::Finished(report) => report_result(&report, &errand),
            LaunchOutcome::Background(launched) => Ok(background_result(&launched, &errand)),
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "an unknown kind is refused",
                json!({"description": "x", "prompt": "y", "subagent_type": "z"}),
            )
            .expect_error(&["subagent"]),
            Example::new(
                "what would be kept apart is not done elsewhere",
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
            let text = "The user refused a call of the subagent and stopped the work.";
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
        | TurnEnd::Deferred => Some(ToolError::Failed(report.text())),
    }
}

/// Result of a finished subagent.
fn report_result(report: &AgentReport, errand: &SubagentTask) -> ToolResult {
    if let Some(trouble) = report_error(report) {
        return Err(trouble);
    }
    let text = report.text();
    let mut meta = json!({
        "status": "completed",
        "prompt": errand.prompt,
        "agentId": report.agent_id,
        "agentType": errand.agent_type,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": report.model,
        "totalDurationMs": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": report.usage.total(),
        "totalToolUseCount": report.task_usage.tool_uses,
        "usage": report.usage,
        "costUsd": report.cost_usd,
    });
    if let Some(tree) = &report.kept_worktree {
        meta["worktreePath"] = tree.path.display().to_string().into();
        meta["worktreeBranch"] = tree.branch.clone().into();
    }
    let whom = format!("agentId: {} (to go on with it, pass it as `resume`)", report.agent_id);
    Ok(ToolOutput { content: ResultContent::Blocks(vec![Block::text(text), Block::text(whom)]), meta })
}

/// Start of the result of a background agent; the id follows. Parsed on resume to find lost agents.
pub(crate) const LAUNCHED_PREFIX: &str = "The agent works in the background. agentId: ";

/// Part of the result of a background agent. Parsed on resume to find lost agents.
pub(crate) const NOTIFIED_WHEN_DONE: &str = "You will be told when it is done";

/// Result of a call that started a background agent.
pub(crate) fn background_result(launched: &LaunchedAgent, errand: &SubagentTask) -> ToolOutput {
    let LaunchedAgent { agent_id, output_file } = launched;
    let text = format!(
        "{LAUNCHED_PREFIX}{agent_id}. {NOTIFIED_WHEN_DONE}; do not wait for it or do its work. Its report will be in {}.",
        output_file.display()
    );
    let meta = json!({
        "status": "async_launched",
        "isAsync": true,
        "agentId": agent_id,
        "description": errand.description,
        "prompt": errand.prompt,
        "outputFile": output_file,
        "canReadOutputFile": true,
    });
    ToolOutput { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

/// Result of a call that started a teammate.
fn teammate_result(joined: &JoinedTeammate, errand: &SubagentTask) -> ToolOutput {
    let JoinedTeammate { facts, team, requires_plan: plans_first } = joined;
    let id = format!("{}@{team}", facts.name);
    let text = format!(
        "{} has joined the team {team} and is at work, as task {}. Write to it with SendMessage; you are told when it writes or rests.",
        facts.name, facts.task_id
    );
    let meta = json!({
        "status": "teammate_spawned",
        "prompt": errand.prompt,
        "teammate_id": id,
        "agent_id": id,
        "agent_type": facts.agent_type,
        "model": facts.model,
        "name": facts.name,
        "team_name": team,
        "task_id": facts.task_id,
        "plan_mode_required": plans_first,
        "is_splitpane": false,
    });
    ToolOutput { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_types_are_not_described() {
        let all = AgentDefinitions::built_in();
        assert_eq!(describe_tool(&all), None);
        assert!(
            AgentTool::DESCRIPTION
                .ends_with(" Types: general-purpose (default), Explore (only looks), Plan.")
        );
        let rows: [(&[&str], &str); 3] = [
            (&["Explore"], " run side by side. Types: general-purpose (default), Plan."),
            (&["Plan", GENERAL_PURPOSE], " run side by side. Types: Explore (only looks)."),
            (&["Explore", "Plan", GENERAL_PURPOSE], " run side by side."),
        ];
        for (denied, end) in rows {
            let text = describe_tool(&all.excluding(denied)).unwrap();
            assert!(text.ends_with(end), "{denied:?}: {text}");
        }
    }
}
