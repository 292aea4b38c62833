//! Decides which allow rules are too broad to be accepted: those with an empty specifier, and those with a `*` in the
//! tool name that may cover more than the tools of one MCP server.

use crate::rules::rule::{Rule, RuleError};

/// Rejects an allow rule that is too broad.
pub(super) fn reject_broad_allow_rule(rule: &Rule) -> Result<(), RuleError> {
    if rule.content.as_deref().is_some_and(|content| matches!(content.trim(), "" | ":*")) {
        return Err(RuleError::EmptySpecifier(rule.to_string()));
    }
    if !rule.tool.contains('*') {
        return Ok(());
    }
    let named_server = rule.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match named_server {
        Some((server, _)) if !server.is_empty() && !server.contains('*') => Ok(()),
        _ => Err(RuleError::WildcardAllow(rule.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broad_allow_rules_are_rejected() {
        let empty = RuleError::EmptySpecifier as fn(String) -> RuleError;
        let wildcard = RuleError::WildcardAllow as fn(String) -> RuleError;
        let rows = [
            ("Bash", None),
            ("Bash(ls:*)", None),
            ("mcp__server__*", None),
            ("mcp__server__get*", None),
            ("Bash()", Some(empty)),
            ("Bash( )", Some(empty)),
            ("Bash(:*)", Some(empty)),
            ("*", Some(wildcard)),
            ("Ba*", Some(wildcard)),
            ("mcp__*", Some(wildcard)),
            ("mcp__ser*__get", Some(wildcard)),
        ];
        for (text, expected) in rows {
            let rule = Rule::parse(text).unwrap();
            let expected = expected.map_or(Ok(()), |error| Err(error(rule.to_string())));
            assert_eq!(reject_broad_allow_rule(&rule), expected, "{text}");
        }
    }
}
