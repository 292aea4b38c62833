//! ExitPlanMode: presents a plan. The permission check asks the user; a call that gets here is approved.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Availability, Effects, Example, Tool, ToolContext, ToolOutput, ToolResult};

pub(super) struct ExitPlanModeTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The whole plan, in Markdown
    // A model that has already shown its plan may omit it.
    #[schemars(required)]
    plan: Option<String>,
}

impl Tool for ExitPlanModeTool {
    type Input = Input;

    const NAME: &'static str = super::EXIT_PLAN_MODE;
    const DESCRIPTION: &'static str = "In plan mode: shows the user your finished plan and asks for approval. Once it is approved, plan mode is over.";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        // If the answer has set a mode, that one is kept.
        call.mode.leave_plan().await;
        let written =
            call.original_input.as_deref().map(|written| written.get("plan").and_then(Value::as_str));
        let edited = written.is_some_and(|written| written != input.plan.as_deref());
        let mut meta = json!({"plan": input.plan, "isAgent": false});
        let text = match input.plan {
            Some(plan) if edited => {
                meta["planWasEdited"] = true.into();
                format!(
                    "The user changed the plan and approved it. Begin with the work now, by this version:\n\n{plan}"
                )
            }
            _ => "The user approved the plan. Begin with the work now.".into(),
        };
        Ok(ToolOutput::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a plan that was approved", json!({"plan": "1. Build it."}))
                .after_call(super::ENTER_PLAN_MODE, json!({}))
                .expect_output(&["approved the plan"]),
            Example::new("a plan that was told before", json!({})).expect_output(&["approved the plan"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::example::TestWorkspace;
    use super::*;

    async fn run_approved(written: Option<Value>, input: Value) -> ToolOutput {
        let call = ToolContext { original_input: written.map(Arc::new), ..TestWorkspace::new(&[]).context() };
        ExitPlanModeTool.run(serde_json::from_value(input).unwrap(), call).await.unwrap()
    }

    #[tokio::test]
    async fn the_model_sees_a_plan_edited_by_the_user() {
        let done = run_approved(Some(json!({"plan": "all"})), json!({"plan": "half"})).await;
        assert_eq!(done.meta, json!({"plan": "half", "isAgent": false, "planWasEdited": true}));
        let text =
            "The user changed the plan and approved it. Begin with the work now, by this version:\n\nhalf";
        assert_eq!(done, ToolOutput::text(text, done.meta.clone()));
    }

    #[tokio::test]
    async fn an_unchanged_plan_is_not_repeated() {
        let untouched = [None, Some(json!({"plan": "all", "note": "x"}))];
        for written in untouched {
            let done = run_approved(written, json!({"plan": "all"})).await;
            let meta = json!({"plan": "all", "isAgent": false});
            assert_eq!(done, ToolOutput::text("The user approved the plan. Begin with the work now.", meta));
        }
        assert_eq!(run_approved(None, json!({})).await.meta["plan"], Value::Null);
    }
}
