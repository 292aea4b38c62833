//! Output styles: instructions on tone and purpose that become part of the system prompt. The setting `outputStyle`
//! selects one. Three are built in; others are Markdown files of the user, the project and plugins.
//!
//! Modules: `discover` (finds the files), `built_in`.

mod built_in;
mod discover;

use std::path::PathBuf;
use std::sync::Arc;

use crate::locations::ConfigLocations;
use crate::plugins::Plugins;

/// Name of the style without text.
pub const DEFAULT_STYLE: &str = "default";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    pub name: String,
    pub description: String,
    /// Whether the coding instructions of the system prompt stay.
    pub coding_instructions: CodingInstructions,
    /// Text added to the system prompt.
    pub text: String,
}

/// Treatment of the coding instructions in the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingInstructions {
    Keep,
    /// Removed: the agent has another purpose.
    Drop,
}

#[derive(Debug, Clone)]
pub struct OutputStyles(Vec<Arc<OutputStyle>>);

impl OutputStyles {
    /// Finds all styles. Also returns warnings about their files. Reads the disk.
    pub fn discover(ground: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let mut styles = built_in::all();
        let (found, warnings) = discover::find_styles(ground, plugins);
        for style in found {
            // A file can replace a built-in style, but not the default.
            match styles.iter_mut().skip(1).find(|known| known.name == style.name) {
                Some(known) => *known = Arc::new(style),
                None => styles.push(Arc::new(style)),
            }
        }
        (Self(styles), warnings)
    }

    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|style| style.name.clone()).collect()
    }

    /// Selects a style by name, ignoring case; `None` is the default. The error lists the names.
    pub fn select(&self, name: Option<&str>) -> Result<Option<Arc<OutputStyle>>, String> {
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else { return Ok(None) };
        let exact = self.0.iter().find(|style| style.name == name);
        let found = exact.or_else(|| self.0.iter().find(|style| style.name.eq_ignore_ascii_case(name)));
        match found {
            Some(style) if style.name == DEFAULT_STYLE => Ok(None),
            Some(style) => Ok(Some(Arc::clone(style))),
            None => Err(format!(
                "There is no output style {name:?}, so the default is used. There are: {}.",
                self.names().join(", ")
            )),
        }
    }
}

/// Directory of the user's styles.
pub fn user_styles_dir(ground: &ConfigLocations) -> Option<PathBuf> {
    ground.user_dir.as_ref().map(|config| config.join("output-styles"))
}
