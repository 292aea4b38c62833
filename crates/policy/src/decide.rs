//! The decision on one tool call: a pure function made of ordered steps. The first step that decides wins.
//!
//! Hooks that deny run before it; permission prompts to hooks and the host come after it.

use std::path::Path;

use serde_json::Value;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::cached_fs::CachedFs;
use crate::call::{Call, CallContext, PreToolDecision};
use crate::decision::{Danger, Decision, PermissionQuestion, Reason};
use crate::domain::parse_host;
use crate::protected;
use crate::resolved_file::ResolvedDecision;
use crate::ruleset::{RuleMatcher, RuleSet, SourcedRule, ToolName};
use crate::shell::UnanalyzableCause;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use crate::work_dirs::WorkDirs;

/// Everything that a decision step may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionInput<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) rules: &'a RuleSet,
    pub(crate) mode: PermissionMode,
    pub(crate) dirs: &'a WorkDirs,
    pub(crate) context: &'a CallContext<'a>,
}

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

/// Runs the steps in order; asks if none decides.
pub(crate) fn run_steps(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Decision {
    let answer = STEPS.iter().find_map(|step| step(case, subject));
    answer.unwrap_or_else(|| ask_by_default(case, subject))
}

fn deny_unknown_tool(case: &DecisionInput<'_>) -> Option<Decision> {
    let removed_by = case.tool_names().find_map(|name| case.rules.rule_removing_tool(name)).cloned();
    let gone = removed_by.is_some() || !case.context.tool.known;
    gone.then_some(Decision::Deny(Reason::UnknownTool { removed_by }))
}

fn deny_invalid_input(case: &DecisionInput<'_>) -> Option<Decision> {
    find_input_error(case).map(|text| Decision::Deny(Reason::InvalidInput(text)))
}

fn deny_by_rule(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    if let Some(rule) = case.find_direct_rule(PermissionBehavior::Deny, subject) {
        return Some(Decision::Deny(Reason::Rule(rule.clone())));
    }
    subject.decide_by_rules(case, PermissionBehavior::Deny)
}

fn ask_by_rule(case: &DecisionInput<'_>, subject: &CallTarget<'_>) -> Option<Decision> {
    let by_name = case.find_direct_rule(PermissionBehavior::Ask, subject);
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
    let whole = case.find_direct_rule(PermissionBehavior::Allow, subject);
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

fn add_suggestions(
    mut question: PermissionQuestion,
    case: &DecisionInput<'_>,
    subject: &CallTarget<'_>,
) -> Decision {
    question.suggestions = crate::suggest::suggestions(&question, case, subject);
    Decision::Ask(Box::new(question))
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

impl<'a> DecisionInput<'a> {
    /// Tool names that rules may use for this call. Rules for Bash apply to Monitor as well.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = ToolName<'a>> {
        let own = self.context.tool.name(self.call);
        let bash = ToolName { name: "Bash", server: None };
        let judged_as_bash = self.context.tool.kind == ToolKind::Shell && own.name != "Bash";
        std::iter::once(own).chain(judged_as_bash.then_some(bash))
    }

    pub(crate) fn is_auto_allowed_in_sandbox(&self) -> bool {
        self.context.tool.kind == ToolKind::Shell
            && self.mode != PermissionMode::Plan
            && self.context.sandbox.is_some_and(|sandbox| sandbox.will_run_sandboxed && sandbox.auto_allow)
    }

    /// Returns true if writing the path always asks: by its name, or because it configures the session.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        protected::is_protected(path) || protected::is_in_any(path, self.context.protected_paths)
    }

    /// A string field of the input.
    pub(crate) fn input_text(&self, field: &str) -> Option<&'a str> {
        self.call.input.get(field).and_then(Value::as_str)
    }

    /// The first rule with this behavior that matches without looking at commands or files.
    fn find_direct_rule(
        &self,
        behavior: PermissionBehavior,
        subject: &CallTarget<'_>,
    ) -> Option<&'a SourcedRule> {
        let rules = self.rules;
        let skip_bare = behavior == PermissionBehavior::Ask && self.is_auto_allowed_in_sandbox();
        let mut about = self.tool_names().flat_map(|name| rules.rules_for_tool(behavior, name));
        let rule = about.find(|rule| {
            let field = rule.parameter.as_ref().filter(|rule| self.context.tool.fields.contains(&rule.field));
            if let Some(parameter) = field {
                return !parameter.is_for_primary_field() && parameter.matches(self.call.input);
            }
            match &rule.matcher {
                RuleMatcher::AllCalls => !(skip_bare && rule.sourced.rule.is_bare()),
                RuleMatcher::Domain(pattern) => subject.host().is_some_and(|host| pattern.matches(host)),
                RuleMatcher::Agent(kind) => self.agent_type() == Some(kind),
                RuleMatcher::Skill(name) => self.skill_name() == Some(name),
                RuleMatcher::Never
                | RuleMatcher::Command(_)
                | RuleMatcher::Read(_)
                | RuleMatcher::Edit(_) => false,
            }
        });
        rule.map(|rule| &rule.sourced)
    }

    fn agent_type(&self) -> Option<&str> {
        (self.context.tool.kind == ToolKind::Agent)
            .then(|| self.input_text("subagent_type").unwrap_or("general-purpose"))
    }

    /// Name of the skill that the call loads.
    pub(crate) fn skill_name(&self) -> Option<&str> {
        if self.context.tool.kind != ToolKind::Skill {
            return None;
        }
        // Older versions of the tool took a whole line, `/name words`; models still send it.
        let named = self.input_text("skill").or_else(|| self.input_text("command"))?;
        named.trim().trim_start_matches('/').split_whitespace().next()
    }
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
    case.find_direct_rule(PermissionBehavior::Deny, &subject).is_some()
        || subject.decide_by_rules(&case, PermissionBehavior::Deny).is_some()
        || !subject.is_fully_analyzed()
}

#[cfg(test)]
mod tests;
