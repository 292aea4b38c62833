//! A hook of the host: it is asked, and what it answers counts.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::codec::restore;
use whimbrel_wire::control::HookCallback;
use whimbrel_wire::hook::{HookEvent, HookEventInput, HookOutput, HookSpecific};
use whimbrel_wire::permission::PermissionResult;

use super::events::Occasion;
use super::outcome::Said;
use crate::ask::{Ask, NoAnswer};
use crate::ids;

/// Asks the host what its hook says. If nobody waits any more, the question is taken back.
pub(super) async fn run(
    ask: &Ask,
    (event, id): (HookEvent, &str),
    occasion: &Occasion,
    limit: Duration,
    cancel: &CancellationToken,
) -> Said {
    let question = HookCallback {
        callback_id: id.to_owned(),
        input: occasion.input.clone(),
        tool_use_id: Some(occasion.tool_use_id.clone().unwrap_or_else(ids::uuid)),
    };
    let answer = tokio::time::timeout(limit, ask.ask(question));
    match cancel.run_until_cancelled(answer).await {
        None | Some(Ok(Err(NoAnswer::Withdrawn))) => Said::Cancelled,
        Some(Err(_)) => Said::TimedOut(limit),
        // Who wants a say in every call and can no longer be asked has not agreed.
        Some(Ok(Err(NoAnswer::Deaf))) if event == HookEvent::PreToolUse => {
            Said::Block { reason: NoAnswer::Deaf.to_string(), besides: None }
        }
        Some(Ok(Err(error))) => Said::Fault(error.to_string()),
        Some(Ok(Ok(mut output))) => {
            make_whole(&mut output, &occasion.input.event);
            Said::by_host(event, output)
        }
    }
}

/// Hosts often give back what they were shown, and that may have been shortened to fit a line: what was cut then means
/// the whole.
fn make_whole(output: &mut HookOutput, event: &HookEventInput) {
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
        restore(&mut whole, original);
        *given = match whole {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
    }
}
