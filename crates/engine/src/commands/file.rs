//! A command that a person, a project or a plugin wrote: a Markdown file whose head says how it is used, and whose body
//! is a prompt. A skill is one that has a folder of its own, with files that its body can point to.

use std::path::PathBuf;
use std::sync::Arc;

use super::head::{self, Recipe};
use crate::plugins::Plugin;
use crate::settings::{Scope, Trust};

/// The variable that names a skill's folder, for its hooks and in its texts.
pub(crate) const FOLDER_VARIABLE: &str = "CLAUDE_SKILL_DIR";

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
    pub folder: Option<PathBuf>,
    /// Who wrote it.
    pub owner: Owner,
    /// Whose word it is.
    pub scope: Scope,
    /// What it does.
    pub description: Description,
    /// What may follow it.
    pub argument_hint: String,
    /// Who may call it.
    pub callers: Callers,
    /// Whether it would have something done that nobody was asked about.
    pub grants: bool,
    /// What was wrong with its head when it was found; the host has been told.
    pub flaw: Option<String>,
}

/// Who wrote a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Owner {
    /// The person.
    User,
    /// The project.
    Project,
    /// A plugin.
    Plugin(Arc<Plugin>),
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// Its head says so.
    Given(String),
    /// This is its first line.
    Guessed(String),
}

impl Description {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::Guessed(text) => text,
        }
    }
}

/// Who may call a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The person and the model.
    All,
    /// The person only.
    Person,
    /// The model only.
    Model,
    /// Nobody: it is there for subagents whose kind names it.
    Nobody,
}

impl Callers {
    /// Whether the person may.
    pub fn has_person(self) -> bool {
        matches!(self, Self::All | Self::Person)
    }

    /// Whether the model may.
    pub fn has_model(self) -> bool {
        matches!(self, Self::All | Self::Model)
    }
}

impl CommandFile {
    /// Reads the file as it is now.
    pub fn read(&self) -> Result<Recipe, String> {
        head::read(&self.path)
    }

    /// Whether it is a skill.
    pub fn is_skill(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether it answers to a name.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.alias.as_deref() == Some(name)
    }

    /// Whether what it grants counts. What came with a project grants nothing unless the project is trusted.
    pub fn may_grant(&self, trust: Trust) -> bool {
        self.scope == Scope::Person || trust == Trust::Full
    }

    /// A text of it with the folders filled in that it can name.
    pub fn fill_in(&self, text: &str) -> String {
        let text = match &self.owner {
            Owner::Plugin(plugin) => plugin.fill_in(text),
            Owner::User | Owner::Project => text.to_owned(),
        };
        match &self.folder {
            Some(folder) => text.replace(&format!("${{{FOLDER_VARIABLE}}}"), &folder.display().to_string()),
            None => text,
        }
    }
}
