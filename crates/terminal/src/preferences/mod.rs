//! Preferences of the interactive terminal: the file `terminal.json` in the configuration directory. Settings of the
//! engine are elsewhere; hosts without a terminal have no use for these.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The preferences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Preferences {
    /// Name of the theme.
    pub(crate) theme: String,
    /// The vi keys.
    pub(crate) vim: bool,
    /// Notifications when a long turn ends or a question opens and the terminal is not focused.
    pub(crate) notifications: bool,
    /// Linear output, as for a screen reader.
    pub(crate) plain: bool,
    /// Keys of actions, in place of the default ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) keys: BTreeMap<String, Vec<String>>,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { theme: "auto".into(), vim: false, notifications: true, plain: false, keys: BTreeMap::new() }
    }
}

/// Path of the file.
pub(crate) fn path(config: &Path) -> PathBuf {
    config.join("terminal.json")
}

/// Reads the file. A missing file means the defaults; an invalid one too, with a warning.
pub(crate) fn read(path: &Path) -> (Preferences, Option<String>) {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Preferences::default(), None),
        Err(error) => return (Preferences::default(), Some(warning(path, &error.to_string()))),
    };
    match serde_json::from_str(&text) {
        Ok(preferences) => (preferences, None),
        Err(error) => (Preferences::default(), Some(warning(path, &error.to_string()))),
    }
}

fn warning(path: &Path, error: &str) -> String {
    format!("cannot read {}: {error}. The defaults are in force; fix or remove the file", path.display())
}

/// Writes the file: first a new one, which then takes its place.
pub(crate) fn write(path: &Path, preferences: &Preferences) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let text = serde_json::to_string_pretty(preferences)? + "\n";
    let new = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        assert_eq!(read(&path), (Preferences::default(), None));
        let changed = Preferences { vim: true, theme: "light".into(), ..Preferences::default() };
        write(&path, &changed).unwrap();
        assert_eq!(read(&path), (changed, None));
    }

    #[test]
    fn invalid_file_is_a_warning_and_means_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        std::fs::write(&path, "{\"thme\": \"dark\"}").unwrap();
        let (preferences, warning) = read(&path);
        assert_eq!(preferences, Preferences::default());
        assert!(warning.unwrap().contains("thme"));
    }
}
