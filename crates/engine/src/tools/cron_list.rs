//! CronList: shows what is planned.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, DealsWith, Done, Example, Output, Tool, Touches};
use crate::on_demand::Offer;
use crate::timers::Job;
use crate::timers::schedule::Schedule;

/// The tool.
pub(super) struct CronList;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for CronList {
    type Input = Input;

    const NAME: &'static str = "CronList";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str = "Shows the jobs of CronCreate.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, _: Input, call: Call) -> Output {
        let jobs = call.tasks.timers().jobs();
        let shown: Vec<(String, Value)> = jobs.iter().filter_map(show).collect();
        let (lines, rows): (Vec<String>, Vec<Value>) = shown.into_iter().unzip();
        let text = if lines.is_empty() { "Nothing is planned.".to_owned() } else { lines.join("\n") };
        Ok(Done::text(text, json!({"jobs": rows})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("nothing is planned at first", json!({})).says(&["Nothing is planned."]),
            Example::new("each job has a line", json!({}))
                .after("CronCreate", json!({"cron": "0 9 * * *", "prompt": "Look at the build."}))
                .says(&["0 9 * * *", "Look at the build."]),
        ]
    }
}

/// A job as the model and the host see it; a wake-up is none.
fn show(job: &Job) -> Option<(String, Value)> {
    let Schedule::Cron { text, .. } = &job.schedule else { return None };
    let human = job.schedule.human();
    let line = format!("{}: {text} ({human}), next at {}: {}", job.id, job.next, job.prompt);
    let row = json!({
        "id": job.id,
        "cron": text,
        "humanSchedule": human,
        "prompt": job.prompt,
        "recurring": job.schedule.recurs(),
        "durable": false,
        "nextFireAt": job.next.as_millisecond(),
    });
    Some((line, row))
}
