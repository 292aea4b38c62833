//! What an allow covers. Hooks run side by side, so a hook allows the input that it saw, or the one that it wrote itself;
//! if another one's input is used in the end, its allow says nothing about that. Pure.

use serde_json::{Map, Value};
use whimbrel_wire::hook::{HookDecision, HookPermissionDecision, HookSpecific, SyncOutput};

use super::outcome::{Outcome, Said};

type Fields = Map<String, Value>;

/// Takes back every allow for another input than the one that is used: that of the hook registered last that gives one.
/// `seen` is what the hooks were shown.
pub(super) fn take_back_uncovered(outcomes: &mut [Outcome], seen: &Value) {
    let Some(used) = outcomes.iter().rev().find_map(|outcome| written(&outcome.said)).cloned() else {
        return;
    };
    for outcome in outcomes {
        let allowed = written(&outcome.said).or(seen.as_object());
        if allowed != Some(&used)
            && let Said::Answer(output) = &mut outcome.said
        {
            take_back(output);
        }
    }
}

/// The input that a hook wants used.
fn written(said: &Said) -> Option<&Fields> {
    let output = match said {
        Said::Answer(output) | Said::Block { besides: Some(output), .. } => output,
        _ => return None,
    };
    match &output.specific {
        Some(HookSpecific::PreToolUse(answer)) => answer.updated_input.as_ref(),
        _ => None,
    }
}

fn take_back(output: &mut SyncOutput) {
    output.decision = output.decision.filter(|decision| *decision != HookDecision::Approve);
    if let Some(HookSpecific::PreToolUse(answer)) = &mut output.specific {
        answer.permission_decision =
            answer.permission_decision.filter(|decision| *decision != HookPermissionDecision::Allow);
    }
}
