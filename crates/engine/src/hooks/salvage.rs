//! Salvages partly invalid hook outputs: only fields that block are honoured. Fields that allow or change something are
//! not, because the invalid part may have restricted them. Pure.

use whimbrel_wire::control::ElicitationAction;
use whimbrel_wire::hook::{
    HookDecision, HookEvent, HookPermissionDecision, HookSpecific, PermissionRequestOutput, PreToolUseOutput,
    SyncOutput,
};
use whimbrel_wire::permission::PermissionResult;

/// Blocking part of an output; `None` if nothing in it blocks.
pub(super) fn blocking_part(output: SyncOutput) -> Option<SyncOutput> {
    let go_on = output.should_continue.filter(|goes_on| !goes_on);
    let decision = output.decision.filter(|decision| *decision == HookDecision::Block);
    let specific = output.specific.and_then(blocking_specific);
    let holds = go_on.is_some() || decision.is_some() || specific.is_some();
    holds.then_some(SyncOutput {
        should_continue: go_on,
        decision,
        specific,
        stop_reason: output.stop_reason,
        reason: output.reason,
        system_message: output.system_message,
        ..SyncOutput::default()
    })
}

fn blocking_specific(specific: HookSpecific) -> Option<HookSpecific> {
    let holds = match &specific {
        HookSpecific::PreToolUse(answer) => answer.permission_decision.is_some_and(is_blocking),
        HookSpecific::PreModelSwitch(answer) => answer.permission_decision.is_some_and(is_blocking),
        HookSpecific::PermissionRequest(answer) => matches!(answer.decision, PermissionResult::Deny { .. }),
        HookSpecific::Elicitation(answer) | HookSpecific::ElicitationResult(answer) => {
            matches!(answer.action, Some(ElicitationAction::Decline | ElicitationAction::Cancel))
        }
        _ => false,
    };
    holds.then(|| match specific {
        HookSpecific::PreToolUse(answer) => {
            HookSpecific::PreToolUse(PreToolUseOutput { updated_input: None, ..answer })
        }
        other => other,
    })
}

fn is_blocking(decision: HookPermissionDecision) -> bool {
    match decision {
        HookPermissionDecision::Allow => false,
        HookPermissionDecision::Ask | HookPermissionDecision::Defer | HookPermissionDecision::Deny => true,
    }
}

/// Checks the event name of the event-specific part. A part for another event is dropped, and the returned text says
/// so. A part without a known name is read as one for this event; a deny of the call counts for PreToolUse and
/// PermissionRequest alike.
pub(super) fn check_event_name(event: HookEvent, output: &mut SyncOutput) -> Option<String> {
    let specific = output.specific.take()?;
    let meant = specific.event();
    if meant == Some(event) {
        output.specific = Some(specific);
        return None;
    }
    let mut named = true;
    match specific {
        HookSpecific::Other(fields) if meant.is_none() => {
            named = fields.get("hookEventName").is_some_and(serde_json::Value::is_string);
            output.specific = HookSpecific::parse_partial(Some(event), fields).0;
        }
        HookSpecific::PreToolUse(answer)
            if event == HookEvent::PermissionRequest
                && answer.permission_decision == Some(HookPermissionDecision::Deny) =>
        {
            set_block(output, answer.permission_decision_reason);
        }
        HookSpecific::PermissionRequest(PermissionRequestOutput {
            decision: PermissionResult::Deny { message, .. },
        }) if event == HookEvent::PreToolUse => {
            set_block(output, Some(message).filter(|message| !message.is_empty()));
        }
        _ => {}
    }
    let meant = meant.map_or("an unknown event", HookEvent::as_str);
    // A missing name has been reported already.
    named.then(|| format!("its answer is for {meant}, and the event is {event}"))
}

fn set_block(output: &mut SyncOutput, reason: Option<String>) {
    output.decision = Some(HookDecision::Block);
    output.reason = reason.or(output.reason.take());
}
