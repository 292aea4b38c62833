//! What a decision is based on, and questions that several decision steps ask about it.

use crate::call::{Call, CallContext};
use crate::paths::protected;
use crate::rules::rule_set::{RuleMatcher, RuleSet, SourcedRule, ToolName};
use crate::tool_kind::ToolKind;
use crate::work_dirs::WorkDirs;
use serde_json::Value;
use std::path::Path;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

/// Everything that a decision step may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionInput<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) rules: &'a RuleSet,
    pub(crate) mode: PermissionMode,
    pub(crate) dirs: &'a WorkDirs,
    pub(crate) context: &'a CallContext<'a>,
}

impl<'a> DecisionInput<'a> {
    /// Tool names that rules may use for this call. Rules for Bash apply to Monitor as well.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = ToolName<'a>> {
        let name = self.context.tool.name(self.call);
        let bash = ToolName { name: "Bash", server: None };
        let follows_bash_rules = self.context.tool.kind == ToolKind::Shell && name.name != "Bash";
        std::iter::once(name).chain(follows_bash_rules.then_some(bash))
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

    /// The first rule with this behavior that matches without looking at commands or files. `host` is the host of a
    /// web request.
    pub(crate) fn find_direct_rule(
        &self,
        behavior: PermissionBehavior,
        host: Option<&str>,
    ) -> Option<&'a SourcedRule> {
        let rules = self.rules;
        let skip_bare = behavior == PermissionBehavior::Ask && self.is_auto_allowed_in_sandbox();
        let mut rules_for_tool = self.tool_names().flat_map(|name| rules.rules_for_tool(behavior, name));
        let rule = rules_for_tool.find(|rule| {
            let field = rule.parameter.as_ref().filter(|rule| self.context.tool.fields.contains(&rule.field));
            if let Some(parameter) = field {
                return !parameter.is_for_primary_field() && parameter.matches(self.call.input);
            }
            match &rule.matcher {
                RuleMatcher::AllCalls => !(skip_bare && rule.sourced.rule.is_bare()),
                RuleMatcher::Domain(pattern) => host.is_some_and(|host| pattern.matches(host)),
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
