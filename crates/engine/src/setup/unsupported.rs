//! Options and settings that this version does not support. They are rejected or reported, never ignored silently.

use serde_json::{Map, Value};
use whimbrel_config::settings::{LayerSource, Settings, SettingsLayer};
use whimbrel_wire::options::Options;

/// Error text for the first unsupported option.
pub fn unsupported_option(options: &Options) -> Option<String> {
    let rows = [
        (options.sandbox.as_ref().is_some_and(is_sandbox_enabled), SANDBOX),
        (!options.tool_aliases.is_empty(), "tool aliases"),
    ];
    rows.iter().find(|(is_used, _)| *is_used).map(|(_, what)| render_error(what))
}

const SANDBOX: &str = "a sandbox";

/// Error text for an unsupported setting of the host or an administrator, or one that must not be ignored.
pub fn unsupported_setting(settings: &Settings) -> Option<String> {
    let sandbox = |layer: &SettingsLayer| {
        layer.values.get("sandbox").and_then(Value::as_object).is_some_and(is_sandbox_enabled)
    };
    let requested =
        settings.layers().iter().any(|layer| layer.origin.source >= LayerSource::Flag && sandbox(layer));
    let required = settings.effective().typed.sandbox.get("failIfUnavailable") == Some(&Value::Bool(true));
    (requested || required).then(|| render_error(SANDBOX))
}

/// Warnings about settings that the session ignores.
pub fn ignored_settings(settings: &Settings) -> Vec<String> {
    let effective = settings.effective();
    let sandbox = is_sandbox_enabled(&effective.typed.sandbox).then_some("sandbox: commands run without one");
    let unenforced = UNENFORCED_KEYS.iter().filter(|(path, _)| {
        let value = path.iter().try_fold(None, |found: Option<&Value>, key| {
            Some(Some(match found {
                Some(value) => value.get(*key)?,
                None => effective.values.get(*key)?,
            }))
        });
        !matches!(value.flatten(), None | Some(Value::Bool(false) | Value::Null))
    });
    sandbox
        .into_iter()
        .chain(unenforced.map(|(_, what)| *what))
        .map(|what| format!("This version of Whimbrel does not support a setting: {what}."))
        .collect()
}

/// Restrictive keys that are not enforced yet.
const UNENFORCED_KEYS: &[(&[&str], &str)] = &[
    (
        &["permissions", "denyInsteadOfPrompting"],
        "permissions.denyInsteadOfPrompting: the engine still asks; use the mode dontAsk instead",
    ),
    (
        &["permissions", "blockReadsOutsideWorkingDirectories"],
        "permissions.blockReadsOutsideWorkingDirectories: such reads are asked about, not blocked",
    ),
    (
        &["permissions", "blockWritesOutsideWorkingDirectories"],
        "permissions.blockWritesOutsideWorkingDirectories: such writes are asked about, not blocked",
    ),
    (&["deniedModels"], "deniedModels: no model is denied"),
];

fn is_sandbox_enabled(sandbox: &Map<String, Value>) -> bool {
    sandbox.get("enabled") == Some(&Value::Bool(true))
}

fn render_error(what: &str) -> String {
    format!("This version of Whimbrel does not support {what} yet. Leave it out, or use a newer version.")
}

#[cfg(test)]
mod tests {
    use whimbrel_config::settings::SettingsRequest;

    use super::*;

    #[test]
    fn unenforced_settings_are_reported() {
        for (flag, named) in [
            (r#"{"permissions": {"denyInsteadOfPrompting": true}}"#, Some("denyInsteadOfPrompting")),
            (r#"{"permissions": {"denyInsteadOfPrompting": false}}"#, None),
            (r#"{"permissions": {"blockReadsOutsideWorkingDirectories": true}}"#, Some("blockReads")),
            (r#"{"deniedModels": ["x"]}"#, Some("deniedModels")),
            ("{}", None),
        ] {
            let request = SettingsRequest { flag: Some(flag.into()), ..SettingsRequest::default() };
            let warnings = ignored_settings(&Settings::load(request).unwrap());
            assert_eq!(warnings.len(), named.iter().count(), "{flag}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.contains(named.unwrap())), "{warnings:?}");
        }
    }
}
