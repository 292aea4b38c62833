//! MCP servers as text. Pure. Secrets are not shown: of variables and headers only the names.

use serde_json::{Value, json};
use whimbrel_engine::setup::mcp_config_files::{ConfigFileEntry, ConfigScope};
use whimbrel_wire::control::{McpConnection, McpServerStatus};

use crate::terminal_ui::{LineBreaks, sanitize};

/// Lists the servers of a directory: those that a session would start, and those of the project that need approval.
pub(super) fn render_list(statuses: &[McpServerStatus], entries: &[ConfigFileEntry]) -> String {
    let mut rows: Vec<[String; 4]> = statuses
        .iter()
        .map(|server| {
            let config = server.config.clone().unwrap_or_default();
            [
                server.name.clone(),
                server.scope.clone().unwrap_or_default(),
                describe_status(server),
                describe_target(&config),
            ]
        })
        .collect();
    rows.extend(unapproved_entries(statuses, entries).map(|entry| {
        let state = "not approved".to_owned();
        [entry.name.clone(), entry.scope.to_string(), state, describe_target(&entry.entry)]
    }));
    if rows.is_empty() {
        return "There are no MCP servers. Add one: whimbrel mcp add NAME -- COMMAND\n".into();
    }
    rows.sort();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, scopes) = (wide(0), wide(1));
    let line = |[name, scope, state, target]: &[String; 4]| {
        let line = format!("{name:<names$}  {scope:<scopes$}  {state}  {target}");
        to_one_line(line.trim_end()) + "\n"
    };
    rows.iter().map(line).collect()
}

/// Same as JSON.
pub(super) fn render_list_json(
    statuses: &[McpServerStatus],
    entries: &[ConfigFileEntry],
) -> Result<String, String> {
    let mut all = Vec::new();
    for server in statuses {
        all.push(serde_json::to_value(server).map_err(|error| error.to_string())?);
    }
    all.extend(unapproved_entries(statuses, entries).map(
        |entry| json!({"name": entry.name, "scope": entry.scope.to_string(), "status": "not-approved"}),
    ));
    serde_json::to_string_pretty(&all).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Returns the entries of the project that a session would not start.
pub(super) fn unapproved_entries<'a>(
    statuses: &'a [McpServerStatus],
    entries: &'a [ConfigFileEntry],
) -> impl Iterator<Item = &'a ConfigFileEntry> {
    let known = |entry: &ConfigFileEntry| statuses.iter().any(|server| server.name == entry.name);
    let first =
        |entry: &&ConfigFileEntry| entries.iter().find(|other| other.name == entry.name) == Some(*entry);
    entries.iter().filter(move |entry| entry.scope == ConfigScope::Project && !known(entry) && first(entry))
}

/// Shows the entries of one name, the effective one first.
pub(super) fn render_entries(entries: &[ConfigFileEntry]) -> String {
    let mut page = String::new();
    for (number, ConfigFileEntry { name, scope, file, entry }) in entries.iter().enumerate() {
        let counts = if number == 0 { "" } else { ", overridden by the entry above" };
        page += &to_one_line(&format!("{name} ({scope}, {}){counts}", file.display()));
        page += "\n";
        for (key, value) in entry.as_object().into_iter().flatten() {
            let shown = match (key.as_str(), value) {
                ("env" | "headers", Value::Object(fields)) => {
                    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                    format!("{} (values are not shown)", names.join(", "))
                }
                (_, Value::String(text)) => text.clone(),
                (_, other) => other.to_string(),
            };
            page += &to_one_line(&format!("  {key}: {shown}"));
            page += "\n";
        }
    }
    page
}

/// Shows the result of a connection test.
pub(super) fn render_test(server: &McpServerStatus) -> Result<String, String> {
    if server.status != McpConnection::Connected {
        return Err(to_one_line(&format!("MCP server {}: {}", server.name, describe_status(server))));
    }
    let mut page = match &server.server_info {
        Some(info) => format!("{} answers: {} {}, ", server.name, info.name, info.version),
        None => format!("{} answers: ", server.name),
    };
    page += &format!("{}\n", describe_tool_count(server));
    for tool in server.tools.iter().flatten() {
        let about = tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        page += &format!("  {}  {about}", tool.name);
        page = page.trim_end().to_owned() + "\n";
    }
    Ok(page.lines().map(|line| to_one_line(line) + "\n").collect())
}

/// Describes the status of a server.
fn describe_status(server: &McpServerStatus) -> String {
    match (&server.status, &server.error) {
        (McpConnection::Connected, _) => format!("connected, {}", describe_tool_count(server)),
        (McpConnection::NeedsAuth, _) => format!("requires a login: whimbrel mcp login {}", server.name),
        (McpConnection::Disabled, _) => "disabled".into(),
        (_, Some(error)) => format!("failed: {error}"),
        (_, None) => "no answer in time".into(),
    }
}

fn describe_tool_count(server: &McpServerStatus) -> String {
    match server.tools.as_ref().map_or(0, Vec::len) {
        1 => "1 tool".into(),
        number => format!("{number} tools"),
    }
}

/// Returns the command or the URL of an entry.
pub(super) fn describe_target(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(command) = text("command") else { return text("url").unwrap_or_default() };
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    args.fold(command, |line, arg| format!("{line} {arg}"))
}

/// Removes what could control the terminal.
pub(super) fn to_one_line(text: &str) -> String {
    sanitize(text, LineBreaks::Replace)
}
