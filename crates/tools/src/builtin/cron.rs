//! CronCreate, CronDelete and CronList: prompts scheduled by cron expressions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::ToolLoading;
use crate::api::{
    Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient,
};
use crate::timers::TimerJob;
use crate::timers::schedule::{Recurrence, Schedule};

pub(super) struct CronCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct CronCreateInput {
    /// Minute, hour, day of month, month, day of week; local time.
    cron: String,
    /// The prompt you will receive.
    prompt: String,
    /// Default true; false: fire once.
    #[serde(default = "default_true", deserialize_with = "lenient::flag")]
    recurring: bool,
    /// Not supported: jobs end with the session.
    #[serde(default, deserialize_with = "lenient::flag")]
    durable: bool,
}

fn default_true() -> bool {
    true
}

/// Maximum length of a prompt in bytes.
const MAX_PROMPT_BYTES: usize = 20_000;

impl Tool for CronCreateTool {
    type Input = CronCreateInput;

    const NAME: &'static str = "CronCreate";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Schedules a prompt to yourself at the times of a cron expression. It arrives \
        between turns while this session is open; it does not keep a session alive whose input has ended.";

    fn effects(_: &CronCreateInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: CronCreateInput, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        check_prompt(&input.prompt)?;
        let recurrence = if input.recurring { Recurrence::EveryTime } else { Recurrence::Once };
        let schedule = Schedule::parse_cron(&input.cron, recurrence)
            .map_err(|error| ToolError::Rejected(format!("Not scheduled: {error}.")))?;
        let human = schedule.describe();
        let scheduled = call.tasks.timers().schedule_prompt(&call.id, schedule, input.prompt);
        let job = scheduled.map_err(|error| ToolError::Rejected(format!("Not scheduled: {error}.")))?;
        let note =
            if input.durable { " It ends with the session: durable jobs are not supported." } else { "" };
        let text = format!("Scheduled as {}: {human}, next at {}.{note}", job.id, job.next);
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
            Example::new("a prompt is scheduled", later).expect_output(&["Scheduled as c", "next at"]),
            Example::new("an expression needs five fields", json!({"cron": "hourly", "prompt": "x"}))
                .expect_error(&["five fields"]),
            Example::new("the schedule must fire", json!({"cron": "0 0 30 2 *", "prompt": "x"}))
                .expect_error(&["never fires"]),
            Example::new("an empty prompt is rejected", json!({"cron": "* * * * *", "prompt": " "}))
                .expect_error(&["The prompt is empty"]),
        ]
    }
}

pub(super) fn check_prompt(prompt: &str) -> Result<(), ToolError> {
    match prompt.len() {
        _ if prompt.trim().is_empty() => Err(ToolError::Rejected("The prompt is empty.".into())),
        length if length > MAX_PROMPT_BYTES => Err(ToolError::Rejected(format!(
            "The prompt is longer than {MAX_PROMPT_BYTES} bytes. Put it in a file and name the file."
        ))),
        _ => Ok(()),
    }
}

/// Scheduled prompts go to the main agent, so only it may schedule them.
pub(super) fn require_main_agent(call: &ToolContext) -> Result<(), ToolError> {
    match call.hooks.agent_id() {
        None => Ok(()),
        Some(_) => Err(ToolError::Rejected(
            "Only the main agent can schedule prompts. Report what you found instead.".into(),
        )),
    }
}

pub(super) struct CronDeleteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct CronDeleteInput {
    id: String,
}

impl Tool for CronDeleteTool {
    type Input = CronDeleteInput;

    const NAME: &'static str = "CronDelete";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Cancels a job created with CronCreate.";

    fn effects(_: &CronDeleteInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: CronDeleteInput, call: ToolContext) -> ToolResult {
        let timers = call.tasks.timers();
        if timers.cancel(|job| job.id == input.id).is_empty() {
            let known: Vec<String> = timers.jobs().into_iter().map(|job| job.id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ToolError::Rejected(format!("No job has the id {}. Known jobs: {known}.", input.id)));
        }
        Ok(ToolOutput::text(format!("Cancelled {}.", input.id), json!({"id": input.id})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("unknown ids are rejected", json!({"id": "c1"})).expect_error(&["Known jobs: none"]),
        ]
    }
}

pub(super) struct CronListTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct CronListInput {}

impl Tool for CronListTool {
    type Input = CronListInput;

    const NAME: &'static str = "CronList";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Lists the jobs of CronCreate.";

    fn effects(_: &CronListInput) -> Effects {
        Effects::None
    }

    async fn run(&self, _: CronListInput, call: ToolContext) -> ToolResult {
        let jobs = call.tasks.timers().jobs();
        let shown: Vec<(String, Value)> = jobs.iter().filter_map(render_job).collect();
        let (lines, rows): (Vec<String>, Vec<Value>) = shown.into_iter().unzip();
        let text = if lines.is_empty() { "No jobs are scheduled.".to_owned() } else { lines.join("\n") };
        Ok(ToolOutput::text(text, json!({"jobs": rows})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("the list is empty at first", json!({})).expect_output(&["No jobs are scheduled."]),
            Example::new("each job has a line", json!({}))
                .after_call("CronCreate", json!({"cron": "0 9 * * *", "prompt": "Look at the build."}))
                .expect_output(&["0 9 * * *", "Look at the build."]),
        ]
    }
}

/// A job as text and JSON; `None` for a wake-up.
fn render_job(job: &TimerJob) -> Option<(String, Value)> {
    let Schedule::Cron { text, .. } = &job.schedule else { return None };
    let human = job.schedule.describe();
    let line = format!("{}: {text} ({human}), next at {}: {}", job.id, job.next, job.prompt);
    let row = json!({
        "id": job.id,
        "cron": text,
        "humanSchedule": human,
        "prompt": job.prompt,
        "recurring": job.schedule.is_recurring(),
        "durable": false,
        "nextFireAt": job.next.as_millisecond(),
    });
    Some((line, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn a_job_is_cancelled_once() {
        let fixture = TestWorkspace::new(&[]);
        let created =
            fixture.run_tool("CronCreate", json!({"cron": "0 9 * * *", "prompt": "x"})).await.unwrap();
        let id = created.meta["id"].as_str().unwrap();
        let listed = fixture.run_tool("CronList", json!({})).await.unwrap();
        assert_eq!(listed.meta["jobs"][0]["id"], id);
        let deleted = fixture.run_tool("CronDelete", json!({"id": id})).await.unwrap();
        assert_eq!(deleted.meta, json!({"id": id}));
        assert!(fixture.run_tool("CronDelete", json!({"id": id})).await.is_err());
    }
}
