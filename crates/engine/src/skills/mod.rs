//! Skills: commands in files that the model can call with the Skill tool. The model sees names and descriptions;
//! the body is read when the skill is called.
//!
//! Modules: [`listing`](mod@listing) (list for the model), `state` (skills of one agent). Called skills are injected by
//! the [`turn`](crate::turn); the tool is in [`agents`](crate::agents::tools), because a skill may run in a subagent.

pub mod listing;
mod state;

use std::sync::Arc;

use tokio::sync::watch;
use whimbrel_config::settings::Trust;
use whimbrel_wire::control::SlashCommand;

use crate::commands::{self, CommandDescription, CommandFile, Commands};
pub use state::{AgentSkills, InvocationQueue, InvokedSkill};

/// Maximum number of names in an error.
const MAX_NAMED: usize = 30;

/// Skills of a session. Cheap to clone; all clones see a change at once.
#[derive(Debug, Clone)]
pub struct Skills(watch::Sender<Arc<SkillSet>>);

#[derive(Debug, Clone)]
struct SkillSet {
    files: Vec<Arc<CommandFile>>,
    /// Names that the main agent may call, if the host limits them.
    allowed: Option<Vec<String>>,
    trust: Trust,
}

/// Error of a skill call, as text for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("Unknown skill: {name}. {known}")]
    Unknown {
        name: String,
        /// Names that exist.
        known: String,
    },
    /// `disable-model-invocation` is set.
    #[error(
        "Only the user can call the skill {0} (disable-model-invocation): ask the user to run /{0} if it is needed, and do not do its work another way."
    )]
    UserOnly(String),
    #[error("{0}")]
    Unreadable(String),
}

impl Skills {
    /// Skills among the session's commands. `only` limits what the model may call; `*` means all.
    pub fn new(commands: &Commands, only: Option<Vec<String>>, trust: Trust) -> Self {
        let set = SkillSet { files: commands.files().to_vec(), allowed: parse_allowed(only), trust };
        Self(watch::Sender::new(Arc::new(set)))
    }

    /// Replaces the commands.
    pub fn set_commands(&self, commands: &Commands) {
        self.0.send_modify(|set| Arc::make_mut(set).files = commands.files().to_vec());
    }

    /// Limits what the model may call.
    pub fn set_allowed(&self, only: Option<Vec<String>>) {
        self.0.send_modify(|set| Arc::make_mut(set).allowed = parse_allowed(only));
    }

    /// Returns true if the model can call nothing.
    pub fn is_empty(&self) -> bool {
        !self.0.borrow().callable().any(|_| true)
    }

    /// Trust in the project.
    pub fn trust(&self) -> Trust {
        self.0.borrow().trust
    }

    /// Names of all skills, whether or not the model may call them. Commands are not included.
    pub fn names(&self) -> Vec<String> {
        let set = self.0.borrow();
        set.files.iter().filter(|file| file.is_skill()).map(|file| file.name.clone()).collect()
    }

    /// Skills that the model may call, for the host.
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        self.0.borrow().callable().map(|file| commands::to_slash_command(file)).collect()
    }

    /// List of skills for the model; `None` if it is empty.
    pub fn listing(&self) -> Option<String> {
        let set = self.0.borrow();
        let listed = set.callable().filter(|file| is_listed(file));
        let entries: Vec<(&str, &str)> =
            listed.map(|file| (file.name.as_str(), file.description.text())).collect();
        listing::render(&entries)
    }

    /// Finds a skill that the model calls by its exact name.
    pub fn find_callable(&self, name: &str) -> Result<Arc<CommandFile>, SkillError> {
        let set = self.0.borrow();
        if let Some(file) = set.callable().find(|file| file.name == name) {
            return Ok(Arc::clone(file));
        }
        if set.files.iter().any(|file| file.name == name && !file.callers.includes_model()) {
            return Err(SkillError::UserOnly(name.to_owned()));
        }
        let known = match set.callable().find(|file| file.matches_name(name)) {
            Some(file) => format!("Its name is {}.", file.name),
            None => set.list_known(),
        };
        Err(SkillError::Unknown { name: name.to_owned(), known })
    }

    /// Text of a skill that an agent definition preloads, found by name or alias, regardless of who may call it.
    pub fn render_body(&self, name: &str) -> Result<String, SkillError> {
        let set = self.0.borrow().clone();
        let mut files = set.files.iter().filter(|file| file.is_skill());
        let exact = files.clone().find(|file| file.name == name);
        let Some(file) = exact.or_else(|| files.find(|file| file.matches_name(name))) else {
            return Err(SkillError::Unknown { name: name.to_owned(), known: set.list_known() });
        };
        let parsed = file.parse().map_err(SkillError::Unreadable)?;
        let dir = file.skill_dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
        Ok(format!("Base directory for this skill: {dir}\n\n{}", file.expand_paths(&parsed.body)))
    }

    /// Returns true if calling the skill adds allow rules or hooks.
    pub fn grants_permissions(&self, name: &str) -> bool {
        let set = self.0.borrow();
        let file = set.files.iter().find(|file| file.name == name);
        file.is_some_and(|file| file.grants_permissions && file.may_grant_permissions(set.trust))
    }
}

impl SkillSet {
    /// Commands and skills that the model may call.
    fn callable(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.includes_model() && self.is_allowed(file))
    }

    /// Returns true unless the host's limit excludes it. The plugin prefix may be omitted.
    fn is_allowed(&self, file: &CommandFile) -> bool {
        let Some(only) = &self.allowed else { return true };
        only.iter().any(|name| *name == file.name || file.name.ends_with(&format!(":{name}")))
    }

    fn list_known(&self) -> String {
        let names: Vec<&str> = self.callable().map(|file| file.name.as_str()).take(MAX_NAMED).collect();
        match names.as_slice() {
            [] => "There are no skills.".into(),
            names => format!("Available: {}.", names.join(", ")),
        }
    }
}

/// Returns true if the model's list includes it: skills need a description, commands use their first line.
fn is_listed(file: &CommandFile) -> bool {
    !file.is_skill() || matches!(file.description, CommandDescription::Given(_))
}

/// Parses the host's limit; `None` for all.
fn parse_allowed(only: Option<Vec<String>>) -> Option<Vec<String>> {
    only.filter(|names| !names.iter().any(|name| matches!(name.as_str(), "*" | "all")))
}

#[cfg(test)]
pub(crate) mod tests;
