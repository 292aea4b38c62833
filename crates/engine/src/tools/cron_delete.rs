//! CronDelete: calls a job off.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, DealsWith, Done, Example, Output, Tool, Touches, Trouble};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct CronDelete;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    id: String,
}

impl Tool for CronDelete {
    type Input = Input;

    const NAME: &'static str = "CronDelete";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str = "Calls a job of CronCreate off.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let timers = call.tasks.timers();
        if timers.cancel(|job| job.id == input.id).is_empty() {
            let known: Vec<String> = timers.jobs().into_iter().map(|job| job.id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Trouble::Refused(format!("No job is called {}; there are: {known}.", input.id)));
        }
        Ok(Done::text(format!("{} is called off.", input.id), json!({"id": input.id})))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("there must be such a job", json!({"id": "c1"})).fails(&["there are: none"])]
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::Bench;
    use super::*;

    #[tokio::test]
    async fn a_job_is_called_off_once() {
        let bench = Bench::new(&[]);
        let planned = bench.call("CronCreate", json!({"cron": "0 9 * * *", "prompt": "x"})).await.unwrap();
        let id = planned.meta["id"].as_str().unwrap();
        let listed = bench.call("CronList", json!({})).await.unwrap();
        assert_eq!(listed.meta["jobs"][0]["id"], id);
        let gone = bench.call("CronDelete", json!({"id": id})).await.unwrap();
        assert_eq!(gone.meta, json!({"id": id}));
        assert!(bench.call("CronDelete", json!({"id": id})).await.is_err());
    }
}
