//! Agent: sends a subagent on an errand, and waits for its report unless the turn is to go on beside it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::PermissionMode;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::agents::definition::GENERAL;
use crate::agents::team::mate::Joined;
use crate::agents::{Errand, Kinds, Launched, Report, Sent};
use crate::setup::model::effort_named;
use crate::verdict::End;

/// The kinds that every session has, as the model reads of them.
const TYPES: [(&str, &str); 3] = [(GENERAL, " (default)"), ("Explore", " (only looks)"), ("Plan", "")];

/// The tool.
pub(super) struct Agent;

/// What the model reads about the tool where only these kinds may be started; none if that is the usual text.
pub(crate) fn description(kinds: &Kinds) -> Option<String> {
    let there: Vec<_> = TYPES.iter().filter(|(name, _)| kinds.named(name).is_some()).collect();
    let does = Agent::DESCRIPTION.split(" Types: ").next().filter(|_| there.len() < TYPES.len())?;
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

impl Tool for Agent {
    type Input = Input;

    const NAME: &'static str = super::AGENT;
    const ALIASES: &'static [&'static str] = &["Task"];
    const DESCRIPTION: &'static str = "Hands an errand to a subagent with a fresh context and returns its report. Good for broad searches and side work whose details you do not need. Several calls in one reply run side by side. Types: general-purpose (default), Explore (only looks), Plan.";

    fn touches(_: &Input) -> Touches {
        Touches::Others
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let Some(agents) = call.agents.clone() else {
            return Err(Trouble::Refused("This agent may not start a subagent. Do it yourself.".into()));
        };
        let errand = Errand {
            kind: input.subagent_type.unwrap_or_else(|| GENERAL.into()),
            description: input.description,
            prompt: input.prompt,
            model: input.model,
            effort: input.effort.as_deref().and_then(effort_named),
            max_turns: input.max_turns.filter(|most| *most > 0),
            name: input.name,
            background: input.run_in_background,
            isolation: input.isolation,
            mode: input.mode,
            skill: None,
        };
        // Who goes on is what it was.
        if input.resume.is_none()
            && let Some(name) =
                errand.name.as_deref().or(input.team_name.as_deref().map(|_| errand.kind.as_str()))
            && agents.team_of(input.team_name.as_deref())?.is_some()
        {
            return agents.enlist(&errand, name, &call).await.map(|joined| enlisted(&joined, &errand));
        }
        let sent = match &input.resume {
            Some(agent_id) => agents.resume(agent_id, &errand, &call).await?,
            None => agents.send(errand.clone(), &call).await?,
        };
        match sent {
            Sent::Back(report) => answer(&report, &errand),
            Sent::Away(launched) => Ok(works_beside(&launched, &errand)),
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "an unknown kind is refused",
                json!({"description": "x", "prompt": "y", "subagent_type": "z"}),
            )
            .fails(&["subagent"]),
            Example::new(
                "what would be kept apart is not done elsewhere",
                json!({"description": "x", "prompt": "y", "isolation": "worktree"}),
            )
            .fails(&["subagent"]),
        ]
    }
}

/// What the call of an agent that is back failed for, if it did.
pub(crate) fn came_to_nothing(report: &Report) -> Option<Trouble> {
    match report.ending.end {
        End::Done => None,
        End::AbortedTools if !report.stopped => {
            let text = "The user refused a call of the subagent and stopped the work.";
            Some(Trouble::Stopped(text.into()))
        }
        End::Broke => Some(Trouble::Stopped(report.text())),
        End::AbortedStreaming
        | End::AbortedTools
        | End::MaxTurns
        | End::ApiFailure
        | End::Refused
        | End::OutputLimit
        | End::NoAnswer
        | End::TooLong
        | End::HookStopped
        | End::Stalled
        | End::Deferred => Some(Trouble::Failed(report.text())),
    }
}

/// The result of an agent that is back.
fn answer(report: &Report, errand: &Errand) -> Output {
    if let Some(trouble) = came_to_nothing(report) {
        return Err(trouble);
    }
    let text = report.text();
    let mut meta = json!({
        "status": "completed",
        "prompt": errand.prompt,
        "agentId": report.agent_id,
        "agentType": errand.kind,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": report.model,
        "totalDurationMs": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": report.usage.total(),
        "totalToolUseCount": report.task_usage.tool_uses,
        "usage": report.usage,
        "costUsd": report.dollars,
    });
    if let Some(tree) = &report.kept {
        meta["worktreePath"] = tree.path.display().to_string().into();
        meta["worktreeBranch"] = tree.branch.clone().into();
    }
    let whom = format!("agentId: {} (to go on with it, pass it as `resume`)", report.agent_id);
    Ok(Done { content: ResultContent::Blocks(vec![Block::text(text), Block::text(whom)]), meta })
}

/// How the model is told that an agent works beside the turn; its id follows.
pub(crate) const LAUNCHED: &str = "The agent works in the background. agentId: ";

/// What whoever starts an agent beside the turn can count on.
pub(crate) const WILL_BE_TOLD: &str = "You will be told when it is done";

/// The result of an agent that works beside the turn.
pub(crate) fn works_beside(launched: &Launched, errand: &Errand) -> Done {
    let Launched { agent_id, output_file } = launched;
    let text = format!(
        "{LAUNCHED}{agent_id}. {WILL_BE_TOLD}; do not wait for it or do its work. Its report will be in {}.",
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
    Done { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

/// The result of a call that started a teammate.
fn enlisted(joined: &Joined, errand: &Errand) -> Done {
    let Joined { facts, team, plans_first } = joined;
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
        "agent_type": facts.kind,
        "model": facts.model,
        "name": facts.name,
        "team_name": team,
        "task_id": facts.task_id,
        "plan_mode_required": plans_first,
        "is_splitpane": false,
    });
    Done { content: ResultContent::Blocks(vec![Block::text(text)]), meta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_may_not_be_started_is_not_named() {
        let all = Kinds::built_in();
        assert_eq!(description(&all), None);
        assert!(
            Agent::DESCRIPTION.ends_with(" Types: general-purpose (default), Explore (only looks), Plan.")
        );
        let rows: [(&[&str], &str); 3] = [
            (&["Explore"], " run side by side. Types: general-purpose (default), Plan."),
            (&["Plan", GENERAL], " run side by side. Types: Explore (only looks)."),
            (&["Explore", "Plan", GENERAL], " run side by side."),
        ];
        for (denied, end) in rows {
            let text = description(&all.without(denied)).unwrap();
            assert!(text.ends_with(end), "{denied:?}: {text}");
        }
    }
}
