//! CronList: lists scheduled prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Availability, Effects, Example, Tool, ToolContext, ToolOutput, ToolResult};
use crate::deferred_tools::ToolLoading;
use crate::timers::TimerJob;
use crate::timers::schedule::Schedule;

pub(super) struct CronListTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for CronListTool {
    type Input = Input;

    const NAME: &'static str = "CronList";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Shows the jobs of CronCreate.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, _: Input, call: ToolContext) -> ToolResult {
        let jobs = call.tasks.timers().jobs();
        let shown: Vec<(String, Value)> = jobs.iter().filter_map(render_job).collect();
        let (lines, rows): (Vec<String>, Vec<Value>) = shown.into_iter().unzip();
        let text = if lines.is_empty() { "Nothing is planned.".to_owned() } else { lines.join("\n") };
        Ok(ToolOutput::text(text, json!({"jobs": rows})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("nothing is planned at first", json!({})).expect_output(&["Nothing is planned."]),
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
