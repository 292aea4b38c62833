//! Server entries from flags, host options and files. An invalid entry is kept with its error, so that it can be shown;
//! it does not affect the others.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use whimbrel_models::http::Url;
use whimbrel_wire::options::{McpServerConfig, RemoteServer, StdioServer};

use super::expand::{VariableExpander, VariableLookup};
use super::server_policy::{ProjectApproval, ServerPolicy};

/// Source of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOrigin {
    /// User settings.
    User,
    /// `.mcp.json` of the project.
    Project,
    /// User settings for this project.
    Local,
    /// Flag, host options, or a control request of the host.
    Dynamic,
}

impl ServerOrigin {
    /// Scope name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Dynamic => "dynamic",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    pub origin: ServerOrigin,
    /// Valid config, or the error of the entry.
    pub config: Result<McpServerConfig, String>,
}

/// Configured servers of a session, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerConfigs {
    pub entries: BTreeMap<String, ServerEntry>,
    /// Allow and deny lists of the settings.
    pub policy: ServerPolicy,
    /// Warnings for the user: unreadable sources, unset variables.
    pub warnings: Vec<String>,
}

impl ServerConfigs {
    /// Adds parsed configs. As with every source, they replace earlier entries of the same name.
    pub fn add_configs(
        &mut self,
        origin: ServerOrigin,
        servers: &BTreeMap<String, McpServerConfig>,
        variables: VariableLookup<'_>,
    ) {
        for (name, config) in servers {
            self.insert(name, origin, Ok(config.clone()), variables);
        }
    }

    /// Adds the JSON of a file or flag, `{"mcpServers": {...}}`. `source` names it in warnings.
    pub fn add_json(
        &mut self,
        origin: ServerOrigin,
        source: &str,
        text: &str,
        variables: VariableLookup<'_>,
    ) {
        self.add_filtered(origin, source, text, variables, |_| true);
    }

    /// Adds the `.mcp.json` of a project, limited to approved servers. Other entries are not even expanded.
    pub fn add_project_json(
        &mut self,
        source: &str,
        text: &str,
        approval: &ProjectApproval,
        variables: VariableLookup<'_>,
    ) {
        self.add_filtered(ServerOrigin::Project, source, text, variables, |name| approval.approves(name));
    }

    fn add_filtered(
        &mut self,
        origin: ServerOrigin,
        source: &str,
        text: &str,
        variables: VariableLookup<'_>,
        is_included: impl Fn(&str) -> bool,
    ) {
        match parse_servers(text) {
            Ok(mut servers) => {
                servers.retain(|name, _| is_included(name));
                self.add_entries(origin, servers, variables);
            }
            Err(error) => self.warnings.push(format!("{source}: {error}")),
        }
    }

    /// Adds unparsed entries of a file.
    pub fn add_entries(
        &mut self,
        origin: ServerOrigin,
        servers: Map<String, Value>,
        variables: VariableLookup<'_>,
    ) {
        for (name, entry) in servers {
            let config = serde_json::from_value(entry).map_err(|error| format!("{error}"));
            self.insert(&name, origin, config, variables);
        }
    }

    /// Adds an invalid entry with its error.
    pub fn add_invalid(&mut self, origin: ServerOrigin, name: &str, error: &str) {
        self.insert(name, origin, Err(error.to_owned()), &|_| None);
    }

    fn insert(
        &mut self,
        name: &str,
        origin: ServerOrigin,
        config: Result<McpServerConfig, String>,
        variables: VariableLookup<'_>,
    ) {
        if name.trim().is_empty() {
            return self.warnings.push("An MCP server has no name. Add one.".into());
        }
        let mut expander = VariableExpander::new(variables);
        let config = config.and_then(|config| validate(config, &mut expander));
        for variable in &expander.missing {
            self.warnings.push(format!(
                "MCP server {name}: the variable {variable} is not set. Set it, or write ${{{variable}:-default}}."
            ));
        }
        self.entries.insert(name.to_owned(), ServerEntry { origin, config });
    }
}

/// Parses the entries of a file or flag, by name.
pub fn parse_servers(text: &str) -> Result<Map<String, Value>, String> {
    let document: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| format!("{error}."))?;
    match document {
        Value::Object(mut document) => match document.remove("mcpServers") {
            Some(Value::Object(servers)) => Ok(servers),
            _ => Err("`mcpServers` is missing. Write {\"mcpServers\": {\"name\": {...}}}.".into()),
        },
        _ => Err("not a JSON object. Write {\"mcpServers\": {\"name\": {...}}}.".into()),
    }
}

/// Expands the variables of an entry and validates it without connecting.
pub(super) fn validate(
    mut config: McpServerConfig,
    expander: &mut VariableExpander<'_>,
) -> Result<McpServerConfig, String> {
    match &mut config {
        McpServerConfig::Stdio(server) => validate_stdio(server, expander)?,
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => validate_remote(server, expander)?,
        McpServerConfig::Sdk(_) => {}
    }
    Ok(config)
}

fn validate_stdio(server: &mut StdioServer, expander: &mut VariableExpander<'_>) -> Result<(), String> {
    expander.expand(&mut server.command);
    server.args.iter_mut().chain(server.env.values_mut()).for_each(|text| expander.expand(text));
    if server.command.trim().is_empty() {
        return Err("`command` is empty. Name the program.".into());
    }
    let texts = server.args.iter().chain(server.env.keys()).chain(server.env.values());
    if texts.chain([&server.command]).any(|text| text.contains('\0')) {
        return Err("the command, its arguments or its environment contain a NUL byte.".into());
    }
    if let Some(name) = server.env.keys().find(|name| name.is_empty() || name.contains('=')) {
        return Err(format!("`env`: {name:?} is not a valid variable name."));
    }
    Ok(())
}

fn validate_remote(server: &mut RemoteServer, expander: &mut VariableExpander<'_>) -> Result<(), String> {
    expander.expand(&mut server.url);
    server.headers.values_mut().for_each(|value| expander.expand(value));
    let url = Url::parse(&server.url).map_err(|error| format!("`url`: {error}."))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`url`: the scheme {}: is not supported. Use http: or https:.", url.scheme()));
    }
    for (name, value) in &server.headers {
        let valid_name = name.parse::<HeaderName>().is_ok();
        if !valid_name || HeaderValue::from_str(value).is_err() {
            return Err(format!("`headers`: {name:?} has an invalid character in its name or value."));
        }
    }
    Ok(())
}
