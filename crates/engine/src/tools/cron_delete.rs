//! CronDelete: cancels a scheduled prompt.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::deferred_tools::ToolLoading;

pub(super) struct CronDeleteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    id: String,
}

impl Tool for CronDeleteTool {
    type Input = Input;

    const NAME: &'static str = "CronDelete";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Calls a job of CronCreate off.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let timers = call.tasks.timers();
        if timers.cancel(|job| job.id == input.id).is_empty() {
            let known: Vec<String> = timers.jobs().into_iter().map(|job| job.id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ToolError::Rejected(format!("No job is called {}; there are: {known}.", input.id)));
        }
        Ok(ToolOutput::text(format!("{} is called off.", input.id), json!({"id": input.id})))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("there must be such a job", json!({"id": "c1"})).expect_error(&["there are: none"])]
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::TestWorkspace;
    use super::*;

    #[tokio::test]
    async fn a_job_is_cancelled_once() {
        let bench = TestWorkspace::new(&[]);
        let planned =
            bench.run_tool("CronCreate", json!({"cron": "0 9 * * *", "prompt": "x"})).await.unwrap();
        let id = planned.meta["id"].as_str().unwrap();
        let listed = bench.run_tool("CronList", json!({})).await.unwrap();
        assert_eq!(listed.meta["jobs"][0]["id"], id);
        let gone = bench.run_tool("CronDelete", json!({"id": id})).await.unwrap();
        assert_eq!(gone.meta, json!({"id": id}));
        assert!(bench.run_tool("CronDelete", json!({"id": id})).await.is_err());
    }
}
