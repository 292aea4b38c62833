//! MCP servers that the user has added: those in `.claude.json`, for all projects and for one directory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use whimbrel_os::files;

use crate::settings::trust::trusted_dirs::{MAX_FILE_SIZE, user_state_file};

/// MCP servers that the user has added, as written.
#[derive(Debug, Default)]
pub struct UserMcpServers {
    /// For all projects.
    pub user: Map<String, Value>,
    /// For this directory.
    pub local: Map<String, Value>,
}

/// The user's MCP servers for a directory. Reads a file.
pub fn user_servers(env: &BTreeMap<String, String>, dir: &Path) -> UserMcpServers {
    let state = user_state_file(env)
        .and_then(|file| files::read(&file, MAX_FILE_SIZE).ok())
        .and_then(|(bytes, _)| serde_json::from_slice::<Value>(&bytes).ok())
        .unwrap_or_default();
    let servers_in =
        |value: &Value| value.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default();
    let project = files::real_path(dir).and_then(|real| state.get("projects")?.get(real.to_str()?));
    UserMcpServers { user: servers_in(&state), local: project.map(servers_in).unwrap_or_default() }
}
