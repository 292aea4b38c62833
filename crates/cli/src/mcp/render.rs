//! MCP servers as text. Pure. Secrets are not shown: of variables and headers only the names.

use serde_json::{Value, json};
use whimbrel_engine::mcp::{ConfigFileEntry, ConfigScope};
use whimbrel_wire::control::{McpConnection, McpServerStatus};

/// Lists the servers of a directory: those that a session would start, and those of the project that need approval.
pub(super) fn render_list(states: &[McpServerStatus], kept: &[ConfigFileEntry]) -> String {
    let mut rows: Vec<[String; 4]> = states
        .iter()
        .map(|state| {
            let config = state.config.clone().unwrap_or_default();
            [
                state.name.clone(),
                state.scope.clone().unwrap_or_default(),
                describe_status(state),
                describe_target(&config),
            ]
        })
        .collect();
    rows.extend(unapproved_entries(states, kept).map(|entry| {
        let state = "not approved".to_owned();
        [entry.name.clone(), entry.scope.to_string(), state, describe_target(&entry.entry)]
    }));
    if rows.is_empty() {
        return "There are no MCP servers here. Add one: whimbrel mcp add NAME -- COMMAND\n".into();
    }
    rows.sort();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, scopes) = (wide(0), wide(1));
    let line = |[name, scope, state, reached]: &[String; 4]| {
        let line = format!("{name:<names$}  {scope:<scopes$}  {state}  {reached}");
        replace_control_chars(line.trim_end()) + "\n"
    };
    rows.iter().map(line).collect()
}

/// Same as JSON.
pub(super) fn render_list_json(
    states: &[McpServerStatus],
    kept: &[ConfigFileEntry],
) -> Result<String, String> {
    let mut all = Vec::new();
    for state in states {
        all.push(serde_json::to_value(state).map_err(|error| error.to_string())?);
    }
    all.extend(unapproved_entries(states, kept).map(
        |entry| json!({"name": entry.name, "scope": entry.scope.to_string(), "status": "not-approved"}),
    ));
    serde_json::to_string_pretty(&all).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Returns the entries of the project that a session would not start.
fn unapproved_entries<'a>(
    states: &'a [McpServerStatus],
    kept: &'a [ConfigFileEntry],
) -> impl Iterator<Item = &'a ConfigFileEntry> {
    let known = |entry: &ConfigFileEntry| states.iter().any(|state| state.name == entry.name);
    let first = |entry: &&ConfigFileEntry| kept.iter().find(|other| other.name == entry.name) == Some(*entry);
    kept.iter().filter(move |entry| entry.scope == ConfigScope::Project && !known(entry) && first(entry))
}

/// Shows the entries of one name, the effective one first.
pub(super) fn render_entries(entries: &[ConfigFileEntry]) -> String {
    let mut page = String::new();
    for (number, ConfigFileEntry { name, scope, file, entry }) in entries.iter().enumerate() {
        let counts = if number == 0 { "" } else { ", but the one above counts" };
        page += &replace_control_chars(&format!("{name} ({scope}, {}){counts}", file.display()));
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
            page += &replace_control_chars(&format!("  {key}: {shown}"));
            page += "\n";
        }
    }
    page
}

/// Shows the result of a connection test.
pub(super) fn render_test(state: &McpServerStatus) -> Result<String, String> {
    if state.status != McpConnection::Connected {
        return Err(replace_control_chars(&format!("MCP server {}: {}", state.name, describe_status(state))));
    }
    let mut page = match &state.server_info {
        Some(info) => format!("{} answers: {} {}, ", state.name, info.name, info.version),
        None => format!("{} answers: ", state.name),
    };
    page += &format!("{}\n", describe_tool_count(state));
    for tool in state.tools.iter().flatten() {
        let about = tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        page += &format!("  {}  {about}", tool.name);
        page = page.trim_end().to_owned() + "\n";
    }
    Ok(page.lines().map(|line| replace_control_chars(line) + "\n").collect())
}

/// Describes the status of a server.
fn describe_status(state: &McpServerStatus) -> String {
    match (&state.status, &state.error) {
        (McpConnection::Connected, _) => format!("connected, {}", describe_tool_count(state)),
        (McpConnection::NeedsAuth, _) => format!("wants a login: whimbrel mcp login {}", state.name),
        (McpConnection::Disabled, _) => "switched off".into(),
        (_, Some(error)) => format!("failed: {error}"),
        (_, None) => "has not answered in time".into(),
    }
}

fn describe_tool_count(state: &McpServerStatus) -> String {
    match state.tools.as_ref().map_or(0, Vec::len) {
        1 => "1 tool".into(),
        number => format!("{number} tools"),
    }
}

/// Returns the command or the URL of an entry.
fn describe_target(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(command) = text("command") else { return text("url").unwrap_or_default() };
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    args.fold(command, |line, arg| format!("{line} {arg}"))
}

/// Replaces control characters, so that the text cannot control the terminal.
fn replace_control_chars(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}
