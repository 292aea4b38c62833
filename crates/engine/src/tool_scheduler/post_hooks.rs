//! Runs a call and its PostToolUse hooks, which may add context or override the output.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_os::clock;
use whimbrel_tools::api::{ToolContext, ToolEntry};
use whimbrel_tools::hooks::inputs::FailureCause;
use whimbrel_tools::hooks::{HookDispatcher, MergedOutput, ToolCallRef};
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::hook::HookEvent;

use super::ToolCallResult;

/// Runs an allowed call, then dispatches its hook events, including CwdChanged.
pub(super) async fn run_with_hooks(
    hooks: &HookDispatcher,
    entry: &ToolEntry,
    call: ToolContext,
    input: Value,
) -> ToolCallResult {
    if !hooks.has_hooks(HookEvent::CwdChanged) {
        return run_and_notify(hooks, entry, call, input).await;
    }
    let (workspace, cancel) = (Arc::clone(&call.workspace), call.cancel.clone());
    let old = workspace.cwd();
    let result = run_and_notify(hooks, entry, call, input).await;
    let new = workspace.cwd();
    if new != old {
        let build_input = |builder: &whimbrel_tools::hooks::HookInputBuilder| builder.cwd_changed(&old, &new);
        hooks.dispatch(HookEvent::CwdChanged, build_input, &cancel).await;
    }
    result
}

async fn run_and_notify(
    hooks: &HookDispatcher,
    entry: &ToolEntry,
    call: ToolContext,
    input: Value,
) -> ToolCallResult {
    if !hooks.has_hooks(HookEvent::PostToolUse) && !hooks.has_hooks(HookEvent::PostToolUseFailure) {
        return super::run_tool(entry.tool(), call, input).await;
    }
    let started_at = clock::monotonic();
    let (id, cancel) = (call.id.clone(), call.cancel.clone());
    let mut result = super::run_tool(entry.tool(), call, input.clone()).await;
    let elapsed = clock::monotonic() - started_at;
    let call_ref =
        ToolCallRef { name: entry.tool().name(), input: &input, id: &id, server: entry.provenance() };
    let output = dispatch_result_hooks(hooks, call_ref, &result, elapsed, &cancel).await;
    if !apply_output_override(&mut result, call_ref.name, &output) {
        hooks
            .warn(
                HookEvent::PostToolUse,
                &format!(
                    "its replacement for the result of {} does not have the shape of a \
            result and is ignored",
                    call_ref.name
                ),
            )
            .await;
    }
    let stderr = output.feedback.into_iter().map(|reason| reason.text);
    result.notes.extend(stderr.chain(output.contexts));
    result
}

async fn dispatch_result_hooks(
    hooks: &HookDispatcher,
    call: ToolCallRef<'_>,
    result: &ToolCallResult,
    elapsed: Duration,
    cancel: &CancellationToken,
) -> MergedOutput {
    if result.is_error {
        let error = match &result.content {
            ResultContent::Text(text) => text.clone(),
            ResultContent::Blocks(_) => {
                result.meta.as_str().map_or_else(|| result.meta.to_string(), str::to_owned)
            }
        };
        let failure = HookEvent::PostToolUseFailure;
        let build_input = |builder: &whimbrel_tools::hooks::HookInputBuilder| {
            builder.post_tool_use_failure(call, error, FailureCause::Error, elapsed)
        };
        return hooks.dispatch(failure, build_input, cancel).await;
    }
    let build_input = |builder: &whimbrel_tools::hooks::HookInputBuilder| {
        builder.post_tool_use(call, result.meta.clone(), elapsed)
    };
    hooks.dispatch(HookEvent::PostToolUse, build_input, cancel).await
}

/// Replaces the result by the output of a hook. Returns false if the output cannot be used. The output must be a text,
/// content blocks, or an object with the fields of the tool's own structured result. For an MCP tool, `content` of an
/// MCP result counts.
fn apply_output_override(result: &mut ToolCallResult, tool: &str, hook_output: &MergedOutput) -> bool {
    let mcp_output = hook_output.mcp_tool_output.as_ref().filter(|_| tool.starts_with("mcp__"));
    let Some(output) = mcp_output.or(hook_output.tool_output.as_ref()) else { return true };
    let output = output.get("content").filter(|_| tool.starts_with("mcp__")).unwrap_or(output);
    match output {
        Value::String(text) => result.content = ResultContent::Text(text.clone()),
        Value::Array(_) => {
            let Ok(blocks) = serde_json::from_value::<Vec<Block>>(output.clone()) else { return false };
            result.content = ResultContent::Blocks(blocks);
        }
        Value::Object(fields) => {
            let Some(merged) = merge_if_same_shape(&result.meta, fields) else { return false };
            let text = |key: &str| merged.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            let printed: Vec<&str> = ["stdout", "stderr"].into_iter().filter_map(text).collect();
            let output = Value::Object(merged.clone());
            let shown = if printed.is_empty() { output.to_string() } else { printed.join("\n") };
            result.content = ResultContent::Text(shown);
            result.meta = output;
            return true;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return false,
    }
    result.meta = output.clone();
    true
}

/// Merges the fields of a hook's output into the tool's own result. `None` if they do not share the same fields.
fn merge_if_same_shape(own: &Value, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let own = own.as_object()?;
    let is_subset = !fields.is_empty() && fields.keys().all(|key| own.contains_key(key));
    let is_superset = own.keys().all(|key| fields.contains_key(key));
    (is_subset || is_superset).then(|| {
        let mut merged = own.clone();
        merged.extend(fields.clone());
        merged
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::content::ResultContent::Text;

    use super::*;

    #[test]
    fn hook_output_replaces_a_result_of_the_same_shape() {
        let ran = json!({"stdout": "old", "stderr": "", "interrupted": false});
        let whole = json!({"stdout": "new", "stderr": "warned", "interrupted": false});
        let more = json!({"stdout": "new", "stderr": "", "interrupted": false, "more": 1});
        let filled = json!({"stdout": "new", "stderr": "", "interrupted": false});
        let rows = [
            ("a text", json!("new"), Some(("new", json!("new")))),
            ("all fields", whole.clone(), Some(("new\nwarned", whole))),
            ("more than all", more.clone(), Some(("new", more))),
            ("some fields", json!({"stdout": "new"}), Some(("new", filled))),
            ("another field", json!({"out": "new"}), None),
            ("some and another", json!({"stdout": "new", "out": 1}), None),
            ("no field", json!({}), None),
            ("a number", json!(5), None),
            ("no blocks", json!(["new"]), None),
        ];
        for (name, output, expected) in rows {
            let mut result = super::super::failure_result("call", Text("old".into()), ran.clone());
            let hook_output = MergedOutput { tool_output: Some(output), ..MergedOutput::default() };
            assert_eq!(
                apply_output_override(&mut result, "Bash", &hook_output),
                expected.is_some(),
                "{name}"
            );
            let (content, meta) = expected.unwrap_or(("old", ran.clone()));
            assert_eq!((result.content, result.meta), (Text(content.into()), meta), "{name}");
        }
    }

    #[test]
    fn mcp_output_overrides_only_mcp_tools() {
        for (tool, expected) in [("mcp__a__b", "new"), ("Bash", "old")] {
            let mut result = super::super::failure_result("call", Text("old".into()), json!({}));
            apply_output_override(
                &mut result,
                tool,
                &MergedOutput { mcp_tool_output: Some(json!("new")), ..MergedOutput::default() },
            );
            assert_eq!(result.content, Text(expected.into()), "{tool}");
        }
    }

    #[test]
    fn mcp_output_may_be_a_whole_mcp_result() {
        let blocks = json!([{"type": "text", "text": "new"}]);
        for output in [blocks.clone(), json!({"content": blocks, "isError": false})] {
            let mut result = super::super::failure_result("call", Text("old".into()), json!({}));
            let hook_output = MergedOutput { mcp_tool_output: Some(output), ..MergedOutput::default() };
            apply_output_override(&mut result, "mcp__a__b", &hook_output);
            assert_eq!(serde_json::to_value(&result.content).unwrap(), blocks);
        }
    }
}
