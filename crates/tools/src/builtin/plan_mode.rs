//! EnterPlanMode and ExitPlanMode.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_wire::permission::PermissionMode;

use crate::api::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct EnterPlanModeTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct EnterPlanModeInput {}

impl Tool for EnterPlanModeTool {
    type Input = EnterPlanModeInput;

    const NAME: &'static str = super::ENTER_PLAN_MODE;
    const DESCRIPTION: &'static str = "Enters plan mode: no changes are possible until the user approves a plan. Use \
        it for larger work whose approach the user should approve first; not for small or clear tasks.";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &EnterPlanModeInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, _: EnterPlanModeInput, call: ToolContext) -> ToolResult {
        let message = match call.mode.mode() {
            PermissionMode::Plan => "Plan mode is already on.",
            PermissionMode::DontAsk => {
                return Err(ToolError::Rejected(
                    "This session never asks the user, so a plan cannot be approved. Work without one."
                        .into(),
                ));
            }
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::BypassPermissions
            | PermissionMode::Auto
            | PermissionMode::Delegate => {
                call.mode.enter_plan().await;
                "Plan mode is on."
            }
        };
        Ok(ToolOutput::text(message, json!({"message": message})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("plan mode starts", json!({})).expect_output(&["Plan mode is on."]),
            Example::new("plan mode starts only once", json!({}))
                .after_call(Self::NAME, json!({}))
                .expect_output(&["already"]),
        ]
    }
}

/// Presents a plan. The permission check asks the user; a call that gets to `run` is approved.
pub(super) struct ExitPlanModeTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExitPlanModeInput {
    /// The complete plan in Markdown
    // A model that has already shown its plan may omit it.
    #[schemars(required)]
    plan: Option<String>,
}

impl Tool for ExitPlanModeTool {
    type Input = ExitPlanModeInput;

    const NAME: &'static str = super::EXIT_PLAN_MODE;
    const DESCRIPTION: &'static str = "In plan mode: presents your finished plan to the user for approval. Approval \
        ends plan mode.";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &ExitPlanModeInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: ExitPlanModeInput, call: ToolContext) -> ToolResult {
        // If the answer has set a mode, that one is kept.
        call.mode.leave_plan().await;
        let original_plan =
            call.original_input.as_deref().map(|input| input.get("plan").and_then(Value::as_str));
        let edited = original_plan.is_some_and(|original_plan| original_plan != input.plan.as_deref());
        let mut meta = json!({"plan": input.plan, "isAgent": false});
        let text = match input.plan {
            Some(plan) if edited => {
                meta["planWasEdited"] = true.into();
                format!(
                    "The user edited and approved the plan. Start working now, following this version:\n\n{plan}"
                )
            }
            _ => "The user approved the plan. Start working now.".into(),
        };
        Ok(ToolOutput::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a plan is approved", json!({"plan": "1. Build it."}))
                .after_call(super::ENTER_PLAN_MODE, json!({}))
                .expect_output(&["approved the plan"]),
            Example::new("the plan may be omitted", json!({})).expect_output(&["approved the plan"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::test_support::TestWorkspace;

    #[test]
    fn an_empty_input_has_an_empty_properties_schema() {
        let schema = crate::api::AnyTool::spec(&EnterPlanModeTool).input_schema;
        assert_eq!(schema.as_str(), r#"{"type":"object","properties":{}}"#);
    }

    async fn run_approved(original_input: Option<Value>, input: Value) -> ToolOutput {
        let call =
            ToolContext { original_input: original_input.map(Arc::new), ..TestWorkspace::new(&[]).context() };
        ExitPlanModeTool.run(serde_json::from_value(input).unwrap(), call).await.unwrap()
    }

    #[tokio::test]
    async fn the_model_sees_a_plan_edited_by_the_user() {
        let output = run_approved(Some(json!({"plan": "all"})), json!({"plan": "half"})).await;
        assert_eq!(output.meta, json!({"plan": "half", "isAgent": false, "planWasEdited": true}));
        let text =
            "The user edited and approved the plan. Start working now, following this version:\n\nhalf";
        assert_eq!(output, ToolOutput::text(text, output.meta.clone()));
    }

    #[tokio::test]
    async fn an_unchanged_plan_is_not_repeated() {
        let inputs = [None, Some(json!({"plan": "all", "note": "x"}))];
        for original_input in inputs {
            let output = run_approved(original_input, json!({"plan": "all"})).await;
            let meta = json!({"plan": "all", "isAgent": false});
            assert_eq!(output, ToolOutput::text("The user approved the plan. Start working now.", meta));
        }
        assert_eq!(run_approved(None, json!({})).await.meta["plan"], Value::Null);
    }
}
