//! Loads a plugin from its directory.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::PluginConfig;
use whimbrel_wire::system::PluginError;

use crate::plugins::enabled::InstalledPlugin;
use crate::plugins::manifest::{Manifest, ManifestPaths, validate_name};
use crate::plugins::servers::load_servers;
use crate::plugins::{Plugin, hooks};

/// Maximum size of a manifest or another JSON file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

pub(super) const MANIFEST_PATH: &str = ".claude-plugin/plugin.json";

/// Plugin with the errors of its parts.
pub(super) struct LoadedPlugin {
    pub(super) plugin: Plugin,
    pub(super) errors: Vec<PluginLoadError>,
}

/// Error of a plugin or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PluginLoadError {
    kind: &'static str,
    message: String,
}

impl PluginLoadError {
    /// `kind` is one of the error kinds of the wire.
    pub(super) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Converts the error for the host. A plugin that was not loaded is identified by its path.
    pub(super) fn into_report(self, plugin: String, path: Option<&Path>) -> PluginError {
        PluginError {
            plugin,
            kind: self.kind.into(),
            message: self.message,
            path: path.map(|path| path.display().to_string()),
            managed_lock: None,
        }
    }
}

/// Loads a plugin that the host named.
pub(super) fn load_local(config: &PluginConfig, root: &Path) -> Result<LoadedPlugin, PluginLoadError> {
    if !matches!(config.kind.as_str(), "" | "local") {
        let text = format!(
            "The plugin {} has the type {:?}; only \"local\" is supported.",
            config.path, config.kind
        );
        return Err(PluginLoadError::new("generic-error", text));
    }
    let servers = if config.skip_mcp_discovery { ServerDiscovery::Skip } else { ServerDiscovery::Load };
    load(root, servers, || read_manifest(root))
}

/// Loads a plugin that was installed from a marketplace.
pub(super) fn load_installed(installed: &InstalledPlugin) -> Result<LoadedPlugin, PluginLoadError> {
    let root = &installed.root;
    let read = || match (has_manifest(root), &installed.entry) {
        (true, Some(entry)) => read_manifest(root)?.with_entry(entry),
        (true, None) => read_manifest(root),
        (false, Some(entry)) => Manifest::from_fields(entry),
        (false, None) => Ok(Manifest { name: installed.id.name().into(), ..Manifest::default() }),
    };
    let mut loaded = load(root, ServerDiscovery::Load, read)?;
    let version = Some(&installed.version).filter(|version| !matches!(version.as_str(), "" | "unknown"));
    loaded.plugin.version = loaded.plugin.version.or_else(|| version.cloned());
    Ok(loaded)
}

/// Whether the MCP servers of a plugin are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerDiscovery {
    Load,
    Skip,
}

fn load(
    root: &Path,
    servers: ServerDiscovery,
    read_manifest: impl FnOnce() -> Result<Manifest, String>,
) -> Result<LoadedPlugin, PluginLoadError> {
    let load_error = |reason: String| {
        PluginLoadError::new(
            "generic-error",
            format!("The plugin in {} is not loaded: {reason}.", root.display()),
        )
    };
    match files::file_kind(root) {
        Ok(FileKind::Directory) => {}
        Ok(FileKind::Missing) => {
            let text = format!("The plugin {} is not loaded: the directory does not exist.", root.display());
            return Err(PluginLoadError::new("path-not-found", text));
        }
        Ok(_) => return Err(load_error("it is not a directory".into())),
        Err(error) => return Err(load_error(error.to_string())),
    }
    let manifest = read_manifest().map_err(|reason| {
        let text = format!("The plugin in {} is not loaded: {MANIFEST_PATH}: {reason}.", root.display());
        PluginLoadError::new("manifest-validation-error", text)
    })?;
    let mut errors = Vec::new();
    let plugin = assemble(root, &manifest, servers, &mut errors);
    if plugin.is_empty() && errors.is_empty() && !has_manifest(root) {
        return Err(load_error(format!("it has neither {MANIFEST_PATH} nor any part of a plugin")));
    }
    Ok(LoadedPlugin { plugin, errors })
}

fn has_manifest(root: &Path) -> bool {
    !matches!(files::file_kind(&root.join(MANIFEST_PATH)), Ok(FileKind::Missing))
}

/// Reads the manifest. Without one, the plugin is named after its directory.
fn read_manifest(root: &Path) -> Result<Manifest, String> {
    if has_manifest(root) {
        return Manifest::parse(&read_text(&root.join(MANIFEST_PATH))?);
    }
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    validate_name(&name)?;
    Ok(Manifest { name, ..Manifest::default() })
}

fn read_text(path: &Path) -> Result<String, String> {
    let (bytes, _) =
        files::read(path, MAX_FILE_BYTES).map_err(|error| format!("it cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
}

/// Reads a JSON object from a file.
pub(super) fn read_object(path: &Path) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(read_text(path)?.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".into()),
        Err(error) => Err(format!("it is not valid JSON: {error}")),
    }
}

fn assemble(
    root: &Path,
    manifest: &Manifest,
    servers: ServerDiscovery,
    errors: &mut Vec<PluginLoadError>,
) -> Plugin {
    let mut plugin = Plugin {
        name: manifest.name.clone(),
        root: root.into(),
        version: manifest.version.clone(),
        commands: component_paths(root, "commands", &manifest.commands, errors),
        agents: component_paths(root, "agents", &manifest.agents, errors),
        skills: component_paths(root, "skills", &manifest.skills, errors),
        output_styles: component_paths(root, "output-styles", &manifest.output_styles, errors),
        hooks: Vec::new(),
        servers: Default::default(),
    };
    plugin.hooks = hooks::load_hooks(&plugin, manifest, errors);
    if servers == ServerDiscovery::Load {
        plugin.servers = load_servers(&plugin, &manifest.mcp_servers, errors);
    }
    plugin
}

/// The default directory, and paths from the manifest.
fn component_paths(
    root: &Path,
    default_name: &str,
    paths_in_manifest: &ManifestPaths,
    errors: &mut Vec<PluginLoadError>,
) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if matches!(files::file_kind(&root.join(default_name)), Ok(FileKind::Directory)) {
        paths.push(root.join(default_name));
    }
    for written in paths_in_manifest.as_slice() {
        match resolve_inside(root, written) {
            Ok(path) if !paths.contains(&path) => paths.push(path),
            Ok(_) => {}
            Err(reason) => errors.push(PluginLoadError::new(
                "path-not-found",
                format!("{MANIFEST_PATH}: {written}: {reason}."),
            )),
        }
    }
    paths
}

/// Resolves a path of the manifest. It must not leave the plugin's directory.
pub(super) fn resolve_inside(root: &Path, written: &str) -> Result<PathBuf, String> {
    let path = files::normalize_path(&root.join(written));
    if !path.starts_with(root) {
        return Err("it is outside the plugin".into());
    }
    match files::file_kind(&path) {
        Ok(FileKind::Missing) => Err("it does not exist".into()),
        Ok(_) => Ok(path),
        Err(error) => Err(error.to_string()),
    }
}

impl Plugin {
    fn is_empty(&self) -> bool {
        let parts = [&self.commands, &self.agents, &self.skills, &self.output_styles];
        parts.iter().all(|paths| paths.is_empty()) && self.hooks.is_empty() && self.servers.is_empty()
    }
}
