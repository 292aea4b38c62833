//! Agent: hands an errand to a subagent and waits for its report.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};
use crate::agents::definition::GENERAL;
use crate::agents::{Errand, Report};
use crate::verdict::End;

/// The tool.
pub(super) struct Agent;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The errand in 3-5 words
    description: String,
    /// The whole errand; the subagent knows nothing else
    prompt: String,
    /// The kind of subagent
    subagent_type: Option<String>,
    /// A model other than its own
    model: Option<String>,
    #[schemars(skip)]
    isolation: Option<String>,
    #[schemars(skip)]
    run_in_background: Option<bool>,
}

impl Tool for Agent {
    type Input = Input;

    const NAME: &'static str = super::AGENT;
    const ALIASES: &'static [&'static str] = &["Task"];
    const DESCRIPTION: &'static str = "Hands an errand to a subagent with a fresh context and returns its report. Good for broad searches and side work whose details you do not need. Several calls in one reply run side by side. Kinds: general-purpose (default).";

    fn touches(_: &Input) -> Touches {
        // What it does is judged call by call.
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let Some(agents) = call.agents.clone() else {
            return Err(Trouble::Refused("A subagent cannot start another one.".into()));
        };
        // Work that was to be kept apart must not be done in the person's own tree.
        let missing = [
            (input.isolation.is_some(), "isolation"),
            (input.run_in_background == Some(true), "run_in_background"),
        ];
        if let Some((_, field)) = missing.iter().find(|(asked, _)| *asked) {
            return Err(Trouble::Refused(format!(
                "{field} is not available here. Leave it out, or do without a subagent."
            )));
        }
        let kind = input.subagent_type.unwrap_or_else(|| GENERAL.into());
        let Some(definition) = agents.definitions().iter().find(|definition| definition.name == kind) else {
            let known: Vec<&str> =
                agents.definitions().iter().map(|definition| definition.name.as_str()).collect();
            return Err(Trouble::Refused(format!(
                "There is no agent type '{kind}'. There are: {}.",
                known.join(", ")
            )));
        };
        let errand =
            Errand { kind, description: input.description, prompt: input.prompt, model: input.model };
        let report = agents.run(definition, &errand, &call).await;
        answer(report, &errand, call.cancel.is_cancelled())
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

fn answer(report: Report, errand: &Errand, interrupted: bool) -> Output {
    let Report { agent_id, ending, usage, took } = report;
    let text = if ending.text.is_empty() { "The subagent said nothing.".to_owned() } else { ending.text };
    match ending.end {
        End::Done => {}
        End::AbortedTools if !interrupted => {
            return Err(Trouble::Stopped(
                "The user refused a call of the subagent and stopped the work.".into(),
            ));
        }
        End::Broke => return Err(Trouble::Stopped("The budget is used up.".into())),
        End::AbortedStreaming | End::AbortedTools => {
            return Err(Trouble::Failed("The subagent was interrupted.".into()));
        }
        End::MaxTurns
        | End::ApiFailure
        | End::Refused
        | End::OutputLimit
        | End::NoAnswer
        | End::TooLong
        | End::HookStopped
        | End::Deferred => {
            return Err(Trouble::Failed(format!("The subagent could not finish. Its last words: {text}")));
        }
    }
    let meta: Value = json!({
        "status": "completed",
        "prompt": errand.prompt,
        "agentId": agent_id,
        "agentType": errand.kind,
        "content": [{"type": "text", "text": text}],
        "totalDurationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": usage.total(),
        "totalToolUseCount": ending.num_turns.saturating_sub(1),
        "usage": usage,
    });
    Ok(Done { content: ResultContent::Blocks(vec![Block::text(text)]), meta })
}
