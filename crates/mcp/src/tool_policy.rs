//! Per-tool policy of a server's entry. Pure.
//!
//! An entry can only restrict: what it allows is still decided by the permission rules. An unknown value requires
//! permission.

use serde_json::Value;
use whimbrel_wire::options::McpServerConfig;

/// Policy of a tool, strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ToolPolicy {
    /// The permission rules decide.
    Default,
    /// Every call needs an answer of the user, whatever the rules say.
    Ask,
    /// The tool is hidden.
    Deny,
}

/// Policy of a tool, by its name at the server.
pub(super) fn tool_policy(config: &McpServerConfig, tool: &str) -> ToolPolicy {
    let tools = match config {
        McpServerConfig::Stdio(_) => None,
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.tools.as_deref(),
        McpServerConfig::Sdk(server) => server.tools.as_deref(),
    };
    let named = tools.unwrap_or_default().iter().filter(|entry| entry["name"] == tool);
    named.map(entry_policy).max().unwrap_or(ToolPolicy::Default)
}

fn entry_policy(entry: &Value) -> ToolPolicy {
    let word = |key: &str| {
        entry.get(key).filter(|word| !word.is_null()).map(|word| word.as_str().unwrap_or_default())
    };
    let policy = match word("permission_policy") {
        None | Some("always_allow") => ToolPolicy::Default,
        Some("always_deny") => ToolPolicy::Deny,
        Some(_) => ToolPolicy::Ask,
    };
    let limit = match word("org_max_permission") {
        None | Some("allow") => ToolPolicy::Default,
        Some("blocked") => ToolPolicy::Deny,
        Some(_) => ToolPolicy::Ask,
    };
    policy.max(limit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_restricts_and_never_allows() {
        let rows = [
            ("no entry", json!([]), ToolPolicy::Default),
            (
                "entry of another tool",
                json!([{"name": "b", "permission_policy": "always_deny"}]),
                ToolPolicy::Default,
            ),
            ("allowed", json!([{"name": "a", "permission_policy": "always_allow"}]), ToolPolicy::Default),
            ("asked", json!([{"name": "a", "permission_policy": "always_ask"}]), ToolPolicy::Ask),
            ("denied", json!([{"name": "a", "permission_policy": "always_deny"}]), ToolPolicy::Deny),
            ("an unknown value", json!([{"name": "a", "permission_policy": "sometimes"}]), ToolPolicy::Ask),
            ("not a string", json!([{"name": "a", "permission_policy": 5}]), ToolPolicy::Ask),
            (
                "capped",
                json!([{"name": "a", "permission_policy": "always_allow", "org_max_permission": "ask"}]),
                ToolPolicy::Ask,
            ),
            (
                "blocked",
                json!([{"name": "a", "permission_policy": "always_ask", "org_max_permission": "blocked"}]),
                ToolPolicy::Deny,
            ),
            (
                "two entries",
                json!([{"name": "a", "permission_policy": "always_deny"}, {"name": "a"}]),
                ToolPolicy::Deny,
            ),
        ];
        for (name, tools, expected) in rows {
            for kind in ["http", "sse", "sdk"] {
                let entry = json!({"type": kind, "url": "https://x.test", "name": "x", "tools": tools});
                assert_eq!(
                    tool_policy(&serde_json::from_value(entry).unwrap(), "a"),
                    expected,
                    "{name} ({kind})"
                );
            }
        }
    }
}
