//! ScheduleWakeup: starts a turn after a delay.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::clock;

use super::cron::{check_prompt, require_main_agent};
use crate::api::ToolLoading;
use crate::api::{
    Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient,
};
use crate::timers::TimerJob;
use crate::timers::schedule::Schedule;

pub(super) struct ScheduleWakeupTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScheduleWakeupInput {
    /// 60 to 3600.
    #[serde(default, deserialize_with = "lenient::count")]
    delay_seconds: Option<usize>,
    /// Why, in one sentence for the user.
    #[serde(default)]
    reason: Option<String>,
    /// The prompt you will receive.
    #[serde(default)]
    prompt: Option<String>,
    /// Cancel the wake-up instead.
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
    type Input = ScheduleWakeupInput;

    const NAME: &'static str = "ScheduleWakeup";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Wakes you with a prompt after a delay; replaces an earlier wake-up. Works only \
        while this session is open: it does not keep a session alive whose input has ended. You are notified of \
        finished background work without it.";

    fn effects(_: &ScheduleWakeupInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: ScheduleWakeupInput, call: ToolContext) -> ToolResult {
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
            let text = if cancelled == 0 { "There was no wake-up." } else { "The wake-up is cancelled." };
            return Ok(ToolOutput::text(text, meta));
        }
        let Some(requested) = input.delay_seconds else {
            return Err(ToolError::Rejected("Set delaySeconds or stop.".into()));
        };
        let prompt = input.prompt.or(input.reason).unwrap_or_else(|| "Continue where you left off.".into());
        check_prompt(&prompt)?;
        let requested = u64::try_from(requested).unwrap_or(u64::MAX);
        let delay = requested.clamp(MIN_DELAY_SECONDS, MAX_DELAY_SECONDS);
        let cancelled = timers.cancel(is_wakeup).len();
        let job = timers
            .schedule_prompt(&call.id, Schedule::Wakeup(Duration::from_secs(delay)), prompt)
            .map_err(|error| ToolError::Rejected(format!("Not scheduled: {error}.")))?;
        let mut meta = json!({
            "scheduledFor": job.next.as_millisecond(),
            "clampedDelaySeconds": delay,
            "wasClamped": delay != requested,
        });
        if cancelled > 0 {
            meta["cancelledWakeups"] = cancelled.into();
        }
        Ok(ToolOutput::text(format!("You will be woken in {delay} seconds, at {}.", job.next), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a wake-up is scheduled", json!({"delaySeconds": 120, "prompt": "Look again."}))
                .expect_output(&["in 120 seconds"]),
            Example::new("short delays are raised", json!({"delaySeconds": 1, "prompt": "Look again."}))
                .expect_output(&["in 60 seconds"]),
            Example::new("a wake-up can be cancelled", json!({"stop": true}))
                .after_call("ScheduleWakeup", json!({"delaySeconds": 120}))
                .expect_output(&["cancelled"]),
            Example::new("a delay is required", json!({"prompt": "x"})).expect_error(&["delaySeconds"]),
        ]
    }
}

fn is_wakeup(job: &TimerJob) -> bool {
    matches!(job.schedule, Schedule::Wakeup(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn a_new_wakeup_replaces_the_previous_one() {
        let fixture = TestWorkspace::new(&[]);
        fixture.run_tool("ScheduleWakeup", json!({"delaySeconds": 100})).await.unwrap();
        let output = fixture.run_tool("ScheduleWakeup", json!({"delaySeconds": 9999})).await.unwrap();
        assert_eq!(output.meta["cancelledWakeups"], 1);
        assert_eq!(
            (&output.meta["clampedDelaySeconds"], &output.meta["wasClamped"]),
            (&json!(3600), &json!(true))
        );
        assert_eq!(fixture.context().tasks.timers().jobs().len(), 1);
    }
}
