//! A command that a person, a project or a plugin wrote: a Markdown file whose head says how it is used, and whose body
//! is a prompt. A skill is one that has a folder of its own, with files that its body can point to.

use std::path::PathBuf;
use std::sync::Arc;

use super::parse::{self, ParsedCommand};
use crate::plugins::Plugin;
use crate::settings::{LayerScope, Trust};

/// The variable that names a skill's folder, for its hooks and in its texts.
pub(crate) const SKILL_DIR_VARIABLE: &str = "CLAUDE_SKILL_DIR";

/// A command in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandFile {
    /// Its name, without the slash. Folders are parted by colons; a plugin's name comes first.
    pub name: String,
    /// Another name that people may call it by.
    pub alias: Option<String>,
    /// The file, links followed.
    pub path: PathBuf,
    /// The folder of a skill; none for a command.
    pub skill_dir: Option<PathBuf>,
    /// Who wrote it.
    pub owner: CommandOwner,
    /// Whose word it is.
    pub scope: LayerScope,
    /// What it does.
    pub description: CommandDescription,
    /// What may follow it.
    pub argument_hint: String,
    /// Who may call it.
    pub callers: CommandCallers,
    /// Whether it would have something done that nobody was asked about.
    pub grants_permissions: bool,
    /// What was wrong with its head when it was found; the host has been told.
    pub warning: Option<String>,
}

/// Who wrote a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandOwner {
    /// The person.
    User,
    /// The project.
    Project,
    /// A plugin.
    Plugin(Arc<Plugin>),
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandDescription {
    /// Its head says so.
    Given(String),
    /// This is its first line.
    FirstLine(String),
}

impl CommandDescription {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::FirstLine(text) => text,
        }
    }
}

/// Who may call a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandCallers {
    /// The person and the model.
    All,
    /// The person only.
    User,
    /// The model only.
    Model,
    /// Nobody: it is there for subagents whose kind names it.
    SubagentsOnly,
}

impl CommandCallers {
    /// Whether the person may.
    pub fn includes_user(self) -> bool {
        matches!(self, Self::All | Self::User)
    }

    /// Whether the model may.
    pub fn includes_model(self) -> bool {
        matches!(self, Self::All | Self::Model)
    }
}

impl CommandFile {
    /// Reads the file as it is now.
    pub fn parse(&self) -> Result<ParsedCommand, String> {
        parse::parse_file(&self.path)
    }

    /// Whether it is a skill.
    pub fn is_skill(&self) -> bool {
        self.skill_dir.is_some()
    }

    /// Whether it answers to a name.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || self.alias.as_deref() == Some(name)
    }

    /// Whether what it grants counts. What came with a project grants nothing unless the project is trusted.
    pub fn may_grant_permissions(&self, trust: Trust) -> bool {
        self.scope == LayerScope::User || trust == Trust::Full
    }

    /// A text of it with the folders filled in that it can name.
    pub fn expand_paths(&self, text: &str) -> String {
        let text = match &self.owner {
            CommandOwner::Plugin(plugin) => plugin.expand_root(text),
            CommandOwner::User | CommandOwner::Project => text.to_owned(),
        };
        match &self.skill_dir {
            Some(folder) => text.replace(&format!("${{{SKILL_DIR_VARIABLE}}}"), &folder.display().to_string()),
            None => text,
        }
    }
}
