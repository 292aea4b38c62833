//! Hooks of a plugin: `hooks/hooks.json` and the manifest's entries.

use std::path::Path;

use serde_json::{Map, Value};
use whimbrel_os::files::{self, FileKind};

use crate::plugins::Plugin;
use crate::plugins::load::{self, PluginLoadError};
use crate::plugins::manifest::{Manifest, ManifestPart, ManifestParts};
use crate::settings::hooks::{CommandHookConfig, HookActionConfig, HookConfig, parse_hooks};

const DEFAULT_PATH: &str = "hooks/hooks.json";

#[derive(Debug, Clone, PartialEq)]
pub struct PluginHook {
    /// Event and action, with the plugin's directory filled in.
    pub entry: HookConfig,
    /// Source of the hook, for messages.
    pub origin: String,
}

/// Loads the hooks. An invalid hook does not affect the others.
pub(super) fn load_hooks(
    plugin: &Plugin,
    manifest: &Manifest,
    errors: &mut Vec<PluginLoadError>,
) -> Vec<PluginHook> {
    let mut hooks = Vec::new();
    let default_path = plugin.root.join(DEFAULT_PATH);
    if !matches!(files::file_kind(&default_path), Ok(FileKind::Missing)) {
        add_hooks(
            plugin,
            load::read_object(&default_path),
            &default_path.display().to_string(),
            &mut hooks,
            errors,
        );
    }
    let mut hooks_of_manifest = load_manifest_hooks(plugin, &manifest.hooks, &default_path, errors);
    if let Some(fields) = &manifest.entry_hooks {
        let origin = format!("the marketplace's entry of the plugin {}", plugin.name);
        let mut hooks_of_entry = Vec::new();
        add_hooks(plugin, Ok(fields.clone()), &origin, &mut hooks_of_entry, errors);
        let is_replaced =
            |hook: &PluginHook| hooks_of_entry.iter().any(|other| other.entry.event == hook.entry.event);
        hooks_of_manifest.retain(|hook| !is_replaced(hook));
        hooks_of_manifest.append(&mut hooks_of_entry);
    }
    hooks.append(&mut hooks_of_manifest);
    hooks
}

fn load_manifest_hooks(
    plugin: &Plugin,
    parts: &ManifestParts,
    default_path: &Path,
    errors: &mut Vec<PluginLoadError>,
) -> Vec<PluginHook> {
    let mut hooks = Vec::new();
    for part in parts.as_slice() {
        match part {
            ManifestPart::Written(fields) => {
                let origin = format!("the manifest of the plugin {}", plugin.name);
                add_hooks(plugin, Ok(fields.clone()), &origin, &mut hooks, errors);
            }
            ManifestPart::File(written) => match load::resolve_inside(&plugin.root, written) {
                Ok(path) if path == default_path => {}
                Ok(path) => add_hooks(
                    plugin,
                    load::read_object(&path),
                    &path.display().to_string(),
                    &mut hooks,
                    errors,
                ),
                Err(reason) => errors.push(hook_error(written, &reason)),
            },
        }
    }
    hooks
}

fn add_hooks(
    plugin: &Plugin,
    fields: Result<Map<String, Value>, String>,
    origin: &str,
    hooks: &mut Vec<PluginHook>,
    errors: &mut Vec<PluginLoadError>,
) {
    let mut fields = match fields {
        Ok(fields) => fields,
        Err(reason) => return errors.push(hook_error(origin, &reason)),
    };
    // A file may hold the events under `hooks`, beside a description, or directly.
    let events = fields.remove("hooks").unwrap_or_else(|| fields.into());
    let (entries, hook_errors) = parse_hooks(&events);
    errors.extend(
        hook_errors.iter().map(|error| hook_error(origin, &format!("{} {}", error.pointer, error.cause))),
    );
    hooks.extend(entries.into_iter().map(|mut entry| {
        if let HookActionConfig::Command(hook) = &mut entry.action {
            expand_root(plugin, hook);
        }
        PluginHook { entry, origin: origin.to_owned() }
    }));
}

fn expand_root(plugin: &Plugin, hook: &mut CommandHookConfig) {
    hook.command = plugin.expand_root(&hook.command);
    for word in hook.args.iter_mut().flatten() {
        *word = plugin.expand_root(word);
    }
}

fn hook_error(origin: &str, reason: &str) -> PluginLoadError {
    PluginLoadError::new("hook-load-failed", format!("{origin}: a hook does not run: {reason}."))
}
