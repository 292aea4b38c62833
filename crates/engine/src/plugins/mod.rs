//! Plugins: folders that the host names and that bring commands, skills, kinds of subagent, output styles, hooks and MCP
//! servers. What is in one goes by the plugin's name, so that two cannot get into each other's way.
//!
//! Rooms: [`manifest`] (what a plugin says about itself), `load` (a folder to a [`Plugin`]), `hooks` and `servers` (its
//! hooks and MCP servers).
//!
//! A plugin that is broken is left out and reported; the session starts without it.

mod hooks;
mod load;
pub mod manifest;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::{McpServerConfig, PluginConfig};
use whimbrel_wire::system::{InitPlugin, PluginError};

use crate::agents::PluginAgents;
pub use hooks::PluginHook;

/// The variable that names a plugin's folder, for its commands and in its texts.
pub const ROOT_VARIABLE: &str = "CLAUDE_PLUGIN_ROOT";

/// A plugin that was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// Its version, as it says.
    pub version: Option<String>,
    /// Folders of commands, and single files.
    pub commands: Vec<PathBuf>,
    /// Folders of kinds of subagent, and single files.
    pub agents: Vec<PathBuf>,
    /// Folders of skills.
    pub skills: Vec<PathBuf>,
    /// Folders of output styles, and single files.
    pub output_styles: Vec<PathBuf>,
    /// Its hooks.
    pub hooks: Vec<PluginHook>,
    /// Its MCP servers, by the names that they have in a session.
    pub servers: BTreeMap<String, McpServerConfig>,
}

/// The plugins of a session.
#[derive(Debug, Clone, Default)]
pub struct Plugins {
    loaded: Vec<Arc<Plugin>>,
    errors: Vec<PluginError>,
    configs: Vec<PluginConfig>,
}

impl Plugins {
    /// Loads plugins. Relative paths start from `cwd`. Touches the disk.
    pub fn load(configs: &[PluginConfig], cwd: &Path) -> Self {
        let mut plugins = Self { configs: configs.to_vec(), ..Self::default() };
        for (index, config) in configs.iter().enumerate() {
            let path = crate::files::normalize_path(&cwd.join(&config.path));
            match load::load(config, &path) {
                Ok(found) => plugins.add(found, index, &path),
                Err(fault) => plugins.errors.push(fault.into_report(format!("inline[{index}]"), Some(&path))),
            }
        }
        plugins
    }

    fn add(&mut self, found: load::LoadedPlugin, index: usize, path: &Path) {
        let load::LoadedPlugin { plugin, errors: flaws } = found;
        if let Some(twin) = self.loaded.iter().find(|loaded| loaded.name == plugin.name) {
            let cause = format!(
                "The plugin {} in {} is left out: {} has the same name. Give one of them another.",
                plugin.name,
                path.display(),
                twin.root.display()
            );
            let fault = load::PluginLoadError::new("generic-error", cause);
            return self.errors.push(fault.into_report(format!("inline[{index}]"), Some(path)));
        }
        let name = plugin.name.clone();
        self.errors.extend(flaws.into_iter().map(|fault| fault.into_report(name.clone(), None)));
        self.loaded.push(Arc::new(plugin));
    }

    /// The plugins, in the order in which they were named.
    pub fn all(&self) -> &[Arc<Plugin>] {
        &self.loaded
    }

    /// What was asked for.
    pub fn configs(&self) -> &[PluginConfig] {
        &self.configs
    }

    /// What could not be loaded.
    pub fn errors(&self) -> &[PluginError] {
        &self.errors
    }

    /// The plugins as hosts are told of them.
    pub fn init_plugins(&self) -> Vec<InitPlugin> {
        let listed = |plugin: &Arc<Plugin>| InitPlugin {
            name: plugin.name.clone(),
            path: plugin.root.display().to_string(),
            version: plugin.version.clone(),
        };
        self.loaded.iter().map(listed).collect()
    }

    /// Whether every one of these is among those that were loaded.
    pub fn contains_all(&self, configs: &[PluginConfig], cwd: &Path) -> bool {
        let root = |config: &PluginConfig| crate::files::normalize_path(&cwd.join(&config.path));
        configs.iter().all(|config| self.loaded.iter().any(|plugin| plugin.root == root(config)))
    }

    /// Where plugins have kinds of subagent: the plugin's name, which goes before theirs, and a folder or a single file.
    pub fn agent_dirs(&self) -> Vec<PluginAgents> {
        let all = self.loaded.iter().flat_map(|plugin| plugin.agents.iter().map(move |path| (plugin, path)));
        all.map(|(plugin, path)| PluginAgents { prefix: plugin.name.clone(), path: path.clone() }).collect()
    }

    /// The MCP servers of plugins, by the names `plugin:PLUGIN:SERVER`.
    pub fn mcp_servers(&self) -> BTreeMap<String, McpServerConfig> {
        let servers = self.loaded.iter().flat_map(|plugin| &plugin.servers);
        servers.map(|(name, server)| (name.clone(), server.clone())).collect()
    }

    /// The hooks of plugins, with the plugin that each belongs to.
    pub fn hooks(&self) -> impl Iterator<Item = (&Plugin, &PluginHook)> {
        self.loaded.iter().flat_map(|plugin| plugin.hooks.iter().map(|hook| (plugin.as_ref(), hook)))
    }
}

impl Plugin {
    /// A text with the plugin's folder filled in.
    pub fn expand_root(&self, text: &str) -> String {
        text.replace(&format!("${{{ROOT_VARIABLE}}}"), &self.root.display().to_string())
    }
}
