//! Which servers may start. Pure.
//!
//! Allow and deny lists of the settings: `deniedMcpServers` wins; if `allowedMcpServers` is present, only servers that
//! it matches may start. Servers in the host's process are exempt. Servers of a project's `.mcp.json` also need the
//! user's approval.

use serde_json::{Map, Value};
use whimbrel_wire::options::McpServerConfig;

/// Allow and deny lists. By default everything is allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPolicy {
    denied: Vec<ServerPattern>,
    allowed: Option<Vec<ServerPattern>>,
}

/// Server pattern of a list entry.
#[derive(Debug, Clone, PartialEq)]
enum ServerPattern {
    Name(String),
    /// Program and all arguments.
    Command(Vec<String>),
    /// URL pattern; `*` matches anything.
    Url(String),
    /// Entry of an unknown form.
    Unknown,
}

impl ServerPolicy {
    pub fn from_settings(values: &Map<String, Value>) -> Self {
        let patterns = |key: &str| {
            values.get(key)?.as_array().map(|list| list.iter().map(ServerPattern::parse).collect())
        };
        Self {
            denied: patterns("deniedMcpServers").unwrap_or_default(),
            allowed: patterns("allowedMcpServers"),
        }
    }

    /// Why a server may not start; `None` if it may.
    pub fn denial_reason(&self, name: &str, config: &McpServerConfig) -> Option<String> {
        if matches!(config, McpServerConfig::Sdk(_)) {
            return None;
        }
        // A deny entry that is not understood denies every server.
        let denied =
            |pattern: &ServerPattern| *pattern == ServerPattern::Unknown || pattern.matches(name, config);
        if self.denied.iter().any(denied) {
            return Some("it is denied by the settings (deniedMcpServers).".into());
        }
        let allowed =
            self.allowed.as_ref().is_none_or(|list| list.iter().any(|pattern| pattern.matches(name, config)));
        (!allowed).then(|| "it is not among the allowed servers (allowedMcpServers).".into())
    }
}

/// The user's approval of project servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectApproval {
    /// Approves every server that is not disabled.
    pub all: bool,
    pub enabled: Vec<String>,
    /// Servers that must not start; wins over the other fields.
    pub disabled: Vec<String>,
}

impl ProjectApproval {
    /// Returns true if the server may be started.
    pub fn approves(&self, name: &str) -> bool {
        let is_listed = |names: &[String]| names.iter().any(|other| other == name);
        !is_listed(&self.disabled) && (self.all || is_listed(&self.enabled))
    }
}

impl ServerPattern {
    fn parse(entry: &Value) -> Self {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let words = |key: &str| {
            let words = entry.get(key)?.as_array()?;
            words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        let command = || words("serverCommand").map(Self::Command);
        let url = || text("serverUrl").map(Self::Url);
        text("serverName").map(Self::Name).or_else(command).or_else(url).unwrap_or(Self::Unknown)
    }

    fn matches(&self, name: &str, config: &McpServerConfig) -> bool {
        match (self, config) {
            (Self::Name(pattern_name), _) => pattern_name == name,
            (Self::Command(words), McpServerConfig::Stdio(server)) => {
                words.iter().eq(std::iter::once(&server.command).chain(&server.args))
            }
            (Self::Url(pattern), McpServerConfig::Sse(server) | McpServerConfig::Http(server)) => {
                matches_wildcard(pattern, &server.url)
            }
            _ => false,
        }
    }
}

/// Matches a pattern in which `*` stands for any text.
fn matches_wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(index) = rest.find(part) else { return false };
        rest = &rest[index + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_decide_which_servers_start() {
        let program = json!({"command": "npx", "args": ["-y", "x"]});
        let remote = json!({"type": "http", "url": "https://a.example.com/mcp"});
        let hosted = json!({"type": "sdk", "name": "x"});
        let by_name = |name: &str| json!([{"serverName": name}]);
        let rows = [
            ("no lists", json!({}), &program, true),
            ("another is denied", json!({"deniedMcpServers": by_name("y")}), &program, true),
            ("denied by name", json!({"deniedMcpServers": by_name("x")}), &program, false),
            ("unknown deny entry", json!({"deniedMcpServers": [{"color": "red"}]}), &program, false),
            ("others are allowed", json!({"allowedMcpServers": by_name("y")}), &program, false),
            ("empty allow list", json!({"allowedMcpServers": []}), &program, false),
            (
                "allowed by command",
                json!({"allowedMcpServers": [{"serverCommand": ["npx", "-y", "x"]}]}),
                &program,
                true,
            ),
            (
                "with other arguments",
                json!({"allowedMcpServers": [{"serverCommand": ["npx"]}]}),
                &program,
                false,
            ),
            (
                "allowed by URL",
                json!({"allowedMcpServers": [{"serverUrl": "https://*.example.com/*"}]}),
                &remote,
                true,
            ),
            (
                "allowed by another URL",
                json!({"allowedMcpServers": [{"serverUrl": "https://*.example.org/*"}]}),
                &remote,
                false,
            ),
            (
                "denied and allowed",
                json!({"allowedMcpServers": by_name("x"), "deniedMcpServers": by_name("x")}),
                &program,
                false,
            ),
            ("in the host's process", json!({"allowedMcpServers": []}), &hosted, true),
        ];
        for (name, settings, config, expected) in rows {
            let policy = ServerPolicy::from_settings(settings.as_object().unwrap());
            let config = serde_json::from_value(config.clone()).unwrap();
            assert_eq!(policy.denial_reason("x", &config).is_none(), expected, "{name}");
        }
    }

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
        ] {
            assert_eq!(matches_wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }
}
