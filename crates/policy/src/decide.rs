//! The decision on one tool call: a pure function made of ordered steps. The first step that decides wins.
//!
//! Hooks that deny run before it; permission prompts to hooks and the host come after it.

use serde_json::Value;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::call::{Call, CallContext};
use crate::decision::{AskDetails, CheckedCall, Decision, Reason, ResolvedDecision};
use crate::decision_input::DecisionInput;
use crate::decision_order::run_steps;
use crate::paths::cached_fs::CachedFs;
use crate::rules::domain::parse_host;
use crate::rules::rule_set::RuleSet;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use crate::work_dirs::WorkDirs;

/// Decides on one call.
pub fn decide(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    context: &CallContext<'_>,
) -> Decision {
    decide_and_resolve(call, rules, mode, dirs, context).decision
}

/// Decides on one call and returns the file that it resolved.
pub fn decide_and_resolve(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    context: &CallContext<'_>,
) -> ResolvedDecision {
    let disk = CachedFs::new(context.fs);
    let context = &CallContext { fs: &disk, ..context.clone() };
    let input = DecisionInput { call, rules, mode, dirs, context };
    if let Some(decision) = deny_unknown_tool(&input).or_else(|| deny_invalid_input(&input)) {
        return ResolvedDecision { decision, checked: CheckedCall::default() };
    }
    let target = CallTarget::for_call(&input);
    let decision = match run_steps(&input, &target) {
        Decision::Ask(details) => add_suggestions(*details, &input, &target),
        decided => decided,
    };
    let checked = CheckedCall { file: target.into_resolved_file(), sandbox: context.sandbox };
    ResolvedDecision { decision, checked }
}

fn deny_unknown_tool(input: &DecisionInput<'_>) -> Option<Decision> {
    let removed_by = input.tool_names().find_map(|name| input.rules.find_rule_removing_tool(name)).cloned();
    let is_unknown = removed_by.is_some() || !input.context.tool.known;
    is_unknown.then_some(Decision::Deny(Reason::UnknownTool { removed_by }))
}

fn deny_invalid_input(input: &DecisionInput<'_>) -> Option<Decision> {
    find_input_error(input).map(|text| Decision::Deny(Reason::InvalidInput(text)))
}

fn add_suggestions(mut details: AskDetails, input: &DecisionInput<'_>, target: &CallTarget<'_>) -> Decision {
    details.suggestions = crate::suggest::build_suggestions(&details, input, target);
    Decision::Ask(Box::new(details))
}

/// Describes what is wrong with the input. The model reads this text.
fn find_input_error(input: &DecisionInput<'_>) -> Option<String> {
    let kind = input.context.tool.kind;
    if input.call.tool == "ExitPlanMode" && input.mode != PermissionMode::Plan {
        return Some("The session is not in plan mode, so there is no plan to exit.".to_owned());
    }
    let field = kind.primary_field(input.call.tool)?;
    let text = match input.call.input.get(field) {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) if kind == ToolKind::Search => "",
        Some(_) => return Some(format!("`{field}` must be a string.")),
        None => return Some(format!("`{field}` is missing.")),
    };
    if has_control_characters(text) {
        return Some(format!("`{field}` contains control characters; remove them."));
    }
    match kind {
        ToolKind::WebFetch => parse_host(text).err().map(|error| format!("The URL {error}.")),
        ToolKind::Search => match input.input_text("pattern") {
            Some(pattern) if input.call.tool == "Glob" && has_control_characters(pattern) => {
                Some("`pattern` contains control characters; remove them.".to_owned())
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
pub fn may_be_denied(call: &Call<'_>, rules: &RuleSet, dirs: &WorkDirs, context: &CallContext<'_>) -> bool {
    let disk = CachedFs::new(context.fs);
    let context = &CallContext { fs: &disk, ..context.clone() };
    let input = DecisionInput { call, rules, mode: PermissionMode::Default, dirs, context };
    if input.tool_names().any(|name| rules.find_rule_removing_tool(name).is_some()) {
        return true;
    }
    if find_input_error(&input).is_some() {
        return false;
    }
    let target = CallTarget::for_call(&input);
    input.find_direct_rule(PermissionBehavior::Deny, target.host()).is_some()
        || target.decide_by_rules(&input, PermissionBehavior::Deny).is_some()
        || !target.is_fully_analyzed()
}

#[cfg(test)]
mod tests;
