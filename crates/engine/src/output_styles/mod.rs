//! Output styles: how the agent speaks, and what for. One is chosen by the setting `outputStyle`; it changes the system
//! prompt. Three are built in; others are Markdown files of the person, the project and plugins.
//!
//! Rooms: `find` (where they are), `built_in` (those of the engine).

mod built_in;
mod discover;

use std::path::PathBuf;
use std::sync::Arc;

use crate::config_locations::ConfigLocations;
use crate::plugins::Plugins;

/// The name of the style that changes nothing.
pub const DEFAULT_STYLE: &str = "default";

/// An output style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What becomes of the rest of the prompt.
    pub coding_instructions: CodingInstructions,
    /// What it says.
    pub text: String,
}

/// What a style makes of the instructions for work on code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingInstructions {
    /// They stay.
    Keep,
    /// They go: the agent is for something else.
    Drop,
}

/// The output styles of a session.
#[derive(Debug, Clone)]
pub struct OutputStyles(Vec<Arc<OutputStyle>>);

impl OutputStyles {
    /// The styles that there are, and what is wrong with their files. Touches the disk.
    pub fn discover(ground: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let mut styles = built_in::all();
        let (found, warnings) = discover::find_styles(ground, plugins);
        for style in found {
            // A file may take the place of a style of the engine, but not of the default.
            match styles.iter_mut().skip(1).find(|known| known.name == style.name) {
                Some(known) => *known = Arc::new(style),
                None => styles.push(Arc::new(style)),
            }
        }
        (Self(styles), warnings)
    }

    /// The names.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|style| style.name.clone()).collect()
    }

    /// The style by a name; the default without one. The error says which there are.
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

/// Where the person's styles are.
pub fn user_styles_dir(ground: &ConfigLocations) -> Option<PathBuf> {
    ground.user_dir.as_ref().map(|config| config.join("output-styles"))
}
