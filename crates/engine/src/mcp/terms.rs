//! What an entry says about single tools of its server. Pure.
//!
//! An entry can only hold back: what it allows is still judged by the rules. A word that is not known holds back too.

use serde_json::Value;
use whimbrel_wire::options::McpServerConfig;

/// On which terms a tool is offered, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    /// As the rules say.
    Usual,
    /// Somebody is asked before each call, whatever the rules say.
    Asked,
    /// Not at all.
    Denied,
}

/// The terms of a tool, by its name at the server.
pub(super) fn terms(config: &McpServerConfig, tool: &str) -> Terms {
    let tools = match config {
        McpServerConfig::Stdio(_) => None,
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.tools.as_deref(),
        McpServerConfig::Sdk(server) => server.tools.as_deref(),
    };
    let named = tools.unwrap_or_default().iter().filter(|entry| entry["name"] == tool);
    named.map(said).max().unwrap_or(Terms::Usual)
}

fn said(entry: &Value) -> Terms {
    let word = |key: &str| {
        entry.get(key).filter(|word| !word.is_null()).map(|word| word.as_str().unwrap_or_default())
    };
    let policy = match word("permission_policy") {
        None | Some("always_allow") => Terms::Usual,
        Some("always_deny") => Terms::Denied,
        Some(_) => Terms::Asked,
    };
    let most = match word("org_max_permission") {
        None | Some("allow") => Terms::Usual,
        Some("blocked") => Terms::Denied,
        Some(_) => Terms::Asked,
    };
    policy.max(most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_holds_back_and_never_grants() {
        let rows = [
            ("nothing is said", json!([]), Terms::Usual),
            ("about another", json!([{"name": "b", "permission_policy": "always_deny"}]), Terms::Usual),
            ("allowed", json!([{"name": "a", "permission_policy": "always_allow"}]), Terms::Usual),
            ("asked", json!([{"name": "a", "permission_policy": "always_ask"}]), Terms::Asked),
            ("denied", json!([{"name": "a", "permission_policy": "always_deny"}]), Terms::Denied),
            ("a new word", json!([{"name": "a", "permission_policy": "sometimes"}]), Terms::Asked),
            ("no word", json!([{"name": "a", "permission_policy": 5}]), Terms::Asked),
            (
                "capped",
                json!([{"name": "a", "permission_policy": "always_allow", "org_max_permission": "ask"}]),
                Terms::Asked,
            ),
            (
                "blocked",
                json!([{"name": "a", "permission_policy": "always_ask", "org_max_permission": "blocked"}]),
                Terms::Denied,
            ),
            (
                "said twice",
                json!([{"name": "a", "permission_policy": "always_deny"}, {"name": "a"}]),
                Terms::Denied,
            ),
        ];
        for (name, tools, expected) in rows {
            for kind in ["http", "sse", "sdk"] {
                let entry = json!({"type": kind, "url": "https://x.test", "name": "x", "tools": tools});
                assert_eq!(terms(&serde_json::from_value(entry).unwrap(), "a"), expected, "{name} ({kind})");
            }
        }
    }
}
