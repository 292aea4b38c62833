//! ScheduleWakeup: starts a turn after a delay.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::clock;

use super::cron_create::{check_prompt, require_main_agent};
use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::deferred_tools::ToolLoading;
use crate::timers::TimerJob;
use crate::timers::schedule::Schedule;

pub(super) struct ScheduleWakeupTool;

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

/// Minimum and maximum delay in seconds.
const MIN_DELAY_SECONDS: u64 = 60;
const MAX_DELAY_SECONDS: u64 = 3600;

impl Tool for ScheduleWakeupTool {
    type Input = Input;

    const NAME: &'static str = "ScheduleWakeup";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Wakes you with a prompt after a while, in place of a wake-up before. Only while this session is open: it does not keep a run alive whose input has ended. You are told of the end of background work without it.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        let timers = call.tasks.timers();
        let now = clock::local_now().timestamp().as_millisecond();
        if input.noop {
            let meta = json!({"scheduledFor": now, "clampedDelaySeconds": 0, "wasClamped": false});
            return Ok(ToolOutput::text("Nothing was changed.", meta));
        }
        if input.stop {
            let cancelled = timers.cancel(is_wakeup).len();
            let meta = json!({"scheduledFor": now, "clampedDelaySeconds": 0, "wasClamped": false, "stopped": true, "cancelledWakeups": cancelled});
            let text = if cancelled == 0 { "There was no wake-up." } else { "The wake-up is called off." };
            return Ok(ToolOutput::text(text, meta));
        }
        let Some(asked) = input.delay_seconds else {
            return Err(ToolError::Rejected(
                "Say after how many seconds (delaySeconds), or set stop.".into(),
            ));
        };
        let prompt = input.prompt.or(input.reason).unwrap_or_else(|| "Go on where you left off.".into());
        check_prompt(&prompt)?;
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        let delay = asked.clamp(MIN_DELAY_SECONDS, MAX_DELAY_SECONDS);
        let cancelled = timers.cancel(is_wakeup).len();
        let job = timers
            .schedule_prompt(Schedule::Wakeup(Duration::from_secs(delay)), prompt)
            .map_err(|fault| ToolError::Rejected(format!("Nothing was planned: {fault}.")))?;
        let mut meta = json!({
            "scheduledFor": job.next.as_millisecond(),
            "clampedDelaySeconds": delay,
            "wasClamped": delay != asked,
        });
        if cancelled > 0 {
            meta["cancelledWakeups"] = cancelled.into();
        }
        Ok(ToolOutput::text(format!("You will be woken in {delay} seconds, at {}.", job.next), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a wake-up is planned", json!({"delaySeconds": 120, "prompt": "Look again."}))
                .expect_output(&["in 120 seconds"]),
            Example::new("it is not too soon", json!({"delaySeconds": 1, "prompt": "Look again."}))
                .expect_output(&["in 60 seconds"]),
            Example::new("it can be called off", json!({"stop": true}))
                .after_call("ScheduleWakeup", json!({"delaySeconds": 120}))
                .expect_output(&["called off"]),
            Example::new("it says when", json!({"prompt": "x"})).expect_error(&["delaySeconds"]),
        ]
    }
}

fn is_wakeup(job: &TimerJob) -> bool {
    matches!(job.schedule, Schedule::Wakeup(_))
}

#[cfg(test)]
mod tests {
    use super::super::example::TestWorkspace;
    use super::*;

    #[tokio::test]
    async fn a_new_wakeup_replaces_the_previous_one() {
        let bench = TestWorkspace::new(&[]);
        bench.run_tool("ScheduleWakeup", json!({"delaySeconds": 100})).await.unwrap();
        let done = bench.run_tool("ScheduleWakeup", json!({"delaySeconds": 9999})).await.unwrap();
        assert_eq!(done.meta["cancelledWakeups"], 1);
        assert_eq!(
            (&done.meta["clampedDelaySeconds"], &done.meta["wasClamped"]),
            (&json!(3600), &json!(true))
        );
        assert_eq!(bench.context().tasks.timers().jobs().len(), 1);
    }
}
