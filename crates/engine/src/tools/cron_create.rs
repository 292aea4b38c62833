//! CronCreate: schedules a prompt, once or repeatedly.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::deferred_tools::ToolLoading;
use crate::timers::schedule::{Recurrence, Schedule};

pub(super) struct CronCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// Minute, hour, day of month, month, day of week; local time.
    cron: String,
    /// What you will be told then.
    prompt: String,
    /// Default true; false: the first time only.
    #[serde(default = "yes", deserialize_with = "lenient::flag")]
    recurring: bool,
    /// Keeping jobs after the session is not possible here.
    #[serde(default, deserialize_with = "lenient::flag")]
    durable: bool,
}

fn yes() -> bool {
    true
}

/// Maximum length of a prompt in bytes.
const MAX_PROMPT_BYTES: usize = 20_000;

impl Tool for CronCreateTool {
    type Input = Input;

    const NAME: &'static str = "CronCreate";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Plans a prompt for yourself, for the times of a cron expression. It comes between turns, while this session is open; it does not keep a run alive whose input has ended.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        check_prompt(&input.prompt)?;
        let often = if input.recurring { Recurrence::EveryTime } else { Recurrence::Once };
        let schedule = Schedule::parse_cron(&input.cron, often)
            .map_err(|why| ToolError::Rejected(format!("Nothing was planned: {why}.")))?;
        let human = schedule.describe();
        let planned = call.tasks.timers().schedule_prompt(schedule, input.prompt);
        let job = planned.map_err(|fault| ToolError::Rejected(format!("Nothing was planned: {fault}.")))?;
        let kept = if input.durable { " It ends with the session: jobs are not kept after it." } else { "" };
        let text = format!("Planned as {}: {human}, next at {}.{kept}", job.id, job.next);
        let meta = json!({
            "id": job.id,
            "humanSchedule": human,
            "recurring": input.recurring,
            "durable": false,
            "nextFireAt": job.next.as_millisecond(),
        });
        Ok(ToolOutput::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        let later = json!({"cron": "0 9 * * 1-5", "prompt": "Look at the build.", "recurring": false});
        vec![
            Example::new("a prompt is planned", later).expect_output(&["Planned as c", "next at"]),
            Example::new("an expression has five fields", json!({"cron": "hourly", "prompt": "x"}))
                .expect_error(&["five fields"]),
            Example::new("its time must come", json!({"cron": "0 0 30 2 *", "prompt": "x"}))
                .expect_error(&["its time never comes"]),
            Example::new("a prompt says something", json!({"cron": "* * * * *", "prompt": " "}))
                .expect_error(&["The prompt is empty"]),
        ]
    }
}

pub(super) fn check_prompt(prompt: &str) -> Result<(), ToolError> {
    match prompt.len() {
        _ if prompt.trim().is_empty() => Err(ToolError::Rejected("The prompt is empty.".into())),
        length if length > MAX_PROMPT_BYTES => Err(ToolError::Rejected(format!(
            "The prompt is longer than {MAX_PROMPT_BYTES} bytes. Put it into a file."
        ))),
        _ => Ok(()),
    }
}

/// Scheduled prompts go to the main agent, so only it may schedule them.
pub(super) fn require_main_agent(call: &ToolContext) -> Result<(), ToolError> {
    match call.hooks.agent_id() {
        None => Ok(()),
        Some(_) => Err(ToolError::Rejected(
            "Only the main agent can plan something for later. Report what you found instead.".into(),
        )),
    }
}
