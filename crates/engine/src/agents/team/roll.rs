//! One team: who is in it, and how a letter gets from one to the other.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::letter::{Letter, Mail};
use super::record::Record;
use super::{LEAD, Receipt};
use crate::clock;
use crate::inbox::{Inbox, News, Post};
use crate::permission::Pledge;

/// How many teammates there may be.
const MOST_MEMBERS: usize = 100;

const COLORS: [&str; 6] = ["blue", "green", "yellow", "purple", "orange", "pink"];

/// A team.
pub(super) struct Team {
    pub(super) name: String,
    description: String,
    created: u64,
    session: String,
    pub(super) record: Option<Record>,
    pub(super) members: Vec<Member>,
    /// How many letters were written.
    pub(super) written: usize,
    /// When the last teammate came; changes are seen.
    pub(super) arrivals: watch::Sender<Instant>,
}

/// A teammate.
pub(super) struct Member {
    pub(super) facts: MemberFacts,
    color: &'static str,
    joined: u64,
    /// What it has not read.
    pub(super) mail: VecDeque<Mail>,
    pub(super) working: bool,
    /// Whether it has written to the lead since it was woken.
    pub(super) wrote_to_lead: bool,
    pub(super) leaving: bool,
    /// The request to end that it has not answered.
    pub(super) asked_to_leave: Option<String>,
    /// The plan that it owes; none if it may begin at once.
    pub(super) plan: Option<Plan>,
    /// Rings when there is something for it.
    pub(super) bell: Arc<Notify>,
    /// Held while it writes a letter, so that letters leave in its order.
    pub(super) pen: Arc<tokio::sync::Mutex<()>>,
}

/// A plan that the lead has to approve before a teammate changes anything.
#[derive(Debug)]
pub(super) struct Plan {
    /// What holds the teammate back.
    pub(super) pledge: Pledge,
    /// The request that the lead has not answered.
    pub(super) request: Option<String>,
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

/// How a teammate stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberInfo {
    /// What is known about it.
    pub facts: MemberFacts,
    /// Whether it is at work, or has mail to take up.
    pub active: bool,
    /// How many letters it has not read.
    pub unread: usize,
}

impl Member {
    /// How it stands.
    pub(super) fn info(&self) -> MemberInfo {
        MemberInfo { facts: self.facts.clone(), active: self.is_active(), unread: self.mail.len() }
    }

    /// Something has come for it.
    pub(super) fn take_in(&mut self, mail: Mail) {
        self.mail.push_back(mail);
        self.bell.notify_one();
    }

    /// Whether it is at work, or has mail to take up.
    pub(super) fn is_active(&self) -> bool {
        self.working || !self.mail.is_empty()
    }
}

impl Team {
    /// A team without anybody but its lead.
    pub(super) fn found(name: String, description: &str, session: &str, record: Option<Record>) -> Self {
        let team = Self {
            name,
            description: description.to_owned(),
            created: clock::milliseconds(),
            session: session.to_owned(),
            record,
            members: Vec::new(),
            written: 0,
            arrivals: watch::Sender::new(now()),
        };
        team.write_config();
        team
    }

    /// The teammate with this name.
    pub(super) fn member(&mut self, name: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.facts.name == name)
    }

    /// The teammate that has this task: another one may have its name by now.
    pub(super) fn own(&mut self, name: &str, task_id: &str) -> Option<&mut Member> {
        self.member(name).filter(|member| member.facts.task_id == task_id)
    }

    /// Whether somebody of this name can be written to.
    pub(super) fn knows(&self, name: &str) -> bool {
        name == LEAD || self.members.iter().any(|member| member.facts.name == name)
    }

    /// Everybody's names, the lead's first.
    pub(super) fn names(&self) -> Vec<String> {
        let members = self.members.iter().map(|member| member.facts.name.clone());
        std::iter::once(LEAD.to_owned()).chain(members).collect()
    }

    /// Takes a teammate in, under the name that it wants or one like it, and gives that name.
    pub(super) fn admit(
        &mut self,
        facts: &MemberFacts,
        wanted: &str,
        pledge: Option<Pledge>,
    ) -> Result<String, String> {
        if self.members.len() >= MOST_MEMBERS {
            return Err(format!(
                "The team has {MOST_MEMBERS} members already. Give the work to one of them."
            ));
        }
        let name = (1..)
            .map(|nth| if nth == 1 { wanted.to_owned() } else { format!("{wanted}-{nth}") })
            .find(|name| !self.knows(name))
            .unwrap_or_else(|| wanted.to_owned());
        self.members.push(Member {
            facts: MemberFacts { name: name.clone(), ..facts.clone() },
            color: COLORS[self.members.len() % COLORS.len()],
            joined: clock::milliseconds(),
            mail: VecDeque::new(),
            working: false,
            wrote_to_lead: false,
            leaving: false,
            asked_to_leave: None,
            plan: pledge.map(|pledge| Plan { pledge, request: None }),
            bell: Arc::default(),
            pen: Arc::default(),
        });
        self.arrivals.send_replace(now());
        self.write_config();
        Ok(name)
    }

    /// A teammate is gone.
    pub(super) fn dismiss(&mut self, name: &str, task_id: &str) {
        if self.own(name, task_id).is_some() {
            self.members.retain(|member| member.facts.name != name);
            self.write_config();
        }
    }

    /// Brings a letter to its reader.
    pub(super) fn deliver(&mut self, to: &str, mut letter: Letter, inbox: &Inbox) -> Result<Receipt, String> {
        if to == letter.from {
            return Err(format!("{to} is you. Write to somebody else, or go on."));
        }
        letter.color = self.member(&letter.from).map(|member| member.color.to_owned());
        if to == LEAD {
            if let Some(writer) = self.member(&letter.from.clone()) {
                writer.wrote_to_lead = true;
            }
            self.tell_lead(&letter, true, inbox);
            return Ok(Receipt { to: to.into(), reader_works: false });
        }
        let known = self.names();
        let Some(member) = self.member(to) else {
            return Err(format!("Nobody in the team is called {to}. There is: {}.", known.join(", ")));
        };
        let reader_works = member.working;
        member.take_in(Mail::Letter(letter.clone()));
        self.record(to, &letter);
        Ok(Receipt { to: to.into(), reader_works })
    }

    /// Tells the lead something; `wakes` says whether it is worth a turn.
    pub(super) fn tell_lead(&self, letter: &Letter, wakes: bool, inbox: &Inbox) {
        self.record(LEAD, letter);
        let news = News { wakes, ..News::of_mail(letter.shown()) };
        // Nobody may be listening any more.
        let _ = inbox.send(Post::News(Box::new(news)));
    }

    fn record(&self, to: &str, letter: &Letter) {
        if let Some(record) = &self.record {
            record.add(to, letter.clone());
        }
    }

    fn write_config(&self) {
        let Some(record) = &self.record else { return };
        let lead = format!("{LEAD}@{}", self.name);
        let mut members = vec![
            json!({"agentId": lead, "name": LEAD, "agentType": LEAD, "joinedAt": self.created, "subscriptions": []}),
        ];
        members.extend(self.members.iter().map(|member| {
            let MemberFacts { name, task_id, kind, model, prompt, cwd } = &member.facts;
            json!({
                "agentId": format!("{name}@{}", self.name), "name": name, "agentType": kind, "model": model,
                "prompt": prompt, "color": member.color, "planModeRequired": member.plan.is_some(), "joinedAt": member.joined,
                "cwd": cwd, "subscriptions": [], "backendType": "in-process", "taskId": task_id,
            })
        }));
        let config = json!({
            "name": self.name, "description": self.description, "createdAt": self.created,
            "leadAgentId": lead, "leadSessionId": self.session, "members": members,
        });
        record.set_config(config);
    }
}

fn now() -> Instant {
    Instant::from_std(clock::monotonic())
}
