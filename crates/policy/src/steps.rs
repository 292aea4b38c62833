//! The ordered steps of a decision. The first step that decides wins.

use crate::call::PreToolDecision;
use crate::decision::{Danger, Decision, PermissionQuestion, Reason};
use crate::decision_input::DecisionInput;
use crate::shell::UnanalyzableCause;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

/// A decision step: a decision, or none to continue with the next step.
type DecisionStep = fn(&DecisionInput<'_>, &CallTarget<'_>) -> Option<Decision>;

/// The steps for a known tool with valid input, in order. Those up to `ask_by_hook` apply in every mode.
const STEPS: [DecisionStep; 14] = [
    deny_by_rule,
    ask_by_rule,
    ask_for_interaction,
    ask_for_critical_removal,
    ask_by_hook,
    allow_by_bypass_mode,
    ask_for_dangerous_write,
    ask_for_background,
    decide_in_plan_mode,
    allow_by_hook,
    allow_by_rule,
    allow_in_sandbox,
    allow_accepted_edit,
    allow_without_approval,
];

/// Runs the steps in order; asks if none decides.
pub(crate) fn run_steps(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Decision {
    let answer = STEPS.iter().find_map(|step| step(case, subject));
    answer.unwrap_or_else(|| ask_by_default(case, subject))
}

fn deny_by_rule(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    if let Some(rule) = case.find_direct_rule(PermissionBehavior::Deny, subject.host()) {
        return Some(Decision::Deny(Reason::Rule(rule.clone())));
    }
    subject.decide_by_rules(case, PermissionBehavior::Deny)
}

fn ask_by_rule(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let by_name = case.find_direct_rule(PermissionBehavior::Ask, subject.host());
    let asked = match by_name {
        Some(rule) => Decision::ask(Reason::Rule(rule.clone())),
        None => subject.decide_by_rules(case, PermissionBehavior::Ask)?,
    };
    Some(prefer_safety_reason(asked, case, subject))
}

/// Replaces the reason of an ask rule by a safety reason, if the call would be asked about for safety anyway.
fn prefer_safety_reason(asked: Decision, case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Decision {
    let steps: [DecisionStep; 4] =
        [ask_for_critical_removal, ask_by_hook, ask_for_dangerous_write, ask_for_background];
    let in_force = if case.mode == PermissionMode::BypassPermissions { 2 } else { steps.len() };
    let graver = steps.iter().take(in_force).find_map(|step| step(case, subject));
    match (graver, &asked) {
        (Some(Decision::Ask(graver)), Decision::Ask(question)) => {
            let ask_rule = question.matched_ask_rule().cloned();
            Decision::Ask(Box::new(PermissionQuestion { ask_rule, ..*graver }))
        }
        _ => asked,
    }
}

fn ask_for_interaction(case: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    let answered = case.context.tool.kind == ToolKind::Interaction
        && matches!(case.context.hook, Some(PreToolDecision::Allow { rewrote_input: true, .. }));
    (case.context.tool.requires_interaction && !answered).then(|| Decision::ask(Reason::Interaction))
}

fn ask_for_critical_removal(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let path = subject.critical_removal(case)?;
    Some(safety_question(Danger::CriticalRemoval, false, Some(path)))
}

fn ask_by_hook(case: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    match &case.context.hook {
        Some(PreToolDecision::Ask { source, text }) => {
            Some(Decision::ask(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(PreToolDecision::Allow { .. }) | None => None,
    }
}

fn allow_by_bypass_mode(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let allowed = match subject.is_truncated() {
        // The part of the command that was not analyzed may remove anything.
        true => Decision::ask(Reason::Unanalyzable(UnanalyzableCause::TooDeep)),
        false => Decision::Allow(Reason::Mode(case.mode)),
    };
    (case.mode == PermissionMode::BypassPermissions).then_some(allowed)
}

fn ask_for_dangerous_write(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let (danger, path) = subject.dangerous_write(case)?;
    Some(safety_question(danger, danger == Danger::ProtectedPath, Some(path)))
}

fn ask_for_background(_: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    subject.runs_in_background().then(|| safety_question(Danger::Background, false, None))
}

fn decide_in_plan_mode(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    if case.mode != PermissionMode::Plan {
        return None;
    }
    if subject.edits_plan_file(case) {
        return Some(Decision::Allow(Reason::Mode(case.mode)));
    }
    let changes = match case.context.tool.kind {
        ToolKind::Edit | ToolKind::Mcp => true,
        ToolKind::Shell => !subject.is_read_only(case),
        ToolKind::Read
        | ToolKind::Search
        | ToolKind::WebFetch
        | ToolKind::WebSearch
        | ToolKind::Agent
        | ToolKind::Skill
        | ToolKind::Interaction
        | ToolKind::NoApproval
        | ToolKind::Other => false,
    };
    changes.then(|| Decision::ask(Reason::Mode(case.mode)))
}

fn allow_by_hook(case: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    match &case.context.hook {
        Some(PreToolDecision::Allow { source, text, .. }) => {
            Some(Decision::Allow(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(PreToolDecision::Ask { .. }) | None => None,
    }
}

fn allow_by_rule(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let whole = case.find_direct_rule(PermissionBehavior::Allow, subject.host());
    let rule = match whole {
        Some(_) if subject.may_evade_restrictions(case) => return None,
        Some(rule) => rule.clone(),
        None => subject.allow_rule(case)?,
    };
    Some(Decision::Allow(Reason::Rule(rule)))
}

fn allow_in_sandbox(case: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    case.is_auto_allowed_in_sandbox().then_some(Decision::Allow(Reason::Sandbox))
}

fn allow_accepted_edit(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    (case.mode == PermissionMode::AcceptEdits && subject.is_accepted_edit(case))
        .then_some(Decision::Allow(Reason::Mode(case.mode)))
}

fn allow_without_approval(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let reason = match case.context.tool.kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Shell => {
            subject.is_covered(case).then_some(Reason::ReadOnly)
        }
        ToolKind::Agent | ToolKind::NoApproval | ToolKind::Interaction => Some(Reason::NoApprovalNeeded),
        ToolKind::Skill => (!case.context.tool.adds_rules_or_hooks).then_some(Reason::NoApprovalNeeded),
        ToolKind::Edit | ToolKind::WebFetch | ToolKind::WebSearch | ToolKind::Mcp | ToolKind::Other => None,
    };
    reason.map(Decision::Allow)
}

fn ask_by_default(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Decision {
    let (reason, path) = subject.approval_reason(case);
    match Decision::ask(reason) {
        Decision::Ask(question) => {
            Decision::Ask(Box::new(PermissionQuestion { blocked_path: path, ..*question }))
        }
        other => other,
    }
}

fn safety_question(danger: Danger, approvable: bool, blocked_path: Option<String>) -> Decision {
    let reason = Reason::Safety { danger, approvable };
    Decision::Ask(Box::new(PermissionQuestion {
        reason,
        blocked_path,
        suggestions: Vec::new(),
        ask_rule: None,
    }))
}
