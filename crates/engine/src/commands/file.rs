//! Command file: Markdown with front matter and a prompt as body. A skill is a command file with a directory of its
//! own, which may hold further files.

use std::path::PathBuf;
use std::sync::Arc;

use whimbrel_config::plugins::Plugin;
use whimbrel_config::settings::{LayerScope, Trust};

use super::parse_file::{self, ParsedCommand};

/// Variable with a skill's directory, in its texts and in the environment of its hooks.
pub(crate) const SKILL_DIR_VARIABLE: &str = "CLAUDE_SKILL_DIR";

#[derive(Debug, Clone, PartialEq)]
pub struct CommandFile {
    /// Name without the slash. Directories are joined by colons; a plugin's name comes first.
    pub name: String,
    /// Alternative name for users.
    pub alias: Option<String>,
    /// Path, links resolved.
    pub path: PathBuf,
    /// Directory of a skill; `None` for a command.
    pub skill_dir: Option<PathBuf>,
    pub owner: CommandOwner,
    /// Decides whether its allow rules need trust.
    pub scope: LayerScope,
    pub description: CommandDescription,
    pub argument_hint: String,
    pub callers: CommandCallers,
    /// Whether it has allow rules or hooks.
    pub grants_permissions: bool,
    /// Warning about its front matter at discovery; the host has been informed.
    pub warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CommandOwner {
    User,
    Project,
    Plugin(Arc<Plugin>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandDescription {
    /// From the front matter.
    Given(String),
    /// First line of the body.
    FirstLine(String),
}

impl CommandDescription {
    pub fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::FirstLine(text) => text,
        }
    }
}

/// Callers that a command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandCallers {
    /// User and model.
    All,
    User,
    Model,
    /// Neither user nor model; agent definitions can preload it.
    SubagentsOnly,
}

impl CommandCallers {
    pub fn includes_user(self) -> bool {
        matches!(self, Self::All | Self::User)
    }

    pub fn includes_model(self) -> bool {
        matches!(self, Self::All | Self::Model)
    }
}

impl CommandFile {
    /// Reads and parses the current file.
    pub fn parse(&self) -> Result<ParsedCommand, String> {
        parse_file::parse_file(&self.path)
    }

    pub fn is_skill(&self) -> bool {
        self.skill_dir.is_some()
    }

    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || self.alias.as_deref() == Some(name)
    }

    /// Returns true if its allow rules and hooks apply. Those of a project's file need trust in the project.
    pub fn may_grant_permissions(&self, trust: Trust) -> bool {
        self.scope == LayerScope::User || trust == Trust::Full
    }

    /// Replaces the directory variables in a text.
    pub fn expand_paths(&self, text: &str) -> String {
        let text = match &self.owner {
            CommandOwner::Plugin(plugin) => plugin.expand_root(text),
            CommandOwner::User | CommandOwner::Project => text.to_owned(),
        };
        match &self.skill_dir {
            Some(dir) => text.replace(&format!("${{{SKILL_DIR_VARIABLE}}}"), &dir.display().to_string()),
            None => text,
        }
    }
}
