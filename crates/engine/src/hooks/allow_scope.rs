//! What an allow covers. Hooks run side by side, so a hook allows the input that it saw, or the one that it wrote itself;
//! if another one's input is used in the end, its allow says nothing about that. Pure.

use serde_json::{Map, Value};
use whimbrel_wire::hook::{HookDecision, HookPermissionDecision, HookSpecific, SyncOutput};

use super::output::{HookResult, ParsedOutput};

type InputFields = Map<String, Value>;

/// Takes back every allow for another input than the one that is used: that of the hook registered last that gives one.
/// `seen` is what the hooks were shown.
pub(super) fn drop_uncovered_allows(outcomes: &mut [HookResult], seen: &Value) {
    let Some(used) = outcomes.iter().rev().find_map(|outcome| updated_input(&outcome.output)).cloned() else {
        return;
    };
    for outcome in outcomes {
        let allowed = updated_input(&outcome.output).or(seen.as_object());
        if allowed != Some(&used)
            && let ParsedOutput::Output(output) = &mut outcome.output
        {
            clear_allow(output);
        }
    }
}

/// The input that a hook wants used.
fn updated_input(said: &ParsedOutput) -> Option<&InputFields> {
    let output = match said {
        ParsedOutput::Output(output) | ParsedOutput::Block { output: Some(output), .. } => output,
        _ => return None,
    };
    match &output.specific {
        Some(HookSpecific::PreToolUse(answer)) => answer.updated_input.as_ref(),
        _ => None,
    }
}

fn clear_allow(output: &mut SyncOutput) {
    output.decision = output.decision.filter(|decision| *decision != HookDecision::Approve);
    if let Some(HookSpecific::PreToolUse(answer)) = &mut output.specific {
        answer.permission_decision =
            answer.permission_decision.filter(|decision| *decision != HookPermissionDecision::Allow);
    }
}
