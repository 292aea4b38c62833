//! The MCP servers of a plugin: `.mcp.json`, and what its manifest says besides.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use whimbrel_wire::options::McpServerConfig;

use super::load::{self, Fault};
use super::manifest::{Part, Parts};
use super::{Plugin, ROOT_VARIABLE};
use crate::files::{self, Kind};

/// Where servers usually stand.
const USUAL: &str = ".mcp.json";

/// The servers of a plugin by the names that they have in a session. A bad entry does not cost the others.
pub(super) fn of(plugin: &Plugin, more: &Parts, flaws: &mut Vec<Fault>) -> BTreeMap<String, McpServerConfig> {
    let mut servers = BTreeMap::new();
    let usual = plugin.root.join(USUAL);
    if !matches!(files::kind(&usual), Ok(Kind::Missing)) {
        take(plugin, load::object(&usual), USUAL, &mut servers, flaws);
    }
    for part in more.each() {
        match part {
            Part::Written(fields) => take(plugin, Ok(fields.clone()), "the manifest", &mut servers, flaws),
            Part::File(written) => match load::within(&plugin.root, written) {
                Ok(path) => take(plugin, load::object(&path), written, &mut servers, flaws),
                Err(why) => flaws.push(lost(plugin, written, &why)),
            },
        }
    }
    servers
}

fn take(
    plugin: &Plugin,
    fields: Result<Map<String, Value>, String>,
    origin: &str,
    servers: &mut BTreeMap<String, McpServerConfig>,
    flaws: &mut Vec<Fault>,
) {
    let mut fields = match fields {
        Ok(fields) => fields,
        Err(why) => return flaws.push(lost(plugin, origin, &why)),
    };
    let named = match fields.remove("mcpServers") {
        Some(Value::Object(named)) => named,
        Some(_) => return flaws.push(lost(plugin, origin, "`mcpServers` must be an object")),
        None => fields,
    };
    for (name, mut entry) in named {
        fill_in(plugin, &mut entry);
        match serde_json::from_value(entry) {
            Ok(config) => {
                servers.insert(format!("plugin:{}:{name}", plugin.name), at_home(plugin, config));
            }
            Err(error) => flaws.push(lost(plugin, origin, &format!("the server {name}: {error}"))),
        }
    }
}

/// The server as it is started: it finds the plugin's folder in its environment.
fn at_home(plugin: &Plugin, mut config: McpServerConfig) -> McpServerConfig {
    if let McpServerConfig::Stdio(server) = &mut config {
        let root = || plugin.root.display().to_string();
        server.env.entry(ROOT_VARIABLE.into()).or_insert_with(root);
    }
    config
}

fn fill_in(plugin: &Plugin, value: &mut Value) {
    match value {
        Value::String(text) => *text = plugin.fill_in(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(plugin, item)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill_in(plugin, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn lost(plugin: &Plugin, origin: &str, why: &str) -> Fault {
    let text = format!("{origin} of the plugin {}: an MCP server is left out: {why}.", plugin.name);
    Fault::new("mcp-config-invalid", text)
}
