//! Tool names in rules: old names, names with `*`, and the tools of an MCP server that `mcp__server` covers.

use whimbrel_wire::permission::PermissionBehavior;
use whimbrel_wire::tool_names::RENAMED_TOOLS;

use crate::rules::rule::RuleError;

/// Tool name as rules match it.
#[derive(Debug, Clone, Copy)]
pub struct ToolName<'a> {
    /// Current name.
    pub name: &'a str,
    /// MCP server of the tool.
    pub server: Option<&'a str>,
}

/// Old tool names that only rules still use, with the tools that took over.
const RULE_ALIASES: &[(&str, &str)] = &[
    ("AgentOutputTool", "TaskOutput"),
    ("ListMcpResources", "ListMcpResourcesTool"),
    ("MultiEdit", "Edit"),
    ("ReadMcpResource", "ReadMcpResourceTool"),
    ("SlashCommand", "Skill"),
];

/// Further tools of the official engine, former ones included. Most do not exist in this engine.
const OFFICIAL_TOOLS: &[&str] = &[
    "Artifact",
    "Brief",
    "ClaudeDesign",
    "Config",
    "LS",
    "LSP",
    "NotebookRead",
    "OfferChromeSetup",
    "PowerShell",
    "Projects",
    "ProposeGoal",
    "PushNotification",
    "ReadMcpResourceDir",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "ReadNotifications",
    "RefreshMcpTools",
    "RemoteTrigger",
    "ReportFindings",
    "SendFeedback",
    "SendUserFile",
    "SendUserMessage",
    "ShowOnboardingRolePicker",
    "SubagentHandback",
    "SubscribeMcpResource",
    "SubscribePolling",
    "UnsubscribeMcpResource",
    "UnsubscribePolling",
    "WaitForMcpServers",
    "Workflow",
];

/// Resolves an old tool name to the current one.
pub(super) fn resolve_alias(name: &str) -> &str {
    RENAMED_TOOLS.iter().chain(RULE_ALIASES).find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// Returns true for a further tool of the official engine. Hosts deny such tools by habit, so a rule about a missing one
/// needs no warning.
pub(super) fn is_official_tool(name: &str) -> bool {
    OFFICIAL_TOOLS.contains(&name)
}

/// Checks the tool name of a rule.
pub(super) fn check_name(name: &str, rule: &str) -> Result<(), RuleError> {
    if name.is_empty() {
        return Err(RuleError::MissingName(rule.to_owned()));
    }
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '*');
    if let Some(character) = name.chars().find(|c| !is_name_char(*c)) {
        return Err(RuleError::InvalidName { rule: rule.to_owned(), character });
    }
    match name.strip_prefix("mcp__") {
        Some(rest) if rest.is_empty() || rest.starts_with("__") || rest.ends_with("__") => {
            Err(RuleError::IncompleteMcpName(rule.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns true if the name in a rule matches this tool. The server comes from the tool, because a name alone does
/// not show where the server's part ends. For an ambiguous name, an allow rule covers only the
/// narrower meaning; deny and ask rules cover both.
pub(super) fn names_tool(pattern: &str, behavior: PermissionBehavior, tool: ToolName<'_>) -> bool {
    if pattern == tool.name {
        return true;
    }
    let is_allow = behavior == PermissionBehavior::Allow;
    let (Some(server), Some(named)) = (tool.server, pattern.strip_prefix("mcp__")) else {
        return pattern.contains('*') && name_matches(pattern, tool.name);
    };
    if !named.contains('*') {
        // `mcp__a__b` is the tool `b` of server `a` rather than a server `a__b`.
        return server == named && !(is_allow && named.contains("__"));
    }
    match named.strip_suffix("__*") {
        Some(whole) if !whole.contains('*') => server == whole,
        _ if is_allow => {
            named.split_once("__").is_some_and(|(first, _)| first == server)
                && name_matches(pattern, tool.name)
        }
        _ => name_matches(pattern, tool.name),
    }
}

/// Matches a whole name against a pattern with `*`.
pub(super) fn name_matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            match rest.find(between) {
                Some(at) => rest = rest.get(at + between.len()..).unwrap_or_default(),
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_patterns_with_star() {
        let rows = [
            ("Ba*", "Bash", true),
            ("*", "Bash", true),
            ("B*h", "Bash", true),
            ("B*a*h", "Bash", true),
            ("*sh", "Bash", true),
            ("Bash", "Bash", true),
            ("bash", "Bash", false),
            ("Ba", "Bash", false),
            ("Bash*h", "Bash", false),
            ("mcp__*", "mcp__a__b", true),
            ("*a*a*", "Bash", false),
        ];
        for (pattern, name, expected) in rows {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
