//! Config files that hold MCP servers, for `mcp add`, `mcp remove` and `mcp list`. Sessions read the same files at
//! startup.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};
use whimbrel_config::settings::trust::trusted_dirs;
use whimbrel_config::settings::user_mcp_servers;
use whimbrel_config::settings::{FileOwnership, SettingsChange, change_file};
use whimbrel_mcp::config::{ServerConfigs, ServerEntry, ServerOrigin, parse_servers};
use whimbrel_os::files;
use whimbrel_wire::options::McpServerConfig;

use crate::setup::{LARGEST_SERVER_FILE, PROJECT_FILE, Setup, server_files};

/// File scope of a server, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigScope {
    /// For the user, in this directory.
    Local,
    /// For all users of the project (`.mcp.json`).
    Project,
    /// For the user, in every directory.
    User,
}

impl ConfigScope {
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Local, Self::Project, Self::User].into_iter().find(|scope| scope.to_string() == name)
    }

    pub fn origin(self) -> ServerOrigin {
        match self {
            Self::Local => ServerOrigin::Local,
            Self::Project => ServerOrigin::Project,
            Self::User => ServerOrigin::User,
        }
    }
}

impl fmt::Display for ConfigScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.origin().as_str())
    }
}

/// Entry of a config file, unexpanded.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigFileEntry {
    pub name: String,
    pub scope: ConfigScope,
    pub file: PathBuf,
    pub entry: Value,
}

/// MCP config files that apply to a directory.
#[derive(Debug, Clone)]
pub struct McpConfigFiles {
    env: BTreeMap<String, String>,
    root: PathBuf,
    /// Project files, the nearest last.
    project: Vec<PathBuf>,
}

impl McpConfigFiles {
    /// Files of the directory that a session with this setup works in.
    pub fn from_setup(setup: &Setup) -> Self {
        Self {
            env: setup.session.workspace.environment(),
            root: setup.config_locations.working_dir.clone(),
            project: server_files(&setup.config_locations),
        }
    }

    /// All entries, strongest scope first. Reads the disk.
    pub fn entries(&self) -> Result<Vec<ConfigFileEntry>, String> {
        let user_servers = user_mcp_servers::user_servers(&self.env, &self.root);
        let mut found = Vec::new();
        let mut add = |scope, file: PathBuf, entries: Map<String, Value>| {
            let to_entry = |(name, entry)| ConfigFileEntry { name, scope, file: file.clone(), entry };
            found.extend(entries.into_iter().map(to_entry));
        };
        if let Some(file) = trusted_dirs::user_state_file(&self.env) {
            add(ConfigScope::Local, file, user_servers.local);
        }
        for file in self.project.iter().rev() {
            let file_error = |reason: String| format!("{} cannot be used: {reason}", file.display());
            match files::read(file, LARGEST_SERVER_FILE) {
                Ok((bytes, _)) => {
                    add(
                        ConfigScope::Project,
                        file.clone(),
                        parse_servers(&String::from_utf8_lossy(&bytes)).map_err(file_error)?,
                    );
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(file_error(format!("{error}."))),
            }
        }
        if let Some(file) = trusted_dirs::user_state_file(&self.env) {
            add(ConfigScope::User, file, user_servers.user);
        }
        Ok(found)
    }

    /// Adds a server and returns the file. Fails if that file already has the name.
    pub fn add(&self, scope: ConfigScope, name: &str, entry: &Value) -> Result<PathBuf, String> {
        let is_valid_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_valid_char) {
            return Err(format!("{name:?} is not a valid server name. Use letters, digits, - and _."));
        }
        if let Err(error) = self.parse_entry(scope, name, entry) {
            return Err(format!("The entry for {name} is not valid: {error}"));
        }
        let file = self.file(scope)?;
        let is_same = |existing: &ConfigFileEntry| {
            (existing.scope, existing.name.as_str(), &existing.file) == (scope, name, &file)
        };
        if self.entries()?.iter().any(is_same) {
            return Err(format!(
                "There is already a server {name} in {}. Remove it first, or choose another name.",
                file.display()
            ));
        }
        self.write(scope, name, Some(entry.clone()))?;
        Ok(file)
    }

    /// Removes a server and returns the file; `None` if it was not there.
    pub fn remove(&self, scope: ConfigScope, name: &str) -> Result<Option<PathBuf>, String> {
        let written = self.write(scope, name, None)?;
        Ok(if written { Some(self.file(scope)?) } else { None })
    }

    /// Parses and validates the entry as a session does.
    pub fn parse_entry(
        &self,
        scope: ConfigScope,
        name: &str,
        entry: &Value,
    ) -> Result<McpServerConfig, String> {
        let mut servers = self.to_server_configs(scope, name, entry);
        match servers.entries.remove(name) {
            Some(ServerEntry { config: Ok(McpServerConfig::Sdk(_)), .. }) => {
                Err("a server of type sdk runs in its host and cannot be stored in a file.".into())
            }
            Some(ServerEntry { config, .. }) => config,
            None => Err("it has no name.".into()),
        }
    }

    /// Server configs with this entry only.
    pub fn to_server_configs(&self, scope: ConfigScope, name: &str, entry: &Value) -> ServerConfigs {
        let mut servers = ServerConfigs::default();
        let variable = |name: &str| self.env.get(name).cloned();
        let entries = Map::from_iter([(name.to_owned(), entry.clone())]);
        servers.add_entries(scope.origin(), entries, &variable);
        servers
    }

    fn file(&self, scope: ConfigScope) -> Result<PathBuf, String> {
        match scope {
            ConfigScope::Project => Ok(self.root.join(PROJECT_FILE)),
            ConfigScope::Local | ConfigScope::User => trusted_dirs::user_state_file(&self.env)
                .ok_or_else(|| "The file with your servers cannot be located. Set HOME.".into()),
        }
    }

    fn write(&self, scope: ConfigScope, name: &str, value: Option<Value>) -> Result<bool, String> {
        let root = || self.root.to_str().ok_or("The path of this directory is not UTF-8.").map(str::to_owned);
        let mut path = match scope {
            ConfigScope::Local => vec!["projects".to_owned(), root()?],
            ConfigScope::Project | ConfigScope::User => Vec::new(),
        };
        path.extend(["mcpServers".to_owned(), name.to_owned()]);
        let access = match scope {
            ConfigScope::Local | ConfigScope::User => FileOwnership::User,
            ConfigScope::Project => FileOwnership::Project,
        };
        let changed = change_file(&self.file(scope)?, access, &SettingsChange::Entry { path, value });
        changed.map(|replaced| replaced.is_some()).map_err(|error| error.to_string())
    }
}
