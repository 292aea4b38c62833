//! Condition `if` of a hook: a permission rule that the tool call must match, such as `Bash(git *)` or `Edit(src/**)`.
//!
//! It is evaluated like a deny rule: any part of a compound command is enough, and a command that is not fully
//! understood matches. Running a guard once too often is harmless.

use std::path::Path;

use serde_json::Value;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{
    Call, CallContext, Rule, RuleSet, RuleSource, ToolKind, ToolProperties, WorkDirs, may_be_denied,
};
use whimbrel_wire::hook::{HookEvent, HookEventInput};
use whimbrel_wire::permission::PermissionBehavior;

use crate::workspace::Workspace;

/// Permission rule that a call must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookCondition(Rule);

impl HookCondition {
    /// Parses a condition. The error describes the invalid rule.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Rule::parse(text).map(Self).map_err(|error| error.to_string())
    }

    /// Returns true for events about tool calls, which alone can have a condition.
    pub(super) fn is_supported(event: HookEvent) -> bool {
        use HookEvent as On;
        matches!(
            event,
            On::PreToolUse
                | On::PostToolUse
                | On::PostToolUseFailure
                | On::PermissionRequest
                | On::PermissionDenied
        )
    }

    /// Returns true if the event's tool call matches; false for events without a call.
    pub(super) fn matches_event(&self, input: &HookEventInput, cwd: &Path, workspace: &Workspace) -> bool {
        use HookEventInput as On;
        match input {
            On::PreToolUse(on) => self.matches_call(&on.tool_name, &on.tool_input, cwd, workspace),
            On::PostToolUse(on) => self.matches_call(&on.tool_name, &on.tool_input, cwd, workspace),
            On::PostToolUseFailure(on) => self.matches_call(&on.tool_name, &on.tool_input, cwd, workspace),
            On::PermissionRequest(on) => self.matches_call(&on.tool_name, &on.tool_input, cwd, workspace),
            On::PermissionDenied(on) => self.matches_call(&on.tool_name, &on.tool_input, cwd, workspace),
            _ => false,
        }
    }

    fn matches_call(&self, tool: &str, input: &Value, cwd: &Path, workspace: &Workspace) -> bool {
        let (root, home) = (workspace.root(), workspace.home_dir().unwrap_or_default());
        let mut rules = RuleSet::new(&home, root);
        if rules.add_rule(self.0.clone(), PermissionBehavior::Deny, RuleSource::CliArg, &RealFs).is_err() {
            return true;
        }
        let fields: Vec<&str> =
            input.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect();
        let facts = ToolProperties::for_tool(tool, &fields);
        let call = Call { tool, input };
        // Rules about files also apply to shell commands; a condition applies only to the tool that it names.
        let is_named = rules.rules_for_tool(PermissionBehavior::Deny, facts.name(&call)).next().is_some();
        if facts.kind == ToolKind::Shell && !is_named {
            return false;
        }
        let facts = CallContext::new(cwd, &home, &RealFs, facts);
        let dirs = WorkDirs::new(root, &RealFs);
        may_be_denied(&call, &rules, &dirs, &facts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use serde_json::json;
    use whimbrel_wire::hook::{PreToolUse, Stop};

    use super::*;

    #[test]
    fn a_condition_is_a_rule_that_the_call_matches() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let workspace = Workspace::new(root.clone(), root.join("spill"), BTreeMap::new());
        let bash = |command: &str| ("Bash", json!({ "command": command }));
        let edit = |path: PathBuf| ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}));
        for (rule, (tool, input), expected) in [
            ("Bash", bash("ls"), true),
            ("Bash(git *)", bash("git push"), true),
            ("Bash(git *)", bash("ls && git push"), true),
            ("Bash(git *)", bash("ls"), false),
            ("Bash(git *)", bash("rm -rf x"), false),
            ("Bash(git *)", bash("echo $(git push)"), true),
            ("Bash(git *)", bash("eval \"$x\" ; ("), true),
            ("Bash(git push *)", bash("eval \"$x\" &"), true),
            ("Bash(git push *)", bash("eval \"$x\"; touch .git/y"), true),
            ("Bash(git push *)", bash("$CMD &"), true),
            ("Bash(git push *)", bash("make &"), false),
            ("Bash(git push *)", bash("rm -rf /"), false),
            ("Bash(git *)", edit(root.join("a.ts")), false),
            ("Edit(*.ts)", edit(root.join("a.ts")), true),
            ("Edit(*.ts)", edit(root.join("a.rs")), false),
            ("Edit(*.ts)", bash("rm a.ts"), false),
            ("Read", edit(root.join("a.ts")), false),
            ("mcp__db", ("mcp__db__get", json!({})), true),
            ("mcp__db", ("mcp__web__get", json!({})), false),
        ] {
            let hook_call =
                PreToolUse { tool_name: tool.into(), tool_input: input.clone(), ..PreToolUse::default() };
            let matched =
                HookCondition::parse(rule).unwrap().matches_event(&hook_call.into(), &root, &workspace);
            assert_eq!(matched, expected, "{rule}: {tool} {input}");
        }
        let condition = HookCondition::parse("Bash").unwrap();
        assert!(
            !condition.matches_event(&Stop::default().into(), &root, &workspace),
            "a stop is not a tool call"
        );
        assert!(HookCondition::parse("Bash(git").is_err());
    }
}
