//! A hook of the host: it is asked, and what it answers counts.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::codec::restore_truncated;
use whimbrel_wire::control::HookCallback;
use whimbrel_wire::hook::{HookEvent, HookEventInput, HookOutput, HookSpecific};
use whimbrel_wire::permission::PermissionResult;

use super::inputs::HookCall;
use super::output::ParsedOutput;
use crate::host_requests::{HostRequests, HostRequestError};
use crate::ids;

/// Asks the host what its hook says. If nobody waits any more, the question is taken back.
pub(super) async fn run(
    ask: &HostRequests,
    (event, id): (HookEvent, &str),
    occasion: &HookCall,
    limit: Duration,
    cancel: &CancellationToken,
) -> ParsedOutput {
    let question = HookCallback {
        callback_id: id.to_owned(),
        input: occasion.input.clone(),
        tool_use_id: Some(occasion.tool_use_id.clone().unwrap_or_else(ids::new_uuid)),
    };
    let answer = tokio::time::timeout(limit, ask.request(question));
    match cancel.run_until_cancelled(answer).await {
        None | Some(Ok(Err(HostRequestError::Cancelled))) => ParsedOutput::Cancelled,
        Some(Err(_)) => ParsedOutput::TimedOut(limit),
        // Who wants a say in every call and can no longer be asked has not agreed.
        Some(Ok(Err(HostRequestError::Closed))) if event == HookEvent::PreToolUse => {
            ParsedOutput::Block { reason: HostRequestError::Closed.to_string(), output: None }
        }
        Some(Ok(Err(error))) => ParsedOutput::Failed(error.to_string()),
        Some(Ok(Ok(mut output))) => {
            restore_truncated_input(&mut output, &occasion.input.event);
            ParsedOutput::from_host(event, output)
        }
    }
}

/// Hosts often give back what they were shown, and that may have been shortened to fit a line: what was cut then means
/// the whole.
fn restore_truncated_input(output: &mut HookOutput, event: &HookEventInput) {
    let HookOutput::Sync(output) = output else { return };
    let (given, original) = match (&mut output.specific, event) {
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
    if let Some(given) = given {
        let mut whole = Value::Object(std::mem::take(given));
        restore_truncated(&mut whole, original);
        *given = match whole {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
    }
}
