//! Options and settings that this version does not support. They are rejected or reported, never ignored silently.

use serde_json::Value;
use whimbrel_config::settings::Settings;
use whimbrel_wire::options::Options;

/// Error text for the first unsupported option.
pub fn unsupported_option(options: &Options) -> Option<String> {
    (!options.tool_aliases.is_empty()).then(|| render_error("tool aliases"))
}

/// Warnings about settings that the session ignores.
pub fn ignored_settings(settings: &Settings) -> Vec<String> {
    let effective = settings.effective();
    let unenforced = UNENFORCED_KEYS.iter().filter(|(path, _)| {
        let value = path.iter().try_fold(None, |found: Option<&Value>, key| {
            Some(Some(match found {
                Some(value) => value.get(*key)?,
                None => effective.values.get(*key)?,
            }))
        });
        !matches!(value.flatten(), None | Some(Value::Bool(false) | Value::Null))
    });
    unenforced
        .map(|(_, what)| *what)
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
