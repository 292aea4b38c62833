//! Output styles: instructions on tone and purpose that become part of the system prompt. The setting `outputStyle`
//! selects one. Three are built in; others are Markdown files of the user, the project and plugins.
//!
//! `discover` finds the files.

mod discover;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

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
    pub fn discover(locations: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let mut styles = built_in_styles();
        let (found, warnings) = discover::find_styles(locations, plugins);
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
                "There is no output style {name:?}, so the default is used. Available: {}.",
                self.names().join(", ")
            )),
        }
    }
}

/// All built-in styles, the default first; shared by all sessions of the process.
fn built_in_styles() -> Vec<Arc<OutputStyle>> {
    static ALL: LazyLock<Vec<Arc<OutputStyle>>> = LazyLock::new(build_styles);
    ALL.clone()
}

fn build_styles() -> Vec<Arc<OutputStyle>> {
    let style = |name: &str, description: &str, text: &str| {
        Arc::new(OutputStyle {
            name: name.into(),
            description: description.into(),
            coding_instructions: CodingInstructions::Keep,
            text: text.trim().into(),
        })
    };
    vec![
        style(DEFAULT_STYLE, "Short and to the point", ""),
        style("Explanatory", "Also explains the choices it makes", include_str!("explanatory.md")),
        style("Learning", "Leaves parts of the work to you, so that you learn", include_str!("learning.md")),
    ]
}

/// Directory of the user's styles.
pub fn user_styles_dir(locations: &ConfigLocations) -> Option<PathBuf> {
    locations.user_dir.as_ref().map(|config| config.join("output-styles"))
}
