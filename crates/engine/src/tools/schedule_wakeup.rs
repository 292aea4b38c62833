//! ScheduleWakeup: the agent has itself woken after a while.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::cron_create::{check_prompt, main_agent_only};
use super::{Call, DealsWith, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::clock;
use crate::on_demand::Offer;
use crate::timers::Job;
use crate::timers::schedule::Schedule;

/// The tool.
pub(super) struct ScheduleWakeup;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    /// 60 to 3600.
    #[serde(default, deserialize_with = "lenient::count")]
    delay_seconds: Option<usize>,
    /// Why, in a sentence for the user.
    #[serde(default)]
    reason: Option<String>,
    /// What you will be told then.
    #[serde(default)]
    prompt: Option<String>,
    /// Call the wake-up off instead.
    #[serde(default, deserialize_with = "lenient::flag")]
    stop: bool,
    /// Change nothing.
    #[serde(default, deserialize_with = "lenient::flag")]
    noop: bool,
}

/// The shortest and the longest wait, in seconds.
const SHORTEST: u64 = 60;
const LONGEST: u64 = 3600;

impl Tool for ScheduleWakeup {
    type Input = Input;

    const NAME: &'static str = "ScheduleWakeup";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str = "Wakes you with a prompt after a while, in place of a wake-up before. Only while this session is open: it does not keep a run alive whose input has ended. You are told of the end of background work without it.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        main_agent_only(&call)?;
        let timers = call.tasks.timers();
        let now = clock::local_now().timestamp().as_millisecond();
        if input.noop {
            let meta = json!({"scheduledFor": now, "clampedDelaySeconds": 0, "wasClamped": false});
            return Ok(Done::text("Nothing was changed.", meta));
        }
        if input.stop {
            let cancelled = timers.cancel(is_wakeup).len();
            let meta = json!({"scheduledFor": now, "clampedDelaySeconds": 0, "wasClamped": false, "stopped": true, "cancelledWakeups": cancelled});
            let text = if cancelled == 0 { "There was no wake-up." } else { "The wake-up is called off." };
            return Ok(Done::text(text, meta));
        }
        let Some(asked) = input.delay_seconds else {
            return Err(Trouble::Refused("Say after how many seconds (delaySeconds), or set stop.".into()));
        };
        let prompt = input.prompt.or(input.reason).unwrap_or_else(|| "Go on where you left off.".into());
        check_prompt(&prompt)?;
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        let delay = asked.clamp(SHORTEST, LONGEST);
        let cancelled = timers.cancel(is_wakeup).len();
        let job = timers
            .plan(Schedule::Wakeup(Duration::from_secs(delay)), prompt)
            .map_err(|fault| Trouble::Refused(format!("Nothing was planned: {fault}.")))?;
        let mut meta = json!({
            "scheduledFor": job.next.as_millisecond(),
            "clampedDelaySeconds": delay,
            "wasClamped": delay != asked,
        });
        if cancelled > 0 {
            meta["cancelledWakeups"] = cancelled.into();
        }
        Ok(Done::text(format!("You will be woken in {delay} seconds, at {}.", job.next), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a wake-up is planned", json!({"delaySeconds": 120, "prompt": "Look again."}))
                .says(&["in 120 seconds"]),
            Example::new("it is not too soon", json!({"delaySeconds": 1, "prompt": "Look again."}))
                .says(&["in 60 seconds"]),
            Example::new("it can be called off", json!({"stop": true}))
                .after("ScheduleWakeup", json!({"delaySeconds": 120}))
                .says(&["called off"]),
            Example::new("it says when", json!({"prompt": "x"})).fails(&["delaySeconds"]),
        ]
    }
}

fn is_wakeup(job: &Job) -> bool {
    matches!(job.schedule, Schedule::Wakeup(_))
}

#[cfg(test)]
mod tests {
    use super::super::example::Bench;
    use super::*;

    #[tokio::test]
    async fn there_is_one_wake_up_at_a_time() {
        let bench = Bench::new(&[]);
        bench.call("ScheduleWakeup", json!({"delaySeconds": 100})).await.unwrap();
        let done = bench.call("ScheduleWakeup", json!({"delaySeconds": 9999})).await.unwrap();
        assert_eq!(done.meta["cancelledWakeups"], 1);
        assert_eq!(
            (&done.meta["clampedDelaySeconds"], &done.meta["wasClamped"]),
            (&json!(3600), &json!(true))
        );
        assert_eq!(bench.calling().tasks.timers().jobs().len(), 1);
    }
}
