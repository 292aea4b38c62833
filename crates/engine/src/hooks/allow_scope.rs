//! Scope of an allow. Hooks run concurrently, so an allow covers the input that its hook saw or wrote itself. If
//! another hook's input is used, the allow is dropped. Pure.

use serde_json::{Map, Value};
use whimbrel_wire::hook::{HookDecision, HookPermissionDecision, HookSpecific, SyncOutput};

use super::output::{HookResult, ParsedOutput};

type InputFields = Map<String, Value>;

/// Drops every allow for an input other than the one used, which is that of the last registered hook that changes it.
/// `seen` is the input that the hooks were shown.
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

/// Changed input of a hook.
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
