//! The order in which rules, hooks, modes and safety checks decide. The first step that decides wins.

use crate::call::PreToolDecision;
use crate::decision::{AskDetails, Decision, Reason, SafetyRisk};
use crate::decision_input::DecisionInput;
use crate::rules::rule_set::RuleSource;
use crate::shell::UnanalyzableCause;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use std::path::Path;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

/// A decision step: a decision, or `None` to continue with the next step.
type DecisionStep = fn(&DecisionInput<'_>, &CallTarget<'_>) -> Option<Decision>;

/// The steps for a known tool with valid input, in order. Those up to `ask_by_hook` apply in every mode.
const STEPS: [DecisionStep; 15] = [
    deny_by_rule,
    ask_by_rule,
    ask_for_interaction,
    ask_for_critical_removal,
    ask_by_hook,
    allow_by_bypass_mode,
    ask_for_risky_write,
    ask_for_background,
    decide_in_plan_mode,
    allow_by_hook,
    ask_for_sandbox_override,
    allow_by_rule,
    allow_in_sandbox,
    allow_accepted_edit,
    allow_without_approval,
];

/// Runs the steps in order; the decision is ask if none decides.
pub(crate) fn run_steps(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Decision {
    let decision = STEPS.iter().find_map(|step| step(input, target));
    decision.unwrap_or_else(|| ask_by_default(input, target))
}

fn deny_by_rule(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    if let Some(rule) = input.find_direct_rule(PermissionBehavior::Deny, target.host()) {
        return Some(Decision::Deny(Reason::Rule(rule.clone())));
    }
    target.decide_by_rules(input, PermissionBehavior::Deny)
}

fn ask_by_rule(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let direct_rule = input.find_direct_rule(PermissionBehavior::Ask, target.host());
    let decision = match direct_rule {
        Some(rule) => Decision::ask(Reason::Rule(rule.clone())),
        None => target.decide_by_rules(input, PermissionBehavior::Ask)?,
    };
    Some(prefer_safety_reason(decision, input, target))
}

/// Replaces the reason of an ask rule by a safety reason, if the call requires permission for safety anyway.
fn prefer_safety_reason(decision: Decision, input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Decision {
    let steps: [DecisionStep; 4] =
        [ask_for_critical_removal, ask_by_hook, ask_for_risky_write, ask_for_background];
    let step_count = if input.mode == PermissionMode::BypassPermissions { 2 } else { steps.len() };
    let safety = steps.iter().take(step_count).find_map(|step| step(input, target));
    match (safety, &decision) {
        (Some(Decision::Ask(safety)), Decision::Ask(details)) => {
            let ask_rule = details.matched_ask_rule().cloned();
            Decision::Ask(Box::new(AskDetails { ask_rule, ..*safety }))
        }
        _ => decision,
    }
}

fn ask_for_interaction(input: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    let answered = input.context.tool.kind == ToolKind::Interaction
        && matches!(input.context.hook, Some(PreToolDecision::Allow { rewrote_input: true, .. }));
    (input.context.tool.requires_interaction && !answered).then(|| Decision::ask(Reason::Interaction))
}

fn ask_for_critical_removal(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let path = target.find_critical_removal(input)?;
    Some(build_safety_ask(SafetyRisk::CriticalRemoval, false, Some(path)))
}

fn ask_by_hook(input: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    match &input.context.hook {
        Some(PreToolDecision::Ask { source, text }) => {
            Some(Decision::ask(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(PreToolDecision::Allow { .. }) | None => None,
    }
}

fn allow_by_bypass_mode(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let allowed = match target.is_truncated() {
        // The part of the command that was not analyzed may remove anything.
        true => Decision::ask(Reason::Unanalyzable(UnanalyzableCause::TooDeep)),
        false => Decision::Allow(Reason::Mode(input.mode)),
    };
    (input.mode == PermissionMode::BypassPermissions).then_some(allowed)
}

fn ask_for_risky_write(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let (risk, path) = target.find_risky_write(input)?;
    let is_protected = risk == SafetyRisk::ProtectedPath;
    if input.is_auto_allowed_in_sandbox()
        && (!is_protected || input.is_protected_by_sandbox(Path::new(&path)))
    {
        return None;
    }
    Some(build_safety_ask(risk, risk == SafetyRisk::ProtectedPath, Some(path)))
}

fn ask_for_background(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    // In the sandbox it ends with the command.
    let may_stay = target.runs_in_background() && !input.is_auto_allowed_in_sandbox();
    may_stay.then(|| build_safety_ask(SafetyRisk::Background, false, None))
}

fn decide_in_plan_mode(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    if input.mode != PermissionMode::Plan {
        return None;
    }
    if target.edits_plan_file(input) {
        return Some(Decision::Allow(Reason::Mode(input.mode)));
    }
    let changes = match input.context.tool.kind {
        ToolKind::Edit | ToolKind::Mcp => true,
        ToolKind::Shell => !target.is_read_only(input),
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
    changes.then(|| Decision::ask(Reason::Mode(input.mode)))
}

fn allow_by_hook(input: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    match &input.context.hook {
        Some(PreToolDecision::Allow { source, text, .. }) => {
            Some(Decision::Allow(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(PreToolDecision::Ask { .. }) | None => None,
    }
}

/// Leaving the sandbox needs approval, or a rule of the user or an administrator for this command. A rule for all of Bash
/// is not enough, and neither is one that was given during the session: it was meant for confined commands.
fn ask_for_sandbox_override(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    if !input.leaves_sandbox() {
        return None;
    }
    let rules = input.rules.only_from(|source| match source {
        RuleSource::Managed | RuleSource::CliArg | RuleSource::FlagSettings | RuleSource::UserSettings => {
            true
        }
        RuleSource::LocalSettings | RuleSource::ProjectSettings | RuleSource::Skill | RuleSource::Session => {
            false
        }
    });
    let trusted = DecisionInput { rules: &rules, ..*input };
    let rule = target.find_allow_rule(&trusted).filter(|rule| !rule.rule.is_bare());
    Some(match rule {
        Some(rule) => Decision::Allow(Reason::Rule(rule)),
        None => Decision::ask(Reason::SandboxOverride),
    })
}

fn allow_by_rule(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let direct_rule = input.find_direct_rule(PermissionBehavior::Allow, target.host());
    let rule = match direct_rule {
        Some(_) if target.may_evade_restrictions(input) => return None,
        Some(rule) => rule.clone(),
        None => target.find_allow_rule(input)?,
    };
    Some(Decision::Allow(Reason::Rule(rule)))
}

fn allow_in_sandbox(input: &DecisionInput<'_>, _: &CallTarget<'_>) -> Option<Decision> {
    input.is_auto_allowed_in_sandbox().then_some(Decision::Allow(Reason::Sandbox))
}

fn allow_accepted_edit(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    (input.mode == PermissionMode::AcceptEdits && target.is_accepted_edit(input))
        .then_some(Decision::Allow(Reason::Mode(input.mode)))
}

fn allow_without_approval(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Option<Decision> {
    let reason = match input.context.tool.kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Shell => {
            target.is_covered(input).then_some(Reason::ReadOnly)
        }
        ToolKind::Agent | ToolKind::NoApproval | ToolKind::Interaction => Some(Reason::NoApprovalNeeded),
        ToolKind::Skill => (!input.context.tool.adds_rules_or_hooks).then_some(Reason::NoApprovalNeeded),
        ToolKind::Edit | ToolKind::WebFetch | ToolKind::WebSearch | ToolKind::Mcp | ToolKind::Other => None,
    };
    reason.map(Decision::Allow)
}

fn ask_by_default(input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Decision {
    let (reason, path) = target.build_approval_reason(input);
    match Decision::ask(reason) {
        Decision::Ask(details) => Decision::Ask(Box::new(AskDetails { blocked_path: path, ..*details })),
        other => other,
    }
}

fn build_safety_ask(risk: SafetyRisk, approvable: bool, blocked_path: Option<String>) -> Decision {
    let reason = Reason::Safety { risk, approvable };
    Decision::Ask(Box::new(AskDetails { reason, blocked_path, suggestions: Vec::new(), ask_rule: None }))
}
