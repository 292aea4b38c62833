//! MCP servers of a plugin: `.mcp.json` and the manifest's entries.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::McpServerConfig;

use crate::plugins::load::{self, PluginLoadError};
use crate::plugins::manifest::{ManifestPart, ManifestParts};
use crate::plugins::{Plugin, ROOT_VARIABLE};

const DEFAULT_PATH: &str = ".mcp.json";

/// Loads the servers by their names in the session. An invalid entry does not affect the others.
pub(super) fn load_servers(
    plugin: &Plugin,
    parts: &ManifestParts,
    errors: &mut Vec<PluginLoadError>,
) -> BTreeMap<String, McpServerConfig> {
    let mut servers = BTreeMap::new();
    let default_path = plugin.root.join(DEFAULT_PATH);
    if !matches!(files::file_kind(&default_path), Ok(FileKind::Missing)) {
        add_servers(plugin, load::read_object(&default_path), DEFAULT_PATH, &mut servers, errors);
    }
    for part in parts.as_slice() {
        match part {
            ManifestPart::Written(fields) => {
                add_servers(plugin, Ok(fields.clone()), "the manifest", &mut servers, errors);
            }
            ManifestPart::File(written) => match load::resolve_inside(&plugin.root, written) {
                Ok(path) => add_servers(plugin, load::read_object(&path), written, &mut servers, errors),
                Err(reason) => errors.push(server_error(plugin, written, &reason)),
            },
        }
    }
    servers
}

fn add_servers(
    plugin: &Plugin,
    fields: Result<Map<String, Value>, String>,
    origin: &str,
    servers: &mut BTreeMap<String, McpServerConfig>,
    errors: &mut Vec<PluginLoadError>,
) {
    let mut fields = match fields {
        Ok(fields) => fields,
        Err(reason) => return errors.push(server_error(plugin, origin, &reason)),
    };
    let servers_by_name = match fields.remove("mcpServers") {
        Some(Value::Object(servers_by_name)) => servers_by_name,
        Some(_) => return errors.push(server_error(plugin, origin, "`mcpServers` must be an object")),
        None => fields,
    };
    for (name, mut entry) in servers_by_name {
        expand_root(plugin, &mut entry);
        match serde_json::from_value(entry) {
            Ok(config) => {
                servers.insert(format!("plugin:{}:{name}", plugin.name), with_root_variable(plugin, config));
            }
            Err(error) => errors.push(server_error(plugin, origin, &format!("the server {name}: {error}"))),
        }
    }
}

/// Adds the plugin's directory to the server's environment.
fn with_root_variable(plugin: &Plugin, mut config: McpServerConfig) -> McpServerConfig {
    if let McpServerConfig::Stdio(server) = &mut config {
        let root = || plugin.root.display().to_string();
        server.env.entry(ROOT_VARIABLE.into()).or_insert_with(root);
    }
    config
}

fn expand_root(plugin: &Plugin, value: &mut Value) {
    match value {
        Value::String(text) => *text = plugin.expand_root(text),
        Value::Array(items) => items.iter_mut().for_each(|item| expand_root(plugin, item)),
        Value::Object(fields) => fields.values_mut().for_each(|item| expand_root(plugin, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn server_error(plugin: &Plugin, origin: &str, reason: &str) -> PluginLoadError {
    let text = format!("{origin} of the plugin {}: an MCP server is not loaded: {reason}.", plugin.name);
    PluginLoadError::new("mcp-config-invalid", text)
}
