//! CronCreate: plans a prompt for later, once or again and again.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, DealsWith, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::on_demand::Offer;
use crate::timers::schedule::{Often, Schedule};

/// The tool.
pub(super) struct CronCreate;

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

/// How long a prompt may be.
const LONGEST: usize = 20_000;

impl Tool for CronCreate {
    type Input = Input;

    const NAME: &'static str = "CronCreate";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str = "Plans a prompt for yourself, for the times of a cron expression. It comes between turns, while this session is open; it does not keep a run alive whose input has ended.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        main_agent_only(&call)?;
        check_prompt(&input.prompt)?;
        let often = if input.recurring { Often::Always } else { Often::Once };
        let schedule = Schedule::cron(&input.cron, often)
            .map_err(|why| Trouble::Refused(format!("Nothing was planned: {why}.")))?;
        let human = schedule.human();
        let planned = call.tasks.timers().plan(schedule, input.prompt);
        let job = planned.map_err(|fault| Trouble::Refused(format!("Nothing was planned: {fault}.")))?;
        let kept = if input.durable { " It ends with the session: jobs are not kept after it." } else { "" };
        let text = format!("Planned as {}: {human}, next at {}.{kept}", job.id, job.next);
        let meta = json!({
            "id": job.id,
            "humanSchedule": human,
            "recurring": input.recurring,
            "durable": false,
            "nextFireAt": job.next.as_millisecond(),
        });
        Ok(Done::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        let later = json!({"cron": "0 9 * * 1-5", "prompt": "Look at the build.", "recurring": false});
        vec![
            Example::new("a prompt is planned", later).says(&["Planned as c", "next at"]),
            Example::new("an expression has five fields", json!({"cron": "hourly", "prompt": "x"}))
                .fails(&["five fields"]),
            Example::new("its time must come", json!({"cron": "0 0 30 2 *", "prompt": "x"}))
                .fails(&["its time never comes"]),
            Example::new("a prompt says something", json!({"cron": "* * * * *", "prompt": " "}))
                .fails(&["The prompt is empty"]),
        ]
    }
}

/// A prompt has something in it, and not too much.
pub(super) fn check_prompt(prompt: &str) -> Result<(), Trouble> {
    match prompt.len() {
        _ if prompt.trim().is_empty() => Err(Trouble::Refused("The prompt is empty.".into())),
        length if length > LONGEST => {
            Err(Trouble::Refused(format!("The prompt is longer than {LONGEST} bytes. Put it into a file.")))
        }
        _ => Ok(()),
    }
}

/// Prompts go to the main agent, so only it can plan them.
pub(super) fn main_agent_only(call: &Call) -> Result<(), Trouble> {
    match call.lookout.agent_id() {
        None => Ok(()),
        Some(_) => Err(Trouble::Refused(
            "Only the main agent can plan something for later. Report what you found instead.".into(),
        )),
    }
}
