//! Skills: commands in files that the model may call itself, by the tool [`Skill`]. It is told their names and what they
//! are for; what one says is read when it is called.
//!
//! Rooms: [`listing`](mod@listing) (what the model is told), [`tool`] (how it calls one), [`desk`] (how what a skill says
//! comes before it), `brought` (hooks that come with it), `fork` (skills that a subagent does).

pub(crate) mod skill_hooks;
pub mod agent_skills;
pub(crate) mod fork;
pub mod listing;
pub mod tool;

use std::sync::Arc;

use tokio::sync::watch;
use whimbrel_wire::control::SlashCommand;

use crate::commands::{self, CommandFile, Commands, CommandDescription};
use crate::settings::Trust;

pub use agent_skills::AgentSkills;
pub use tool::Skill;

/// How many names an error lists.
const MAX_NAMED: usize = 30;

/// The skills of a session. Cheap to clone; a change is seen by all at once.
#[derive(Debug, Clone)]
pub struct Skills(watch::Sender<Arc<SkillSet>>);

/// What there is.
#[derive(Debug, Clone)]
struct SkillSet {
    files: Vec<Arc<CommandFile>>,
    /// The only ones that the main agent may call, if the host says so.
    allowed: Option<Vec<String>>,
    trust: Trust,
}

/// Why there is no such skill for the model, in words for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// There is none with that name.
    #[error("Unknown skill: {name}. {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Which there are.
        known: String,
    },
    /// The model may not call it.
    #[error(
        "The skill {0} is for people only (disable-model-invocation): ask the person to call /{0} if it is needed, and do not do its work in another way."
    )]
    UserOnly(String),
    /// Its file cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

impl Skills {
    /// The skills among the commands of a session. `only` limits what the model may call to these; `*` means all.
    pub fn new(commands: &Commands, only: Option<Vec<String>>, trust: Trust) -> Self {
        let book = SkillSet { files: commands.files().to_vec(), allowed: parse_allowed(only), trust };
        Self(watch::Sender::new(Arc::new(book)))
    }

    /// Takes up the commands as they are now.
    pub fn set_commands(&self, commands: &Commands) {
        self.0.send_modify(|book| Arc::make_mut(book).files = commands.files().to_vec());
    }

    /// Limits what the model may call.
    pub fn set_allowed(&self, only: Option<Vec<String>>) {
        self.0.send_modify(|book| Arc::make_mut(book).allowed = parse_allowed(only));
    }

    /// Whether the model has nothing to call.
    pub fn is_empty(&self) -> bool {
        !self.0.borrow().callable().any(|_| true)
    }

    /// How far the project is trusted.
    pub fn trust(&self) -> Trust {
        self.0.borrow().trust
    }

    /// The names of the skills, whoever may call them. Commands are not among them.
    pub fn names(&self) -> Vec<String> {
        let book = self.0.borrow();
        book.files.iter().filter(|file| file.is_skill()).map(|file| file.name.clone()).collect()
    }

    /// What the model may call, as hosts are told of it.
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        self.0.borrow().callable().map(|file| commands::to_slash_command(file)).collect()
    }

    /// What the model is told of them; none if there is nothing to tell.
    pub fn listing(&self) -> Option<String> {
        let book = self.0.borrow();
        let told = book.callable().filter(|file| is_listed(file));
        let entries: Vec<(&str, &str)> =
            told.map(|file| (file.name.as_str(), file.description.text())).collect();
        listing::render(&entries)
    }

    /// The skill that the model calls by its exact name.
    pub fn find_callable(&self, name: &str) -> Result<Arc<CommandFile>, SkillError> {
        let book = self.0.borrow();
        if let Some(file) = book.callable().find(|file| file.name == name) {
            return Ok(Arc::clone(file));
        }
        if book.files.iter().any(|file| file.name == name && !file.callers.includes_model()) {
            return Err(SkillError::UserOnly(name.to_owned()));
        }
        let known = match book.callable().find(|file| file.matches_name(name)) {
            Some(file) => format!("It is called {}.", file.name),
            None => book.list_known(),
        };
        Err(SkillError::Unknown { name: name.to_owned(), known })
    }

    /// What a skill says, for a subagent whose kind names it: by its name or another that it goes by, whoever may call it.
    pub fn render_body(&self, name: &str) -> Result<String, SkillError> {
        let book = self.0.borrow().clone();
        let mut files = book.files.iter().filter(|file| file.is_skill());
        let exact = files.clone().find(|file| file.name == name);
        let Some(file) = exact.or_else(|| files.find(|file| file.matches_name(name))) else {
            return Err(SkillError::Unknown { name: name.to_owned(), known: book.list_known() });
        };
        let recipe = file.parse().map_err(SkillError::Unreadable)?;
        let folder = file.skill_dir.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default();
        Ok(format!("Base directory for this skill: {folder}\n\n{}", file.expand_paths(&recipe.body)))
    }

    /// Whether calling a skill puts rules in force that allow something.
    fn grants_permissions(&self, name: &str) -> bool {
        let book = self.0.borrow();
        let file = book.files.iter().find(|file| file.name == name);
        file.is_some_and(|file| file.grants_permissions && file.may_grant_permissions(book.trust))
    }
}

impl SkillSet {
    /// What the model may call.
    fn callable(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.includes_model() && self.is_allowed(file))
    }

    /// Whether the host has not left it out. A name without its plugin will do.
    fn is_allowed(&self, file: &CommandFile) -> bool {
        let Some(only) = &self.allowed else { return true };
        only.iter().any(|name| *name == file.name || file.name.ends_with(&format!(":{name}")))
    }

    fn list_known(&self) -> String {
        let names: Vec<&str> = self.callable().map(|file| file.name.as_str()).take(MAX_NAMED).collect();
        match names.as_slice() {
            [] => "There are no skills.".into(),
            names => format!("There are: {}.", names.join(", ")),
        }
    }
}

/// Whether the model is told of it. A skill must say itself what it is for; of a command the first line will do.
fn is_listed(file: &CommandFile) -> bool {
    !file.is_skill() || matches!(file.description, CommandDescription::Given(_))
}

/// The names that a host chose; none if it chose all.
fn parse_allowed(only: Option<Vec<String>>) -> Option<Vec<String>> {
    only.filter(|names| !names.iter().any(|name| matches!(name.as_str(), "*" | "all")))
}

#[cfg(test)]
mod tests;
