//! EnterPlanMode: switches to plan mode.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_wire::permission::PermissionMode;

use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct EnterPlanModeTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {}

impl Tool for EnterPlanModeTool {
    type Input = Input;

    const NAME: &'static str = super::ENTER_PLAN_MODE;
    const DESCRIPTION: &'static str = "Begins plan mode: nothing can be changed until the user approves a plan. For larger work whose approach the user should agree to first; not for small or clear tasks.";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, _: Input, call: ToolContext) -> ToolResult {
        let message = match call.mode.mode() {
            PermissionMode::Plan => "Plan mode is on already.",
            PermissionMode::DontAsk => {
                return Err(ToolError::Rejected(
                    "This session never asks the user, so nobody would approve a plan. Do without one."
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
            Example::new("plan mode begins", json!({})).expect_output(&["Plan mode is on."]),
            Example::new("it begins once", json!({}))
                .after_call(Self::NAME, json!({}))
                .expect_output(&["already"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_input_has_an_empty_properties_schema() {
        let schema = super::super::AnyTool::spec(&EnterPlanModeTool).input_schema;
        assert_eq!(schema.as_str(), r#"{"type":"object","properties":{}}"#);
    }
}
