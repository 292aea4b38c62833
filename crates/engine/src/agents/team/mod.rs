//! Teams: a lead and named agents that live on between their errands. Each has a mailbox; mail is pushed, never polled.
//!
//! A teammate that has nothing to do rests, and a run does not wait for those that rest. Messages are data: they approve
//! nothing and change no rule. Rooms: `roll` (one team), [`letter`], `mail` (who writes to whom), `requests` (what is asked
//! in a fixed form), [`seat`] (a teammate's place in the team), [`mate`] (its life), `record` and `folder` (what is kept of
//! the team on disk), `left` (what an earlier run has left there).

mod folder;
mod left;
pub mod letter;
mod mail;
pub mod mate;
mod record;
pub mod requests;
mod roll;
pub mod seat;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use self::folder::Folder;
use self::record::Record;
use self::roll::{Member, Team};
use crate::ids;
use crate::inbox::Inbox;

pub use self::roll::{MemberFacts, MemberInfo};
pub use self::seat::Seat;

/// The lead's name in its team.
pub const LEAD: &str = "team-lead";

/// How many letters a team may write in one run, unless the environment says otherwise: two agents that answer each
/// other must come to an end.
const MOST_LETTERS: usize = 500;

/// The variable that says it.
pub const LETTERS_VARIABLE: &str = "WHIMBREL_TEAM_LETTERS";

/// The team of a session, if it has one. Cheap to clone.
#[derive(Clone)]
pub struct Teams {
    shared: Arc<Shared>,
}

struct Shared {
    team: Mutex<Option<Team>>,
    inbox: Inbox,
    /// Where teams are kept on disk; none keeps nothing.
    config: Option<PathBuf>,
    session: String,
    most_letters: usize,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Who gets it.
    pub to: String,
    /// Whether its reader is at work and takes it up afterwards, or is woken by it.
    pub reader_works: bool,
}

impl Teams {
    /// No team yet. Letters to the lead are posted to `inbox`; a team may write `most_letters`, or the usual number.
    pub fn new(inbox: Inbox, config: Option<PathBuf>, session: String, most_letters: Option<usize>) -> Self {
        let most_letters = most_letters.unwrap_or(MOST_LETTERS);
        Self { shared: Arc::new(Shared { team: Mutex::default(), inbox, config, session, most_letters }) }
    }

    /// Founds a team. What an earlier run has left under its name is not this one's.
    pub fn create(&self, name: &str, description: &str) -> Result<Value, String> {
        let name = checked(name)?;
        let mut place = self.team();
        if let Some(team) = &*place {
            return Err(format!(
                "There is a team already: {}. Delete it before you found another one.",
                team.name
            ));
        }
        let folder = self.shared.config.as_ref().map(|config| Folder::new(config, &name, &ids::uuid()));
        let record = folder.map(Record::begin).transpose();
        let record = record.map_err(|error| format!("The team cannot be kept on disk: {error}."))?;
        let file = record.as_ref().map(|record| record.config().display().to_string());
        let team = Team::found(name.clone(), description, &self.shared.session, record);
        *place = Some(team);
        Ok(json!({"team_name": name, "team_file_path": file, "lead_agent_id": format!("{LEAD}@{name}")}))
    }

    /// Dissolves the team, unless somebody is at work.
    pub fn delete(&self) -> Result<Value, String> {
        let mut place = self.team();
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
            member.leaving = true;
            member.bell.notify_one();
        }
        let (name, removed) = (team.name.clone(), team.record.as_ref().map_or(Ok(()), Record::remove));
        *place = None;
        removed
            .map_err(|error| format!("The team is dissolved, but its files cannot be removed: {error}."))?;
        Ok(json!({"success": true, "message": format!("The team {name} is dissolved."), "team_name": name}))
    }

    /// Whether this is the name of the team, however it is written.
    pub fn is_called(&self, name: &str) -> bool {
        self.name().is_some_and(|team| team == filed(name))
    }

    /// The name of the team, if there is one.
    pub fn name(&self) -> Option<String> {
        self.team().as_ref().map(|team| team.name.clone())
    }

    /// Whether somebody of this name can be written to.
    pub fn has(&self, name: &str) -> bool {
        self.team().as_ref().is_some_and(|team| team.knows(&bare(name)))
    }

    /// Everybody who can be written to, the lead first; nobody if there is no team.
    pub fn names(&self) -> Vec<String> {
        self.team().as_ref().map(Team::names).unwrap_or_default()
    }

    /// Everybody but the lead.
    pub fn members(&self) -> Vec<MemberInfo> {
        let shown = |team: &Team| team.members.iter().map(Member::info).collect();
        self.team().as_ref().map(shown).unwrap_or_default()
    }

    /// How many teammates are at work, or have mail to take up.
    pub fn active(&self) -> usize {
        self.team().as_ref().map_or(0, |team| team.members.iter().filter(|member| member.is_active()).count())
    }

    /// Whole values are put in or taken out at once; a panic elsewhere cannot leave them half changed.
    fn team(&self) -> MutexGuard<'_, Option<Team>> {
        self.shared.team.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name as it is known in the team, without the team behind it.
fn bare(name: &str) -> String {
    filed(name.split_once('@').map_or(name, |(name, _)| name))
}

/// A name as that of a file.
fn filed(name: &str) -> String {
    name.trim().replace(' ', "-")
}

/// A name that can also be that of a file.
fn checked(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let name = name.trim();
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(good) {
        return Err(format!("{name:?} cannot be a name: use up to 64 letters, digits, '-' and '_'."));
    }
    Ok(filed(name))
}

#[cfg(test)]
mod tests;
