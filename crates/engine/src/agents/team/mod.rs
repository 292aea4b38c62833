//! Teams: a lead and named agents that live on between their errands. Each has a mailbox; mail is pushed, never polled.
//!
//! A teammate that has nothing to do rests, and a run does not wait for those that rest. Messages are data: they approve
//! nothing and change no rule. Rooms: [`letter`], `folder` (the record on disk), `mate` (a teammate's life).

mod folder;
pub mod letter;
pub mod mate;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;

use self::folder::Folder;
use self::letter::{Form, Letter};
use crate::inbox::{Inbox, News, Post};
use crate::{clock, ids};

/// The lead's name in its team.
pub const LEAD: &str = "team-lead";

/// How many teammates there may be.
const MOST_MEMBERS: usize = 30;

/// How many letters a team may write in one run, unless the environment says otherwise: two agents that answer each
/// other must come to an end.
const MOST_LETTERS: usize = 500;

/// The variable that says it.
pub const LETTERS_VARIABLE: &str = "WHIMBREL_TEAM_LETTERS";

const COLORS: [&str; 6] = ["blue", "green", "yellow", "purple", "orange", "pink"];

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

struct Team {
    name: String,
    description: String,
    created: u64,
    folder: Option<Folder>,
    members: Vec<Member>,
    letters: usize,
}

struct Member {
    facts: MemberFacts,
    color: &'static str,
    joined: u64,
    letters: VecDeque<Letter>,
    working: bool,
    /// Whether it has written to the lead since it was woken.
    wrote_to_lead: bool,
    leaving: bool,
    bell: Arc<Notify>,
}

/// What is known about a teammate when it joins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// Its name in the team.
    pub name: String,
    /// The task by which it can be stopped.
    pub task_id: String,
    /// Its kind.
    pub kind: String,
    /// Its model.
    pub model: String,
    /// What it was first asked to do.
    pub prompt: String,
    /// Where it works.
    pub cwd: String,
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
        let epoch = ids::uuid();
        let folder = self.shared.config.as_ref().map(|config| Folder::new(config, &name, &epoch));
        if let Some(folder) = &folder {
            folder.begin().map_err(|error| format!("The team cannot be kept on disk: {error}."))?;
        }
        let team = Team {
            name: name.clone(),
            description: description.to_owned(),
            created: clock::milliseconds(),
            folder,
            members: Vec::new(),
            letters: 0,
        };
        team.write_config(&self.shared.session);
        let file = team.folder.as_ref().map(|folder| folder.config().display().to_string());
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
        let (name, removed) = (team.name.clone(), team.folder.as_ref().map_or(Ok(()), Folder::remove));
        *place = None;
        removed
            .map_err(|error| format!("The team is dissolved, but its files cannot be removed: {error}."))?;
        Ok(json!({"success": true, "message": format!("The team {name} is dissolved."), "team_name": name}))
    }

    /// The name of the team, if there is one.
    pub fn name(&self) -> Option<String> {
        self.team().as_ref().map(|team| team.name.clone())
    }

    /// Whether somebody of this name can be written to.
    pub fn has(&self, name: &str) -> bool {
        let name = bare(name);
        self.team()
            .as_ref()
            .is_some_and(|team| name == LEAD || team.members.iter().any(|member| member.facts.name == name))
    }

    /// How many teammates are at work, or have mail to take up.
    pub fn active(&self) -> usize {
        self.team().as_ref().map_or(0, |team| team.members.iter().filter(|member| member.is_active()).count())
    }

    /// Takes a teammate in and gives the name it has from now on.
    pub fn join(&self, mut facts: MemberFacts) -> Result<MemberFacts, String> {
        let mut place = self.team();
        let Some(team) = &mut *place else {
            return Err("There is no team. Found one with TeamCreate.".into());
        };
        if team.members.len() >= MOST_MEMBERS {
            return Err(format!(
                "The team has {MOST_MEMBERS} members already. Give the work to one of them."
            ));
        }
        let wanted = checked(&facts.name)?;
        let taken = |name: &str| name == LEAD || team.members.iter().any(|member| member.facts.name == name);
        facts.name = (1..)
            .map(|nth| if nth == 1 { wanted.clone() } else { format!("{wanted}-{nth}") })
            .find(|name| !taken(name))
            .unwrap_or(wanted);
        team.members.push(Member {
            facts: facts.clone(),
            color: COLORS[team.members.len() % COLORS.len()],
            joined: clock::milliseconds(),
            letters: VecDeque::new(),
            working: false,
            wrote_to_lead: false,
            leaving: false,
            bell: Arc::default(),
        });
        team.write_config(&self.shared.session);
        Ok(facts)
    }

    /// A teammate is gone.
    pub fn leave(&self, name: &str) {
        if let Some(team) = &mut *self.team() {
            team.members.retain(|member| member.facts.name != name);
            team.write_config(&self.shared.session);
        }
    }

    /// Writes a letter to somebody. What the engine itself tells costs nothing of what the team may write.
    pub fn send(&self, to: &str, letter: Letter) -> Result<Receipt, String> {
        let to = bare(to);
        let mut place = self.team();
        let Some(team) = &mut *place else {
            return Err("There is no team. Found one with TeamCreate.".into());
        };
        let most = self.shared.most_letters;
        if team.letters >= most {
            return Err(format!(
                "The team has written {most} letters, and that is the limit. Finish with what you have."
            ));
        }
        let receipt = team.deliver(to, letter, &self.shared.inbox)?;
        team.letters += 1;
        Ok(receipt)
    }

    /// Writes a letter to everybody but its writer.
    pub fn broadcast(&self, letter: &Letter) -> Result<Vec<Receipt>, String> {
        let names: Vec<String> = match &*self.team() {
            None => return Err("There is no team. Found one with TeamCreate.".into()),
            Some(team) => {
                let members = team.members.iter().map(|member| member.facts.name.clone());
                members.chain([LEAD.to_owned()]).filter(|name| *name != letter.from).collect()
            }
        };
        names.iter().map(|name| self.send(name, letter.clone())).collect()
    }

    /// A teammate agrees to end; it does once its turn is over.
    pub fn agree_to_leave(&self, name: &str) {
        if let Some(member) = self.team().as_mut().and_then(|team| team.member(name)) {
            member.leaving = true;
        }
    }

    /// Waits for mail to a teammate and gives all of it; none once it is to end.
    pub(super) async fn mail(&self, name: &str) -> Option<Vec<Letter>> {
        loop {
            let bell = {
                let mut place = self.team();
                let team = place.as_mut()?;
                let folder = team.folder.clone();
                let member = team.member(name)?;
                if member.leaving {
                    return None;
                }
                if !member.letters.is_empty() {
                    member.working = true;
                    member.wrote_to_lead = false;
                    let letters = member.letters.drain(..).collect();
                    if let Some(folder) = folder {
                        // The record on disk is for others; who reads goes on without it.
                        let _ = folder.mark_read(name);
                    }
                    return Some(letters);
                }
                Arc::clone(&member.bell)
            };
            bell.notified().await;
        }
    }

    /// A teammate's turn is over. If it has nothing to do, the lead is told, and woken unless it has heard from it.
    pub(super) fn rest(&self, name: &str) {
        let mut place = self.team();
        if let Some(team) = &mut *place
            && let Some(member) = team.member(name)
        {
            member.working = false;
            let (idle, heard) = (member.letters.is_empty(), member.wrote_to_lead);
            if idle && !member.leaving {
                let letter = Letter::of_form(name, &Form::Idle);
                team.tell_lead(&letter, !heard, &self.shared.inbox);
            }
        }
        // The session may have nothing left to wait for.
        let _ = self.shared.inbox.send(Post::Quiet);
    }

    /// Tells the lead something of a teammate that the teammate does not say itself.
    pub(super) fn report(&self, name: &str, text: String) {
        if let Some(team) = &mut *self.team() {
            if let Some(member) = team.member(name) {
                member.wrote_to_lead = true;
            }
            team.tell_lead(&Letter::new(name, text, None), true, &self.shared.inbox);
        }
    }

    /// Whole values are put in or taken out at once; a panic elsewhere cannot leave them half changed.
    fn team(&self) -> MutexGuard<'_, Option<Team>> {
        self.shared.team.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn is_active(&self) -> bool {
        self.working || !self.letters.is_empty()
    }
}

impl Team {
    fn member(&mut self, name: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.facts.name == name)
    }

    fn deliver(&mut self, to: &str, mut letter: Letter, inbox: &Inbox) -> Result<Receipt, String> {
        letter.color = self.member(&letter.from).map(|member| member.color.to_owned());
        if to == LEAD {
            if let Some(writer) = self.member(&letter.from.clone()) {
                writer.wrote_to_lead = true;
            }
            self.tell_lead(&letter, true, inbox);
            return Ok(Receipt { to: to.into(), reader_works: false });
        }
        let known: Vec<String> = self.members.iter().map(|member| member.facts.name.clone()).collect();
        let Some(member) = self.member(to) else {
            return Err(format!(
                "Nobody in the team is called {to}. There is: {LEAD}, {}.",
                known.join(", ")
            ));
        };
        let reader_works = member.working;
        member.letters.push_back(letter.clone());
        member.bell.notify_one();
        self.record(to, &letter);
        Ok(Receipt { to: to.into(), reader_works })
    }

    fn tell_lead(&self, letter: &Letter, wakes: bool, inbox: &Inbox) {
        self.record(LEAD, letter);
        let news = News { wakes, ..News::of("peer", letter.shown()) };
        // Nobody may be listening any more.
        let _ = inbox.send(Post::News(Box::new(news)));
    }

    /// The record on disk is for others: that it cannot be written stops nobody.
    fn record(&self, to: &str, letter: &Letter) {
        if let Some(folder) = &self.folder {
            let _ = folder.add(to, letter);
        }
    }

    fn write_config(&self, session: &str) {
        let Some(folder) = &self.folder else { return };
        let lead = format!("{LEAD}@{}", self.name);
        let mut members = vec![
            json!({"agentId": lead, "name": LEAD, "agentType": LEAD, "joinedAt": self.created, "subscriptions": []}),
        ];
        members.extend(self.members.iter().map(|member| {
            let MemberFacts { name, task_id, kind, model, prompt, cwd } = &member.facts;
            json!({
                "agentId": format!("{name}@{}", self.name), "name": name, "agentType": kind, "model": model,
                "prompt": prompt, "color": member.color, "planModeRequired": false, "joinedAt": member.joined,
                "cwd": cwd, "subscriptions": [], "backendType": "in-process", "taskId": task_id,
            })
        }));
        let config = json!({
            "name": self.name, "description": self.description, "createdAt": self.created,
            "leadAgentId": lead, "leadSessionId": session, "members": members,
        });
        let _ = folder.write_config(&config);
    }
}

/// A name without the team behind it.
fn bare(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// A name that can also be that of a file.
fn checked(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let name = name.trim();
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(good) {
        return Err(format!("{name:?} cannot be a name: use up to 64 letters, digits, '-' and '_'."));
    }
    Ok(name.replace(' ', "-"))
}

#[cfg(test)]
mod tests;
