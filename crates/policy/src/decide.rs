//! The decision on one tool call: one pure function, its steps in order. The first step that answers wins.
//!
//! What comes before (hooks that refuse) and after (asking hooks and the host) is not here.

use std::path::Path;

use serde_json::Value;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::call::{Call, Facts, HookVerdict};
use crate::decision::{Danger, Decision, Question, Reason};
use crate::dirs::WorkDirs;
use crate::domain::host_of;
use crate::place::Judged;
use crate::protected;
use crate::ruleset::{Matcher, RuleRef, RuleSet, ToolName};
use crate::seen::Seen;
use crate::shell::Kind;
use crate::subject::Subject;
use crate::tools::ToolKind;

/// Everything that a step looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) rules: &'a RuleSet,
    pub(crate) mode: PermissionMode,
    pub(crate) dirs: &'a WorkDirs,
    pub(crate) facts: &'a Facts<'a>,
}

/// One step: an answer, or none.
type Step = fn(&Case<'_>, &Subject<'_>) -> Option<Decision>;

/// The steps after a call has been found well-formed. Those up to `a_hook_asks` hold in every mode.
const STEPS: [Step; 14] = [
    a_rule_denies,
    a_rule_asks,
    a_person_must_answer,
    removes_what_is_critical,
    a_hook_asks,
    everything_is_allowed,
    writes_what_is_protected,
    leaves_something_behind,
    changes_something_while_planning,
    a_hook_allows,
    a_rule_allows,
    runs_in_the_sandbox,
    edits_are_accepted,
    only_reads,
];

/// Decides on one call.
pub fn decide(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    facts: &Facts<'_>,
) -> Decision {
    judge(call, rules, mode, dirs, facts).decision
}

/// Decides on one call, and says which file the decision is about.
pub fn judge(
    call: &Call<'_>,
    rules: &RuleSet,
    mode: PermissionMode,
    dirs: &WorkDirs,
    facts: &Facts<'_>,
) -> Judged {
    let disk = Seen::new(facts.fs);
    let facts = &Facts { fs: &disk, ..facts.clone() };
    let case = Case { call, rules, mode, dirs, facts };
    if let Some(decision) = no_such_tool(&case).or_else(|| the_input_is_wrong(&case)) {
        return Judged { decision, place: None };
    }
    let subject = Subject::of(&case);
    let decision = match walk(&case, &subject) {
        Decision::Ask(question) => with_suggestions(*question, &case, &subject),
        decided => decided,
    };
    Judged { decision, place: subject.place() }
}

/// The steps, in order; then the question.
pub(crate) fn walk(case: &Case<'_>, subject: &Subject<'_>) -> Decision {
    let answer = STEPS.iter().find_map(|step| step(case, subject));
    answer.unwrap_or_else(|| nothing_allows_it(case, subject))
}

fn no_such_tool(case: &Case<'_>) -> Option<Decision> {
    let removed_by = case.names().find_map(|name| case.rules.removing(name)).cloned();
    let gone = removed_by.is_some() || !case.facts.tool.known;
    gone.then_some(Decision::Deny(Reason::UnknownTool { removed_by }))
}

fn the_input_is_wrong(case: &Case<'_>) -> Option<Decision> {
    wrong_input(case).map(|text| Decision::Deny(Reason::InvalidInput(text)))
}

fn a_rule_denies(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    if let Some(rule) = case.plain_rule(PermissionBehavior::Deny, subject) {
        return Some(Decision::Deny(Reason::Rule(rule.clone())));
    }
    subject.rule_hit(case, PermissionBehavior::Deny)
}

fn a_rule_asks(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let by_name = case.plain_rule(PermissionBehavior::Ask, subject);
    let asked = match by_name {
        Some(rule) => Decision::ask(Reason::Rule(rule.clone())),
        None => subject.rule_hit(case, PermissionBehavior::Ask)?,
    };
    Some(with_graver_reason(asked, case, subject))
}

/// A rule that asks must not hide why one would be asked without it.
fn with_graver_reason(asked: Decision, case: &Case<'_>, subject: &Subject<'_>) -> Decision {
    let steps: [Step; 4] =
        [removes_what_is_critical, a_hook_asks, writes_what_is_protected, leaves_something_behind];
    let in_force = if case.mode == PermissionMode::BypassPermissions { 2 } else { steps.len() };
    let graver = steps.iter().take(in_force).find_map(|step| step(case, subject));
    match (graver, &asked) {
        (Some(Decision::Ask(graver)), Decision::Ask(question)) => {
            let ask_rule = question.matched_ask_rule().cloned();
            Decision::Ask(Box::new(Question { ask_rule, ..*graver }))
        }
        _ => asked,
    }
}

fn a_person_must_answer(case: &Case<'_>, _: &Subject<'_>) -> Option<Decision> {
    let answered = case.facts.tool.kind == ToolKind::Interaction
        && matches!(case.facts.hook, Some(HookVerdict::Allow { rewrote_input: true, .. }));
    (case.facts.tool.requires_interaction && !answered).then(|| Decision::ask(Reason::Interaction))
}

fn removes_what_is_critical(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let path = subject.critical_removal(case)?;
    Some(asking(Danger::CriticalRemoval, false, Some(path)))
}

fn a_hook_asks(case: &Case<'_>, _: &Subject<'_>) -> Option<Decision> {
    match &case.facts.hook {
        Some(HookVerdict::Ask { source, text }) => {
            Some(Decision::ask(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(HookVerdict::Allow { .. }) | None => None,
    }
}

fn everything_is_allowed(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let allowed = match subject.is_cut_short() {
        // What was not followed may remove anything.
        true => Decision::ask(Reason::Unanalysable(Kind::TooDeep)),
        false => Decision::Allow(Reason::Mode(case.mode)),
    };
    (case.mode == PermissionMode::BypassPermissions).then_some(allowed)
}

fn writes_what_is_protected(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let (danger, path) = subject.dangerous_write(case)?;
    Some(asking(danger, danger == Danger::ProtectedPath, Some(path)))
}

fn leaves_something_behind(_: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    subject.runs_in_background().then(|| asking(Danger::Background, false, None))
}

fn changes_something_while_planning(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    if case.mode != PermissionMode::Plan {
        return None;
    }
    if subject.is_plan_file(case) {
        return Some(Decision::Allow(Reason::Mode(case.mode)));
    }
    let changes = match case.facts.tool.kind {
        ToolKind::Edit | ToolKind::Mcp => true,
        ToolKind::Shell => !subject.only_reads(case),
        ToolKind::Read
        | ToolKind::Search
        | ToolKind::WebFetch
        | ToolKind::WebSearch
        | ToolKind::Agent
        | ToolKind::Skill
        | ToolKind::Interaction
        | ToolKind::Free
        | ToolKind::Other => false,
    };
    changes.then(|| Decision::ask(Reason::Mode(case.mode)))
}

fn a_hook_allows(case: &Case<'_>, _: &Subject<'_>) -> Option<Decision> {
    match &case.facts.hook {
        Some(HookVerdict::Allow { source, text, .. }) => {
            Some(Decision::Allow(Reason::Hook { source: source.clone(), text: text.clone() }))
        }
        Some(HookVerdict::Ask { .. }) | None => None,
    }
}

fn a_rule_allows(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let whole = case.plain_rule(PermissionBehavior::Allow, subject);
    let rule = match whole {
        Some(_) if subject.hides_what_it_runs(case) => return None,
        Some(rule) => rule.clone(),
        None => subject.granting_rule(case)?,
    };
    Some(Decision::Allow(Reason::Rule(rule)))
}

fn runs_in_the_sandbox(case: &Case<'_>, _: &Subject<'_>) -> Option<Decision> {
    case.runs_confined_and_free().then_some(Decision::Allow(Reason::Sandbox))
}

fn edits_are_accepted(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    (case.mode == PermissionMode::AcceptEdits && subject.is_accepted_edit(case))
        .then_some(Decision::Allow(Reason::Mode(case.mode)))
}

fn only_reads(case: &Case<'_>, subject: &Subject<'_>) -> Option<Decision> {
    let reason = match case.facts.tool.kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Shell => {
            subject.is_covered(case).then_some(Reason::ReadOnly)
        }
        ToolKind::Agent | ToolKind::Free | ToolKind::Interaction => Some(Reason::NoApprovalNeeded),
        ToolKind::Skill => (!case.facts.tool.brings_grants).then_some(Reason::NoApprovalNeeded),
        ToolKind::Edit | ToolKind::WebFetch | ToolKind::WebSearch | ToolKind::Mcp | ToolKind::Other => None,
    };
    reason.map(Decision::Allow)
}

fn nothing_allows_it(case: &Case<'_>, subject: &Subject<'_>) -> Decision {
    let (reason, path) = subject.what_stands_in_the_way(case);
    match Decision::ask(reason) {
        Decision::Ask(question) => Decision::Ask(Box::new(Question { blocked_path: path, ..*question })),
        other => other,
    }
}

fn with_suggestions(mut question: Question, case: &Case<'_>, subject: &Subject<'_>) -> Decision {
    question.suggestions = crate::suggest::suggestions(&question, case, subject);
    Decision::Ask(Box::new(question))
}

fn asking(danger: Danger, approvable: bool, blocked_path: Option<String>) -> Decision {
    let reason = Reason::Safety { danger, approvable };
    Decision::Ask(Box::new(Question { reason, blocked_path, suggestions: Vec::new(), ask_rule: None }))
}

impl<'a> Case<'a> {
    /// The names that rules may know the tool by. Monitor is judged as Bash.
    pub(crate) fn names(&self) -> impl Iterator<Item = ToolName<'a>> {
        let own = self.facts.tool.name(self.call);
        let bash = ToolName { name: "Bash", server: None };
        let judged_as_bash = self.facts.tool.kind == ToolKind::Shell && own.name != "Bash";
        std::iter::once(own).chain(judged_as_bash.then_some(bash))
    }

    pub(crate) fn runs_confined_and_free(&self) -> bool {
        self.facts.tool.kind == ToolKind::Shell
            && self.mode != PermissionMode::Plan
            && self.facts.sandbox.is_some_and(|sandbox| sandbox.will_run_sandboxed && sandbox.auto_allow)
    }

    /// Whether writing a path needs a question: by its name, or because the session itself is configured by it.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        protected::is_protected(path) || protected::is_below_one_of(path, self.facts.protected)
    }

    /// A string of the input.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.call.input.get(field).and_then(Value::as_str)
    }

    /// The first rule with this behavior that matches without a look at commands or files.
    fn plain_rule(&self, behavior: PermissionBehavior, subject: &Subject<'_>) -> Option<&'a RuleRef> {
        let rules = self.rules;
        let skip_bare = behavior == PermissionBehavior::Ask && self.runs_confined_and_free();
        let mut about = self.names().flat_map(|name| rules.about(behavior, name));
        let rule = about.find(|rule| {
            let field = rule.parameter.as_ref().filter(|rule| self.facts.tool.fields.contains(&rule.field));
            if let Some(parameter) = field {
                return !parameter.is_primary() && parameter.matches(self.call.input);
            }
            match &rule.matcher {
                Matcher::Whole => !(skip_bare && rule.reference.rule.is_bare()),
                Matcher::Domain(pattern) => subject.host().is_some_and(|host| pattern.matches(host)),
                Matcher::Agent(kind) => self.agent_type() == Some(kind),
                Matcher::Skill(name) => self.skill() == Some(name),
                Matcher::Nothing | Matcher::Command(_) | Matcher::Read(_) | Matcher::Edit(_) => false,
            }
        });
        rule.map(|rule| &rule.reference)
    }

    fn agent_type(&self) -> Option<&str> {
        (self.facts.tool.kind == ToolKind::Agent)
            .then(|| self.text("subagent_type").unwrap_or("general-purpose"))
    }

    /// The skill that a call loads.
    pub(crate) fn skill(&self) -> Option<&str> {
        if self.facts.tool.kind != ToolKind::Skill {
            return None;
        }
        // The tool was once called with a whole line, `/name words`; models still write that.
        let named = self.text("skill").or_else(|| self.text("command"))?;
        named.trim().trim_start_matches('/').split_whitespace().next()
    }
}

/// What is wrong with the input, to be told to the model.
fn wrong_input(case: &Case<'_>) -> Option<String> {
    let kind = case.facts.tool.kind;
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
        ToolKind::WebFetch => host_of(text).err().map(|problem| format!("The address {problem}.")),
        ToolKind::Search => match case.text("pattern") {
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

/// Whether a rule that denies means the call, or may mean it: for whoever would rather look once too often. A command
/// that is not understood may be anything.
pub fn is_limited(call: &Call<'_>, rules: &RuleSet, dirs: &WorkDirs, facts: &Facts<'_>) -> bool {
    let disk = Seen::new(facts.fs);
    let facts = &Facts { fs: &disk, ..facts.clone() };
    let case = Case { call, rules, mode: PermissionMode::Default, dirs, facts };
    if case.names().any(|name| rules.removing(name).is_some()) {
        return true;
    }
    if wrong_input(&case).is_some() {
        return false;
    }
    let subject = Subject::of(&case);
    case.plain_rule(PermissionBehavior::Deny, &subject).is_some()
        || subject.rule_hit(&case, PermissionBehavior::Deny).is_some()
        || !subject.is_understood()
}

#[cfg(test)]
mod tests;
