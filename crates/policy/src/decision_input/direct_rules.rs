//! Matches a call with the rules that need no look at commands or files: `Tool`, `Agent(x)`, `Skill(x)`, `domain:` and
//! `field:value`.

use whimbrel_wire::permission::PermissionBehavior;

use super::DecisionInput;
use crate::rules::rule_set::{RuleMatcher, SourcedRule};
use crate::rules::tool_name::ToolName;
use crate::tool_kind::ToolKind;

impl<'a> DecisionInput<'a> {
    /// Tool names that rules may use for this call. Rules for Bash apply to Monitor as well.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = ToolName<'a>> {
        let name = self.context.tool.name(self.call);
        let bash = ToolName { name: "Bash", server: None };
        let follows_bash_rules = self.context.tool.kind == ToolKind::Shell && name.name != "Bash";
        std::iter::once(name).chain(follows_bash_rules.then_some(bash))
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
