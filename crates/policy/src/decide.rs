//! The decision on one tool call: a pure function made of ordered steps. The first step that decides wins.
//!
//! Hooks that deny run before it; permission prompts to hooks and the host come after it.

use serde_json::Value;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::call::{Call, CallContext};
use crate::decision::{Decision, PermissionQuestion, Reason};
use crate::decision_input::DecisionInput;
use crate::paths::cached_fs::CachedFs;
use crate::resolved_file::ResolvedDecision;
use crate::rules::domain::parse_host;
use crate::rules::rule_set::RuleSet;
use crate::steps::run_steps;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use crate::work_dirs::WorkDirs;

/// Decides on one call.
pub fn decide(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    facts: &CallContext<'_>,
) -> Decision {
    decide_and_resolve(call, rules, mode, dirs, facts).decision
}

/// Decides on one call and returns the file that it resolved.
pub fn decide_and_resolve(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    facts: &CallContext<'_>,
) -> ResolvedDecision {
    let disk = CachedFs::new(facts.fs);
    let facts = &CallContext { fs: &disk, ..facts.clone() };
    let case = DecisionInput { call, rules, mode, dirs, context: facts };
    if let Some(decision) = deny_unknown_tool(&case).or_else(|| deny_invalid_input(&case)) {
        return ResolvedDecision { decision, file: None };
    }
    let subject = CallTarget::for_call(&case);
    let decision = match run_steps(&case, &subject) {
        Decision::Ask(question) => add_suggestions(*question, &case, &subject),
        decided => decided,
    };
    ResolvedDecision { decision, file: subject.into_resolved_file() }
}

fn deny_unknown_tool(case: &DecisionInput<'_>) -> Option<Decision> {
    let removed_by = case.tool_names().find_map(|name| case.rules.rule_removing_tool(name)).cloned();
    let gone = removed_by.is_some() || !case.context.tool.known;
    gone.then_some(Decision::Deny(Reason::UnknownTool { removed_by }))
}

fn deny_invalid_input(case: &DecisionInput<'_>) -> Option<Decision> {
    find_input_error(case).map(|text| Decision::Deny(Reason::InvalidInput(text)))
}

fn add_suggestions(
    mut question: PermissionQuestion,
    case: &DecisionInput<'_>,
    subject: &CallTarget<'_>,
) -> Decision {
    question.suggestions = crate::suggest::suggestions(&question, case, subject);
    Decision::Ask(Box::new(question))
}

/// Describes what is wrong with the input. The model reads this text.
fn find_input_error(case: &DecisionInput<'_>) -> Option<String> {
    let kind = case.context.tool.kind;
    if case.call.tool == "ExitPlanMode" && case.mode != PermissionMode::Plan {
        return Some("There is no plan to leave: the session is not in plan mode.".to_owned());
    }
    let field = kind.primary_field(case.call.tool)?;
    let text = match case.call.input.get(field) {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) if kind == ToolKind::Search => "",
        Some(_) => return Some(format!("`{field}` must be a string.")),
        None => return Some(format!("`{field}` is missing.")),
    };
    if has_control_characters(text) {
        return Some(format!("`{field}` holds control characters; leave them out."));
    }
    match kind {
        ToolKind::WebFetch => parse_host(text).err().map(|problem| format!("The address {problem}.")),
        ToolKind::Search => match case.input_text("pattern") {
            Some(pattern) if case.call.tool == "Glob" && has_control_characters(pattern) => {
                Some("`pattern` holds control characters; leave them out.".to_owned())
            }
            _ => None,
        },
        _ => None,
    }
}

fn has_control_characters(text: &str) -> bool {
    text.chars()
        .any(|character| character < ' ' && !matches!(character, '\n' | '\t') || character == '\u{7f}')
}

/// Returns true if a deny rule matches the call or may match it. A command that cannot be fully analyzed may match
/// any rule.
pub fn may_be_denied(call: &Call<'_>, rules: &RuleSet, dirs: &WorkDirs, facts: &CallContext<'_>) -> bool {
    let disk = CachedFs::new(facts.fs);
    let facts = &CallContext { fs: &disk, ..facts.clone() };
    let case = DecisionInput { call, rules, mode: PermissionMode::Default, dirs, context: facts };
    if case.tool_names().any(|name| rules.rule_removing_tool(name).is_some()) {
        return true;
    }
    if find_input_error(&case).is_some() {
        return false;
    }
    let subject = CallTarget::for_call(&case);
    case.find_direct_rule(PermissionBehavior::Deny, subject.host()).is_some()
        || subject.decide_by_rules(&case, PermissionBehavior::Deny).is_some()
        || !subject.is_fully_analyzed()
}

#[cfg(test)]
mod tests;
