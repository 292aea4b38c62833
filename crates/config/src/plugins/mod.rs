//! Plugins: directories that contain commands, skills, agent definitions, output styles, hooks and MCP servers. The host
//! names them, or they were installed from a marketplace and settings enable them. Their items are prefixed with the
//! plugin's name, so that plugins cannot collide.
//!
//! Modules:
//! - `manifest` (`plugin.json`), `load` (loads a [`Plugin`]), `hooks` and `servers` (its hooks and MCP servers)
//! - [`enabled`]: plugins that settings enable; [`records`]: which marketplaces and plugins are installed
//! - [`marketplace`] (`marketplace.json`), [`marketplace_source`] and [`git_source`] (where they come from),
//!   [`marketplace_policy`] (what an administrator permits), [`plugin_id`] (names)
//!
//! A broken plugin is skipped and reported; the session starts without it. Nothing here fetches or installs anything.

pub mod enabled;
pub mod git_source;
mod hooks;
mod load;
mod manifest;
pub mod marketplace;
pub mod marketplace_policy;
pub mod marketplace_source;
pub mod plugin_id;
pub mod records;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::{McpServerConfig, PluginConfig};
use whimbrel_wire::system::{InitPlugin, PluginError};

use enabled::EnabledPlugins;
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
    /// Loads the plugins that the host named and those that settings enable. Relative paths start from `cwd`. Reads the
    /// disk.
    ///
    /// If names collide, an administrator's choice comes first, then the host's, then that of the settings.
    pub fn load(configs: &[PluginConfig], enabled: &EnabledPlugins, cwd: &Path) -> Self {
        let mut plugins = Self { configs: configs.to_vec(), ..Self::default() };
        for (index, config) in configs.iter().enumerate() {
            let path = whimbrel_os::files::normalize_path(&cwd.join(&config.path));
            let label = format!("inline[{index}]");
            match load::load_local(config, &path) {
                Ok(loaded) => match enabled.managed_lock(&loaded.plugin.name) {
                    Some(lock) => plugins.errors.push(locked_error(&loaded.plugin, label, lock)),
                    None => plugins.add(loaded, label),
                },
                Err(error) => plugins.errors.push(error.into_report(label, Some(&path))),
            }
        }
        let (installed, errors) = enabled.find_installed();
        plugins.errors.extend(errors);
        let named_by_host: Vec<String> = plugins.loaded.iter().map(|plugin| plugin.name.clone()).collect();
        for plugin in installed {
            match load::load_installed(&plugin) {
                // The host's plugin replaces an installed one, as when a new version is tried out.
                Ok(loaded) if named_by_host.contains(&loaded.plugin.name) => {}
                Ok(loaded) => plugins.add(loaded, plugin.id.to_string()),
                Err(error) => {
                    plugins.errors.push(error.into_report(plugin.id.to_string(), Some(&plugin.root)));
                }
            }
        }
        plugins
    }

    fn add(&mut self, loaded: load::LoadedPlugin, label: String) {
        let load::LoadedPlugin { plugin, errors } = loaded;
        if let Some(other) = self.loaded.iter().find(|loaded| loaded.name == plugin.name) {
            let cause = format!(
                "The plugin {} in {} is not loaded: {} has the same name. Rename one of them.",
                plugin.name,
                plugin.root.display(),
                other.root.display()
            );
            let error = load::PluginLoadError::new("generic-error", cause);
            return self.errors.push(error.into_report(label, Some(&plugin.root)));
        }
        let name = plugin.name.clone();
        self.errors.extend(errors.into_iter().map(|error| error.into_report(name.clone(), None)));
        self.loaded.push(Arc::new(plugin));
    }

    /// Loaded plugins: those of the host in the order of the options, then those of the settings.
    pub fn all(&self) -> &[Arc<Plugin>] {
        &self.loaded
    }

    /// Plugins that the host named.
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

/// Reports a plugin that an administrator keeps the host from loading.
fn locked_error(plugin: &Plugin, label: String, lock: serde_json::Value) -> PluginError {
    let cause = format!(
        "The plugin {} in {} is not loaded: managed settings decide about plugins of this name. Ask the administrator.",
        plugin.name,
        plugin.root.display()
    );
    let error = load::PluginLoadError::new("generic-error", cause);
    PluginError { managed_lock: Some(lock), ..error.into_report(label, Some(&plugin.root)) }
}

/// Loads a plugin from its directory to check it. Returns its name and the errors of its parts. `entry` is its entry in
/// a marketplace, if it has one. Reads the disk.
pub fn check_plugin(
    root: &Path,
    entry: Option<&marketplace::MarketplaceEntry>,
) -> Result<CheckedPlugin, String> {
    let checked = match entry {
        None => load::load_local(&PluginConfig::local(root.display().to_string()), root),
        Some(entry) => load::load_installed(&enabled::InstalledPlugin {
            id: plugin_id::PluginId::new(&entry.name, "marketplace")?,
            root: root.into(),
            version: entry.version.clone().unwrap_or_default(),
            entry: Some(entry.fields.clone()),
        }),
    };
    let report = |error: load::PluginLoadError| error.into_report(String::new(), None).message;
    let load::LoadedPlugin { plugin, errors } = checked.map_err(report)?;
    Ok(CheckedPlugin { plugin, errors: errors.into_iter().map(report).collect() })
}

/// Result of [`check_plugin`].
#[derive(Debug)]
pub struct CheckedPlugin {
    pub plugin: Plugin,
    /// Errors of its parts.
    pub errors: Vec<String>,
}
