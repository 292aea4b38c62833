//! Servers in the lines of the official program, which other programs parse. Pure. Of variables and headers only the
//! names are shown, and of a failure only that it happened: its text may have several lines.

use serde_json::Value;
use whimbrel_engine::setup::mcp_config_files::{ConfigFileEntry, ConfigScope};
use whimbrel_wire::control::{McpConnection, McpServerStatus};

use super::render::{describe_target, to_one_line, unapproved_entries};

/// First line of a list, printed before the servers are connected.
pub(super) const HEADING: &str = "Checking MCP server health...\n\n";

/// Shown for a server of the project that no one has approved.
const UNAPPROVED: &str = "⏸ Pending approval";

/// Lists the servers of a directory, one line each: those that a session would start, and those of the project that need
/// approval.
pub(super) fn render_list(statuses: &[McpServerStatus], entries: &[ConfigFileEntry]) -> String {
    let mut lines: Vec<String> = statuses
        .iter()
        .map(|server| {
            let entry = entries.iter().find(|entry| entry.name == server.name).map(|entry| &entry.entry);
            let config = server.config.as_ref().or(entry);
            render_line(&server.name, config.unwrap_or(&Value::Null), describe_status(server))
        })
        .collect();
    lines.extend(
        unapproved_entries(statuses, entries).map(|entry| render_line(&entry.name, &entry.entry, UNAPPROVED)),
    );
    if lines.is_empty() {
        return "No MCP servers configured. Add one: whimbrel mcp add NAME -- COMMAND\n".into();
    }
    lines.sort();
    lines.concat()
}

fn render_line(name: &str, config: &Value, status: &str) -> String {
    let transport = match transport(config) {
        "http" => " (HTTP)",
        "sse" => " (SSE)",
        _ => "",
    };
    to_one_line(&format!("{name}: {}{transport} - {status}", describe_target(config))) + "\n"
}

/// Shows one server.
pub(super) fn render_server(entry: &ConfigFileEntry, status: Option<&McpServerStatus>) -> String {
    let ConfigFileEntry { name, scope, entry: config, .. } = entry;
    let text = |key: &str| config.get(key).and_then(Value::as_str);
    let mut lines = vec![
        format!("{name}:"),
        format!("  Scope: {}", describe_scope(*scope)),
        format!("  Status: {}", status.map_or(UNAPPROVED, describe_status)),
        format!("  Type: {}", transport(config)),
    ];
    match text("command") {
        Some(command) => {
            let args = config.get("args").and_then(Value::as_array).into_iter().flatten();
            let args: Vec<&str> = args.filter_map(Value::as_str).collect();
            lines.push(format!("  Command: {command}"));
            lines.push(format!("  Args: {}", args.join(" ")));
            lines.push("  Environment:".into());
            lines.extend(field_names(config, "env").map(|name| format!("    {name}=***")));
        }
        None => {
            lines.push(format!("  URL: {}", text("url").unwrap_or_default()));
            let mut headers = field_names(config, "headers").peekable();
            if headers.peek().is_some() {
                lines.push("  Headers:".into());
            }
            lines.extend(headers.map(|name| format!("    {name}: ***")));
        }
    }
    lines.push(String::new());
    lines.push(format!("To remove this server: whimbrel mcp remove {name} -s {scope}"));
    lines.iter().map(|line| to_one_line(line.trim_end()) + "\n").collect()
}

fn field_names<'a>(config: &'a Value, key: &str) -> impl Iterator<Item = &'a String> {
    config.get(key).and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys())
}

/// Returns the transport of an entry: `stdio`, `http` or `sse`.
fn transport(config: &Value) -> &str {
    match config.get("type").and_then(Value::as_str) {
        Some(transport) => transport,
        None if config.get("url").is_some() => "http",
        None => "stdio",
    }
}

fn describe_status(server: &McpServerStatus) -> &'static str {
    match server.status {
        McpConnection::Connected => "✓ Connected",
        McpConnection::NeedsAuth => "⚠ Needs authentication",
        McpConnection::Disabled => "⏸ Disabled",
        _ => "✗ Failed to connect",
    }
}

fn describe_scope(scope: ConfigScope) -> &'static str {
    match scope {
        ConfigScope::Local => "Local config (only for you, in this directory)",
        ConfigScope::Project => "Project config (for everyone, in .mcp.json)",
        ConfigScope::User => "User config (for you, in all directories)",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn entry(name: &str, scope: ConfigScope, entry: Value) -> ConfigFileEntry {
        ConfigFileEntry { name: name.into(), scope, file: PathBuf::from("/f"), entry }
    }

    fn status(name: &str, status: &str, config: &Value) -> McpServerStatus {
        let fields =
            json!({"name": name, "status": status, "error": "line 1\n  at line 2", "config": config});
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn list_has_one_line_for_each_server() {
        let command = json!({"type": "stdio", "command": "npx", "args": ["-y", "x"]});
        let statuses = [
            status("files", "connected", &command),
            status("issues", "failed", &json!({"type": "http", "url": "https://x.test/mcp"})),
            status("older", "needs-auth", &json!({"type": "sse", "url": "https://x.test/sse"})),
        ];
        let entries = [entry("theirs", ConfigScope::Project, json!({"command": "sh"}))];
        assert_eq!(
            render_list(&statuses, &entries),
            "files: npx -y x - ✓ Connected\n\
             issues: https://x.test/mcp (HTTP) - ✗ Failed to connect\n\
             older: https://x.test/sse (SSE) - ⚠ Needs authentication\n\
             theirs: sh - ⏸ Pending approval\n"
        );
        assert!(render_list(&[], &[]).starts_with("No MCP servers configured."));
    }

    #[test]
    fn server_is_shown_without_secrets() {
        let program = json!({"command": "npx", "args": ["-y", "x"], "env": {"KEY": "secret"}});
        assert_eq!(
            render_server(
                &entry("files", ConfigScope::Local, program.clone()),
                Some(&status("files", "connected", &program))
            ),
            "files:\n  Scope: Local config (only for you, in this directory)\n  Status: ✓ Connected\n  \
             Type: stdio\n  Command: npx\n  Args: -y x\n  Environment:\n    KEY=***\n\n\
             To remove this server: whimbrel mcp remove files -s local\n"
        );
        let remote = json!({"type": "sse", "url": "https://x.test", "headers": {"Authorization": "secret"}});
        assert_eq!(
            render_server(&entry("far", ConfigScope::Project, remote), None),
            "far:\n  Scope: Project config (for everyone, in .mcp.json)\n  Status: ⏸ Pending approval\n  \
             Type: sse\n  URL: https://x.test\n  Headers:\n    Authorization: ***\n\n\
             To remove this server: whimbrel mcp remove far -s project\n"
        );
    }
}
