//! Plugins: directories named by the host that contain commands, skills, agent definitions, output styles, hooks and
//! MCP servers. Their items are prefixed with the plugin's name, so that plugins cannot collide.
//!
//! Modules: `manifest` (`plugin.json`), `load` (loads a [`Plugin`]), `hooks` and `servers` (its hooks and MCP
//! servers).
//!
//! A broken plugin is skipped and reported; the session starts without it.

mod hooks;
mod load;
mod manifest;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::{McpServerConfig, PluginConfig};
use whimbrel_wire::system::{InitPlugin, PluginError};

pub use hooks::PluginHook;

/// The agents of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginAgents {
    /// Plugin name, used as a prefix of the agent names.
    pub prefix: String,
    /// Directory or single file.
    pub path: PathBuf,
}

/// Variable with the plugin's directory, in its texts and in the environment of its commands.
pub const ROOT_VARIABLE: &str = "CLAUDE_PLUGIN_ROOT";

/// Loaded plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    pub name: String,
    /// Directory of the plugin.
    pub root: PathBuf,
    pub version: Option<String>,
    /// Directories of commands, and single files.
    pub commands: Vec<PathBuf>,
    /// Directories of agent definitions, and single files.
    pub agents: Vec<PathBuf>,
    pub skills: Vec<PathBuf>,
    /// Directories of output styles, and single files.
    pub output_styles: Vec<PathBuf>,
    pub hooks: Vec<PluginHook>,
    /// MCP servers by their names in the session.
    pub servers: BTreeMap<String, McpServerConfig>,
}

#[derive(Debug, Clone, Default)]
pub struct Plugins {
    loaded: Vec<Arc<Plugin>>,
    errors: Vec<PluginError>,
    configs: Vec<PluginConfig>,
}

impl Plugins {
    /// Loads plugins. Relative paths start from `cwd`. Reads the disk.
    pub fn load(configs: &[PluginConfig], cwd: &Path) -> Self {
        let mut plugins = Self { configs: configs.to_vec(), ..Self::default() };
        for (index, config) in configs.iter().enumerate() {
            let path = whimbrel_os::files::normalize_path(&cwd.join(&config.path));
            match load::load(config, &path) {
                Ok(loaded) => plugins.add(loaded, index, &path),
                Err(error) => plugins.errors.push(error.into_report(format!("inline[{index}]"), Some(&path))),
            }
        }
        plugins
    }

    fn add(&mut self, loaded: load::LoadedPlugin, index: usize, path: &Path) {
        let load::LoadedPlugin { plugin, errors } = loaded;
        if let Some(other) = self.loaded.iter().find(|loaded| loaded.name == plugin.name) {
            let cause = format!(
                "The plugin {} in {} is not loaded: {} has the same name. Rename one of them.",
                plugin.name,
                path.display(),
                other.root.display()
            );
            let error = load::PluginLoadError::new("generic-error", cause);
            return self.errors.push(error.into_report(format!("inline[{index}]"), Some(path)));
        }
        let name = plugin.name.clone();
        self.errors.extend(errors.into_iter().map(|error| error.into_report(name.clone(), None)));
        self.loaded.push(Arc::new(plugin));
    }

    /// Loaded plugins, in the order of the options.
    pub fn all(&self) -> &[Arc<Plugin>] {
        &self.loaded
    }

    /// Requested plugins.
    pub fn configs(&self) -> &[PluginConfig] {
        &self.configs
    }

    /// Errors of plugins and of parts of them.
    pub fn errors(&self) -> &[PluginError] {
        &self.errors
    }

    /// Plugins for the `init` frame.
    pub fn init_plugins(&self) -> Vec<InitPlugin> {
        let listed = |plugin: &Arc<Plugin>| InitPlugin {
            name: plugin.name.clone(),
            path: plugin.root.display().to_string(),
            version: plugin.version.clone(),
        };
        self.loaded.iter().map(listed).collect()
    }

    /// Returns true if all of these are loaded.
    pub fn contains_all(&self, configs: &[PluginConfig], cwd: &Path) -> bool {
        let root = |config: &PluginConfig| whimbrel_os::files::normalize_path(&cwd.join(&config.path));
        configs.iter().all(|config| self.loaded.iter().any(|plugin| plugin.root == root(config)))
    }

    /// Locations of agent definitions: the plugin's name as prefix, and a directory or file.
    pub fn agent_dirs(&self) -> Vec<PluginAgents> {
        let all = self.loaded.iter().flat_map(|plugin| plugin.agents.iter().map(move |path| (plugin, path)));
        all.map(|(plugin, path)| PluginAgents { prefix: plugin.name.clone(), path: path.clone() }).collect()
    }

    /// MCP servers of all plugins, named `plugin:PLUGIN:SERVER`.
    pub fn mcp_servers(&self) -> BTreeMap<String, McpServerConfig> {
        let servers = self.loaded.iter().flat_map(|plugin| &plugin.servers);
        servers.map(|(name, server)| (name.clone(), server.clone())).collect()
    }

    /// Hooks of all plugins with their plugin.
    pub fn hooks(&self) -> impl Iterator<Item = (&Plugin, &PluginHook)> {
        self.loaded.iter().flat_map(|plugin| plugin.hooks.iter().map(|hook| (plugin.as_ref(), hook)))
    }
}

impl Plugin {
    /// Replaces `${CLAUDE_PLUGIN_ROOT}` in a text.
    pub fn expand_root(&self, text: &str) -> String {
        text.replace(&format!("${{{ROOT_VARIABLE}}}"), &self.root.display().to_string())
    }
}
