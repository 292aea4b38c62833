//! Callback hooks: the host is asked by control request.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_wire::codec::restore_truncated;
use whimbrel_wire::control::HookCallback;
use whimbrel_wire::hook::{HookEvent, HookEventInput, HookOutput, HookSpecific};
use whimbrel_wire::permission::PermissionResult;

use super::inputs::HookCall;
use super::output::ParsedOutput;
use whimbrel_transport::host_requests::{HostRequestError, HostRequests};

/// Asks the host. Cancelling withdraws the request.
pub(super) async fn run(
    host: &HostRequests,
    (event, id): (HookEvent, &str),
    hook_call: &HookCall,
    limit: Duration,
    cancel: &CancellationToken,
) -> ParsedOutput {
    let request = HookCallback {
        callback_id: id.to_owned(),
        input: hook_call.input.clone(),
        tool_use_id: Some(hook_call.tool_use_id.clone().unwrap_or_else(ids::new_uuid)),
    };
    let response = tokio::time::timeout(limit, host.request(request));
    match cancel.run_until_cancelled(response).await {
        None => ParsedOutput::Cancelled,
        Some(Err(_)) => ParsedOutput::TimedOut(limit),
        // Without an answer to PreToolUse the call is not approved.
        Some(Ok(Err(HostRequestError::Closed))) if event == HookEvent::PreToolUse => {
            ParsedOutput::Block { reason: HostRequestError::Closed.to_string(), output: None }
        }
        Some(Ok(Err(error))) => ParsedOutput::Failed(error.to_string()),
        Some(Ok(Ok(mut output))) => {
            restore_truncated_input(&mut output, &hook_call.input.event);
            ParsedOutput::from_host(event, output)
        }
    }
}

/// Restores truncated values. Hosts often echo the input that they were shown, which may have been truncated to fit a
/// line.
fn restore_truncated_input(output: &mut HookOutput, event: &HookEventInput) {
    let HookOutput::Sync(output) = output else { return };
    let (updated, original) = match (&mut output.specific, event) {
        (Some(HookSpecific::PreToolUse(answer)), HookEventInput::PreToolUse(on)) => {
            (&mut answer.updated_input, &on.tool_input)
        }
        (Some(HookSpecific::PermissionRequest(answer)), HookEventInput::PermissionRequest(on)) => {
            match &mut answer.decision {
                PermissionResult::Allow { updated_input, .. } => (updated_input, &on.tool_input),
                PermissionResult::Deny { .. } => return,
            }
        }
        _ => return,
    };
    if let Some(updated) = updated {
        let mut value = Value::Object(std::mem::take(updated));
        restore_truncated(&mut value, original);
        *updated = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
    }
}
