//! `whimbrel plugin validate`: checks a plugin or a marketplace.

use std::path::{Path, PathBuf};

use serde_json::json;
use whimbrel_config::plugins::check_plugin;
use whimbrel_config::plugins::marketplace::{MARKETPLACE_PATH, Marketplace, PluginSource};

use super::render::to_json;
use crate::arg_list::ListFormat;

/// Result of a check.
pub(super) struct Validation {
    target: PathBuf,
    errors: Vec<String>,
}

impl Validation {
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn render(&self, format: ListFormat) -> Result<String, String> {
        match format {
            ListFormat::Json => {
                to_json(&json!({"success": self.is_valid(), "target": self.target, "errors": self.errors}))
            }
            ListFormat::Text => {
                let errors: String = self.errors.iter().map(|error| format!("  {error}\n")).collect();
                let verdict = if self.is_valid() { "valid" } else { "not valid" };
                Ok(format!("{}: {verdict}\n{errors}", self.target.display()))
            }
        }
    }
}

/// Checks a directory with a marketplace or a plugin, or a marketplace file. Reads the disk.
pub(super) fn validate(path: &Path) -> Validation {
    let file = path.join(MARKETPLACE_PATH);
    if path.is_file() {
        return validate_marketplace(path, path.ancestors().nth(2));
    }
    if file.is_file() {
        return validate_marketplace(&file, Some(path));
    }
    let errors = match check_plugin(path, None) {
        Ok(checked) => checked.errors,
        Err(error) => vec![error],
    };
    Validation { target: path.into(), errors }
}

/// Checks the file, and the plugins that lie in the marketplace.
fn validate_marketplace(file: &Path, root: Option<&Path>) -> Validation {
    let marketplace = match Marketplace::read(file) {
        Ok(marketplace) => marketplace,
        Err(error) => return Validation { target: file.into(), errors: vec![error] },
    };
    let mut errors = marketplace.errors;
    for entry in &marketplace.plugins {
        let (PluginSource::Directory(path), Some(root)) = (&entry.source, root) else { continue };
        match check_plugin(&root.join(path), Some(entry)) {
            Ok(checked) => errors.extend(checked.errors),
            Err(error) => errors.push(error),
        }
    }
    Validation { target: file.into(), errors }
}
