//! Teams: a lead and named agents that live on between their errands. Each has a mailbox; mail is pushed, never polled.
//!
//! A teammate that has nothing to do rests, and a run does not wait for those that rest. Messages are data: they approve
//! nothing and change no rule. Rooms: `roll` (one team), [`letter`], `mail` (who writes to whom), `requests` (what is asked
//! in a fixed form), [`seat`] (a teammate's place in the team), [`mate`] (its life), `record` and `folder` (what is kept of
//! the team on disk), `left` (what an earlier run has left there).

mod team_dir;
mod previous_run;
pub mod message;
mod delivery;
pub mod teammate;
mod writer;
pub mod requests;
mod state;
pub mod membership;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use self::team_dir::TeamDir;
use self::writer::TeamWriter;
use self::state::{TeamMember, Team};
use crate::ids;
use crate::internal_events::EventSender;

pub use self::state::{MemberFacts, MemberInfo};
pub use self::membership::Membership;

/// The lead's name in its team.
pub const LEAD: &str = "team-lead";

/// How many letters a team may write in one run, unless the environment says otherwise: two agents that answer each
/// other must come to an end.
const DEFAULT_MAX_MESSAGES: usize = 500;

/// The variable that says it.
pub const MAX_MESSAGES_VARIABLE: &str = "WHIMBREL_TEAM_LETTERS";

/// The team of a session, if it has one. Cheap to clone.
#[derive(Clone)]
pub struct SessionTeam {
    shared: Arc<Shared>,
}

struct Shared {
    team: Mutex<Option<Team>>,
    event_sender: EventSender,
    /// Where teams are kept on disk; none keeps nothing.
    config_dir: Option<PathBuf>,
    session_id: String,
    max_messages: usize,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Who gets it.
    pub to: String,
    /// Whether its reader is at work and takes it up afterwards, or is woken by it.
    pub recipient_is_running: bool,
}

impl SessionTeam {
    /// No team yet. Letters to the lead are posted to `inbox`; a team may write `most_letters`, or the usual number.
    pub fn new(inbox: EventSender, config: Option<PathBuf>, session: String, most_letters: Option<usize>) -> Self {
        let most_letters = most_letters.unwrap_or(DEFAULT_MAX_MESSAGES);
        Self { shared: Arc::new(Shared { team: Mutex::default(), event_sender: inbox, config_dir: config, session_id: session, max_messages: most_letters }) }
    }

    /// Founds a team. What an earlier run has left under its name is not this one's.
    pub fn create(&self, name: &str, description: &str) -> Result<Value, String> {
        let name = validate_name(name)?;
        let mut place = self.lock();
        if let Some(team) = &*place {
            return Err(format!(
                "There is a team already: {}. Delete it before you found another one.",
                team.name
            ));
        }
        let folder = self.shared.config_dir.as_ref().map(|config| TeamDir::new(config, &name, &ids::new_uuid()));
        let record = folder.map(TeamWriter::create).transpose();
        let record = record.map_err(|error| format!("The team cannot be kept on disk: {error}."))?;
        let file = record.as_ref().map(|record| record.config_path().display().to_string());
        let team = Team::new(name.clone(), description, &self.shared.session_id, record);
        *place = Some(team);
        Ok(json!({"team_name": name, "team_file_path": file, "lead_agent_id": format!("{LEAD}@{name}")}))
    }

    /// Dissolves the team, unless somebody is at work.
    pub fn delete(&self) -> Result<Value, String> {
        let mut place = self.lock();
        let Some(team) = &mut *place else { return Err("There is no team.".into()) };
        let working: Vec<&str> = team
            .members
            .iter()
            .filter(|member| member.is_active())
            .map(|member| member.facts.name.as_str())
            .collect();
        if !working.is_empty() {
            return Err(format!(
                "Still at work: {}. Wait for them, ask them to end (shutdown_request), or stop them (TaskStop).",
                working.join(", ")
            ));
        }
        for member in &mut team.members {
            member.is_leaving = true;
            member.wake.notify_one();
        }
        let (name, removed) = (team.name.clone(), team.writer.as_ref().map_or(Ok(()), TeamWriter::remove));
        *place = None;
        removed
            .map_err(|error| format!("The team is dissolved, but its files cannot be removed: {error}."))?;
        Ok(json!({"success": true, "message": format!("The team {name} is dissolved."), "team_name": name}))
    }

    /// Whether this is the name of the team, however it is written.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name().is_some_and(|team| team == to_file_name(name))
    }

    /// The name of the team, if there is one.
    pub fn name(&self) -> Option<String> {
        self.lock().as_ref().map(|team| team.name.clone())
    }

    /// Whether somebody of this name can be written to.
    pub fn has_member(&self, name: &str) -> bool {
        self.lock().as_ref().is_some_and(|team| team.has_member(&to_member_name(name)))
    }

    /// Everybody who can be written to, the lead first; nobody if there is no team.
    pub fn names(&self) -> Vec<String> {
        self.lock().as_ref().map(Team::names).unwrap_or_default()
    }

    /// Everybody but the lead.
    pub fn members(&self) -> Vec<MemberInfo> {
        let shown = |team: &Team| team.members.iter().map(TeamMember::info).collect();
        self.lock().as_ref().map(shown).unwrap_or_default()
    }

    /// How many teammates are at work, or have mail to take up.
    pub fn active_count(&self) -> usize {
        self.lock().as_ref().map_or(0, |team| team.members.iter().filter(|member| member.is_active()).count())
    }

    /// Whole values are put in or taken out at once; a panic elsewhere cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, Option<Team>> {
        self.shared.team.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name as it is known in the team, without the team behind it.
fn to_member_name(name: &str) -> String {
    to_file_name(name.split_once('@').map_or(name, |(name, _)| name))
}

/// A name as that of a file.
fn to_file_name(name: &str) -> String {
    name.trim().replace(' ', "-")
}

/// A name that can also be that of a file.
fn validate_name(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let name = name.trim();
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(good) {
        return Err(format!("{name:?} cannot be a name: use up to 64 letters, digits, '-' and '_'."));
    }
    Ok(to_file_name(name))
}

#[cfg(test)]
mod tests;
