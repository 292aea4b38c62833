//! A folder to a plugin.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_wire::options::PluginConfig;
use whimbrel_wire::system::PluginError;

use super::manifest::{Manifest, Paths, check_name};
use super::{Plugin, hooks, servers};
use crate::files::{self, Kind};

/// How large a manifest or another JSON file of a plugin may be.
const LARGEST: u64 = 1024 * 1024;

/// Where the manifest stands.
const MANIFEST: &str = ".claude-plugin/plugin.json";

/// A plugin, and what is wrong with parts of it.
pub(super) struct Found {
    pub(super) plugin: Plugin,
    pub(super) flaws: Vec<Fault>,
}

/// What is wrong with a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    kind: &'static str,
    message: String,
}

impl Fault {
    /// A fault of one of the kinds that hosts know.
    pub(super) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The fault as hosts are told of it. A plugin that was not loaded at all is known by its path.
    pub(super) fn report(self, plugin: String, path: Option<&Path>) -> PluginError {
        PluginError {
            plugin,
            kind: self.kind.into(),
            message: self.message,
            path: path.map(|path| path.display().to_string()),
            managed_lock: None,
        }
    }
}

/// Loads the plugin in a folder.
pub(super) fn load(config: &PluginConfig, root: &Path) -> Result<Found, Fault> {
    if !matches!(config.kind.as_str(), "" | "local") {
        let text =
            format!("The plugin {} has the type {:?}; only \"local\" is known.", config.path, config.kind);
        return Err(Fault::new("generic-error", text));
    }
    let broken = |why: String| {
        Fault::new("generic-error", format!("The plugin in {} is left out: {why}.", root.display()))
    };
    match files::kind(root) {
        Ok(Kind::Folder) => {}
        Ok(Kind::Missing) => {
            let text = format!("The plugin {} is left out: there is no such folder.", root.display());
            return Err(Fault::new("path-not-found", text));
        }
        Ok(_) => return Err(broken("it is not a folder".into())),
        Err(error) => return Err(broken(error.to_string())),
    }
    let manifest = manifest(root).map_err(|why| {
        let text = format!("The plugin in {} is left out: {MANIFEST}: {why}.", root.display());
        Fault::new("manifest-validation-error", text)
    })?;
    let mut flaws = Vec::new();
    let plugin = assemble(config, root, &manifest, &mut flaws);
    if plugin.is_empty() && flaws.is_empty() && !has_manifest(root) {
        return Err(broken(format!("it has neither {MANIFEST} nor anything that a plugin can bring")));
    }
    Ok(Found { plugin, flaws })
}

fn has_manifest(root: &Path) -> bool {
    !matches!(files::kind(&root.join(MANIFEST)), Ok(Kind::Missing))
}

/// What the manifest says. A plugin without one has the name of its folder.
fn manifest(root: &Path) -> Result<Manifest, String> {
    if has_manifest(root) {
        return Manifest::read(&text(&root.join(MANIFEST))?);
    }
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    check_name(&name)?;
    Ok(Manifest { name, ..Manifest::default() })
}

/// Reads a text file of a plugin.
fn text(path: &Path) -> Result<String, String> {
    let (bytes, _) = files::read(path, LARGEST).map_err(|error| format!("it cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
}

/// Reads a JSON file of a plugin.
pub(super) fn object(path: &Path) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text(path)?.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".into()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

fn assemble(config: &PluginConfig, root: &Path, manifest: &Manifest, flaws: &mut Vec<Fault>) -> Plugin {
    let mut plugin = Plugin {
        name: manifest.name.clone(),
        root: root.into(),
        version: manifest.version.clone(),
        commands: folders(root, "commands", &manifest.commands, flaws),
        agents: folders(root, "agents", &manifest.agents, flaws),
        skills: folders(root, "skills", &manifest.skills, flaws),
        output_styles: folders(root, "output-styles", &manifest.output_styles, flaws),
        hooks: Vec::new(),
        servers: Default::default(),
    };
    plugin.hooks = hooks::of(&plugin, &manifest.hooks, flaws);
    if !config.skip_mcp_discovery {
        plugin.servers = servers::of(&plugin, &manifest.mcp_servers, flaws);
    }
    plugin
}

/// The usual folder, and what the manifest names besides.
fn folders(root: &Path, usual: &str, more: &Paths, flaws: &mut Vec<Fault>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if matches!(files::kind(&root.join(usual)), Ok(Kind::Folder)) {
        paths.push(root.join(usual));
    }
    for written in more.each() {
        match within(root, written) {
            Ok(path) if !paths.contains(&path) => paths.push(path),
            Ok(_) => {}
            Err(why) => flaws.push(Fault::new("path-not-found", format!("{MANIFEST}: {written}: {why}."))),
        }
    }
    paths
}

/// A path that a manifest names. It may not lead out of the plugin.
pub(super) fn within(root: &Path, written: &str) -> Result<PathBuf, String> {
    let path = files::tidy(&root.join(written));
    if !path.starts_with(root) {
        return Err("it leads out of the plugin".into());
    }
    match files::kind(&path) {
        Ok(Kind::Missing) => Err("it does not exist".into()),
        Ok(_) => Ok(path),
        Err(error) => Err(error.to_string()),
    }
}

impl Plugin {
    /// Whether it brings nothing.
    fn is_empty(&self) -> bool {
        let parts = [&self.commands, &self.agents, &self.skills, &self.output_styles];
        parts.iter().all(|paths| paths.is_empty()) && self.hooks.is_empty() && self.servers.is_empty()
    }
}
