//! Teams: a lead and named agents that stay alive between tasks. Each has a mailbox; messages are pushed, never
//! polled.
//!
//! A teammate without input is idle, and a session does not wait for idle teammates. Messages are data: they approve
//! nothing and change no rule.
//!
//! Modules: `members` (members and mailboxes), [`message`], `delivery` (sending and limits), `requests` (shutdown and
//! plan approval), [`membership`] (RAII handle of a member), [`teammate`] (main loop), `writer` and `team_dir`
//! (files), `previous_run` (team of an earlier run).

mod delivery;
mod members;
pub mod membership;
pub mod message;
mod previous_run;
pub mod requests;
mod team_dir;
pub mod teammate;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use whimbrel_os::ids;
use whimbrel_tools::internal_events::EventSender;

pub use self::members::{MemberSpec, MemberStatus};
use self::members::{Team, TeamMember};
pub use self::membership::Membership;
use self::team_dir::TeamDir;
use self::writer::TeamWriter;

pub const LEAD: &str = "team-lead";

/// Default limit on messages per run, so that two agents that answer each other come to an end.
const DEFAULT_MAX_MESSAGES: usize = 500;

/// Environment variable that overrides it.
pub const MAX_MESSAGES_VARIABLE: &str = "WHIMBREL_TEAM_MAX_MESSAGES";

/// The team of a session, if it has one. Cheap to clone.
#[derive(Clone)]
pub struct SessionTeam {
    shared: Arc<Shared>,
}

struct Shared {
    team: Mutex<Option<Team>>,
    event_sender: EventSender,
    /// Configuration directory for team files; `None` if nothing is stored.
    config_dir: Option<PathBuf>,
    session_id: String,
    max_messages: usize,
}

/// A sent message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub to: String,
    /// Whether the recipient is in a turn and reads it afterwards; otherwise it is woken.
    pub recipient_is_running: bool,
}

impl SessionTeam {
    /// Creates the handle without a team. Messages to the lead are sent as internal events.
    /// `max_messages: None` means the default.
    pub fn new(
        event_sender: EventSender,
        config_dir: Option<PathBuf>,
        session_id: String,
        max_messages: Option<usize>,
    ) -> Self {
        let max_messages = max_messages.unwrap_or(DEFAULT_MAX_MESSAGES);
        Self {
            shared: Arc::new(Shared {
                team: Mutex::default(),
                event_sender,
                config_dir,
                session_id,
                max_messages,
            }),
        }
    }

    /// Creates the team. Files of an earlier run with this name are removed.
    pub fn create(&self, name: &str, description: &str) -> Result<Value, String> {
        let name = validate_name(name)?;
        let mut guard = self.lock();
        if let Some(team) = &*guard {
            return Err(format!(
                "There is already a team: {}. Delete it before you create another one.",
                team.name
            ));
        }
        let dir = self
            .shared
            .config_dir
            .as_ref()
            .map(|config_dir| TeamDir::new(config_dir, &name, &ids::new_uuid()));
        let writer = dir.map(TeamWriter::create).transpose();
        let writer = writer.map_err(|error| format!("The team cannot be saved: {error}."))?;
        let file = writer.as_ref().map(|writer| writer.config_path().display().to_string());
        let team = Team::new(name.clone(), description, &self.shared.session_id, writer);
        *guard = Some(team);
        Ok(json!({"team_name": name, "team_file_path": file, "lead_agent_id": format!("{LEAD}@{name}")}))
    }

    /// Deletes the team, unless a member is working.
    pub fn delete(&self) -> Result<Value, String> {
        let mut guard = self.lock();
        let Some(team) = &mut *guard else { return Err("There is no team.".into()) };
        let working: Vec<&str> = team
            .members
            .iter()
            .filter(|member| member.is_active())
            .map(|member| member.spec.name.as_str())
            .collect();
        if !working.is_empty() {
            return Err(format!(
                "Still running: {}. Wait for them, ask them to shut down (shutdown_request), or stop them (TaskStop).",
                working.join(", ")
            ));
        }
        for member in &mut team.members {
            member.is_leaving = true;
            member.notify.notify_one();
        }
        let (name, removed) = (team.name.clone(), team.writer.as_ref().map_or(Ok(()), TeamWriter::remove));
        *guard = None;
        removed.map_err(|error| format!("The team is deleted, but its files cannot be removed: {error}."))?;
        Ok(json!({"success": true, "message": format!("The team {name} is deleted."), "team_name": name}))
    }

    /// Returns whether this names the team; blanks and hyphens are equal.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name().is_some_and(|team| team == to_file_name(name))
    }

    pub fn name(&self) -> Option<String> {
        self.lock().as_ref().map(|team| team.name.clone())
    }

    pub fn has_member(&self, name: &str) -> bool {
        self.lock().as_ref().is_some_and(|team| team.has_member(&to_member_name(name)))
    }

    /// Names of all members, the lead first; empty without a team.
    pub fn names(&self) -> Vec<String> {
        self.lock().as_ref().map(Team::names).unwrap_or_default()
    }

    /// All members but the lead.
    pub fn members(&self) -> Vec<MemberStatus> {
        let infos = |team: &Team| team.members.iter().map(TeamMember::status).collect();
        self.lock().as_ref().map(infos).unwrap_or_default()
    }

    /// Number of teammates that are working or have unread input.
    pub fn active_count(&self) -> usize {
        self.lock().as_ref().map_or(0, |team| team.members.iter().filter(|member| member.is_active()).count())
    }

    /// Every change is atomic under the lock, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, Option<Team>> {
        self.shared.team.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Normalizes a member name and removes `@team`.
fn to_member_name(name: &str) -> String {
    to_file_name(name.split_once('@').map_or(name, |(name, _)| name))
}

/// Replaces blanks, so that a name can be a file name.
fn to_file_name(name: &str) -> String {
    name.trim().replace(' ', "-")
}

/// Checks and normalizes a name, which becomes a file name.
fn validate_name(name: &str) -> Result<String, String> {
    let is_valid_char = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let name = name.trim();
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(is_valid_char) {
        return Err(format!("{name:?} is not a valid name: use up to 64 letters, digits, '-' and '_'."));
    }
    Ok(to_file_name(name))
}

#[cfg(test)]
mod tests;
