//! Sends agents on errands: in the call that waits for them, or beside the turn.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use whimbrel_models::Effort;
use whimbrel_wire::permission::PermissionMode;

use super::desk::{Delivery, Known, Rested};
use super::notices::{self, Standing};
use super::run::{Run, Who};
use super::team::MemberInfo;
use super::{Agents, Definition, Report, apart};
use crate::ids;
use crate::skills::desk::Loaded;
use crate::tasks::{TaskFacts, TaskKind};
use crate::tools::{Call, Trouble};

/// What an agent is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Errand {
    /// The kind of agent.
    pub kind: String,
    /// The errand in a few words.
    pub description: String,
    /// The errand.
    pub prompt: String,
    /// The model, if not the kind's own.
    pub model: Option<String>,
    /// How hard the model tries, if not as the kind's own.
    pub effort: Option<Effort>,
    /// How many model calls it may take, if not as the kind's own.
    pub max_turns: Option<u32>,
    /// A name by which the agent can be reached.
    pub name: Option<String>,
    /// Whether the turn goes on beside it; none means as its kind says.
    pub background: Option<bool>,
    /// Where it works, if not where its parent does.
    pub isolation: Option<String>,
    /// Its mode, where that is narrower than its parent's.
    pub mode: Option<PermissionMode>,
    /// The skill that the errand is, if it is one: the agent itself reads what it says.
    pub skill: Option<Arc<Loaded>>,
}

/// What came of sending an agent.
#[derive(Debug)]
pub enum Sent {
    /// It is back.
    Back(Box<Report>),
    /// It works beside the turn.
    Away(Launched),
}

/// An agent that works beside the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The agent.
    pub agent_id: String,
    /// Where its report will be.
    pub output_file: PathBuf,
}

/// An agent that was sent off.
struct Underway {
    report: oneshot::Receiver<Report>,
    beside: watch::Receiver<bool>,
    leash: Leash,
    launched: Launched,
}

/// How an agent of an earlier run was met.
enum Met {
    /// It goes on.
    Back(Underway),
    /// Somebody has brought it back already; it takes the message up next.
    AtWork(String),
}

/// Stops an agent when whoever waits for it no longer does.
struct Leash(Option<CancellationToken>);

impl Leash {
    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.cancel();
        }
    }
}

impl Agents {
    /// The kind of this name, if it may be started from here.
    pub fn kind(&self, name: &str) -> Result<&Definition, Trouble> {
        let known: Vec<&Definition> =
            self.home.kinds.iter().filter(|kind| self.position.starts.allows(&kind.name)).collect();
        known.iter().find(|kind| kind.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|kind| kind.name.as_str()).collect();
            Trouble::Refused(format!("There is no agent type '{name}'. There are: {}.", names.join(", ")))
        })
    }

    /// The agents on errands that can be reached from here: those at work, and those that can go on.
    pub fn known(&self) -> Vec<Known> {
        if self.is_mate() {
            return Vec::new();
        }
        let tasks = self.home.tasks.list();
        self.home.desk.known(self.position.agent_id.as_deref(), |id| {
            let task = tasks.iter().find(|task| task.facts.task_id == id)?;
            Some((task.facts.agent_type.clone().unwrap_or_default(), task.facts.description.clone()))
        })
    }

    /// The teammates that can be written to from here.
    pub fn mates(&self) -> Vec<MemberInfo> {
        match self.position.agent_id.is_none() || self.is_mate() {
            true => {
                self.home.teams.members().into_iter().filter(|mate| mate.facts.name != self.name()).collect()
            }
            false => Vec::new(),
        }
    }

    /// Sends an agent on an errand that a call gives. If nobody waits for the answer any more, the agent stops, unless the
    /// turn was to go on beside it.
    pub async fn send(&self, errand: Errand, call: &Call) -> Result<Sent, Trouble> {
        let definition = self.kind(&errand.kind)?.clone();
        let background = errand.background.unwrap_or(definition.background);
        let who = Who::New(Box::new(definition));
        self.launch(ids::task('a'), who, errand, background, call).await?.wait().await
    }

    /// Sends a message to an agent: one at work takes it up next, one that has ended goes on with it beside the turn.
    pub async fn tell(&self, to: &str, message: &str, call: &Call) -> Result<Sent, Trouble> {
        match self.deliver(to, message) {
            Delivery::Waits(agent_id) => Ok(waits(agent_id, call)),
            Delivery::Rested(id, rested) => self.wake(id, *rested, message, true, call).await?.wait().await,
            Delivery::Foreign(id) => Err(foreign(&id)),
            Delivery::Unknown(_) => match self.bring_back(to, message, true, call).await? {
                Met::Back(underway) => underway.wait().await,
                Met::AtWork(agent_id) => Ok(waits(agent_id, call)),
            },
        }
    }

    /// Lets an agent that has ended go on with a further errand; one at work takes it up next.
    pub async fn resume(&self, id: &str, errand: &Errand, call: &Call) -> Result<Sent, Trouble> {
        let background = errand.background.unwrap_or(false);
        match self.deliver(id, &errand.prompt) {
            Delivery::Waits(agent_id) => Ok(waits(agent_id, call)),
            Delivery::Foreign(id) => Err(foreign(&id)),
            Delivery::Rested(id, rested) => {
                self.wake(id, *rested, &errand.prompt, background, call).await?.wait().await
            }
            Delivery::Unknown(_) => match self.bring_back(id, &errand.prompt, background, call).await? {
                Met::Back(underway) => underway.wait().await,
                Met::AtWork(agent_id) => Ok(waits(agent_id, call)),
            },
        }
    }

    fn deliver(&self, to: &str, message: &str) -> Delivery {
        self.home.desk.deliver(self.position.agent_id.as_deref(), to, message)
    }

    async fn wake(
        &self,
        id: String,
        rested: Rested,
        message: &str,
        background: bool,
        call: &Call,
    ) -> Result<Underway, Trouble> {
        let errand = Errand {
            kind: rested.definition.name.clone(),
            description: rested.description.clone(),
            prompt: message.to_owned(),
            ..Errand::default()
        };
        self.launch(id, Who::Again(Box::new(rested)), errand, background, call).await
    }

    /// Lets an agent of an earlier run go on with a message, unless somebody else has brought it back meanwhile.
    async fn bring_back(
        &self,
        to: &str,
        message: &str,
        background: bool,
        call: &Call,
    ) -> Result<Met, Trouble> {
        let _one_at_a_time = self.home.desk.return_door.lock().await;
        let known = match self.deliver(to, message) {
            Delivery::Waits(id) => return Ok(Met::AtWork(id)),
            Delivery::Foreign(id) => return Err(foreign(&id)),
            Delivery::Rested(id, rested) => {
                return self.wake(id, *rested, message, background, call).await.map(Met::Back);
            }
            Delivery::Unknown(known) => known,
        };
        let back = self.recover(to).await?.ok_or_else(|| {
            let mates = self.mates().into_iter().map(|mate| mate.facts.name);
            unknown(to, &mates.chain(known).collect::<Vec<_>>())
        })?;
        if self.position.agent_id.is_some() && back.about.parent_agent_id != self.position.agent_id {
            return Err(foreign(&back.id));
        }
        let errand = back.about.errand(message);
        let id = back.id.clone();
        self.launch(id, Who::Back(Box::new(back)), errand, background, call).await.map(Met::Back)
    }

    /// Sends somebody off. What an agent itself starts is always waited for: its report is the agent's business, not the
    /// session's.
    async fn launch(
        &self,
        id: String,
        who: Who,
        errand: Errand,
        background: bool,
        call: &Call,
    ) -> Result<Underway, Trouble> {
        let depth = self.position.depth + 1;
        let background = background && depth == 1;
        let ticket = self.home.places.claim(depth).map_err(|none| Trouble::Refused(none.to_string()))?;
        let tree = apart::tree(&who, &errand, &id, call).await?;
        let output_file = self.home.workspace.spill().join("tasks").join(format!("{id}.output"));
        let launched = Launched { agent_id: id.clone(), output_file: output_file.clone() };
        let facts = TaskFacts {
            task_id: id,
            tool_use_id: call.id.clone(),
            owner: self.position.agent_id.clone(),
            kind: TaskKind::Agent,
            description: errand.description.clone(),
            command: String::new(),
            agent_type: Some(errand.kind.clone()),
            name: errand.name.clone().or_else(|| self.home.desk.name_of(&launched.agent_id)),
            output_file,
        };
        // Whoever goes on after a crash has to know who was sent.
        call.journal.entrust(&call.id, &facts.task_id).await;
        let entry = call.tasks.enter(facts, background);
        let parent = self.position.agent_id.as_deref();
        let standing = Standing { depth, parent, background, prompt: &errand.prompt };
        notices::begun(&self.home.outbox, &call.tasks, &entry.facts, standing).await;
        let mailbox = self.home.desk.open(&entry.facts.task_id, errand.name.as_deref(), parent);
        let leash = Leash(Some(entry.stop.clone()));
        let beside = entry.background();
        let (done, report) = oneshot::channel();
        let run = Run { agents: self.clone(), who, errand, call: call.clone(), entry, ticket, mailbox, tree };
        tokio::spawn(run.go(done));
        Ok(Underway { report, beside, leash, launched })
    }
}

impl Underway {
    /// Waits for the report, unless the turn goes on beside the agent.
    async fn wait(self) -> Result<Sent, Trouble> {
        let Self { report, mut beside, leash, launched } = self;
        let report = tokio::select! {
            biased;
            report = report => report,
            _ = beside.wait_for(|beside| *beside) => {
                leash.let_go();
                return Ok(Sent::Away(launched));
            }
        };
        match report {
            // The turn was to go on beside it just when it ended: the report comes as news.
            Ok(report) if report.background => Ok(Sent::Away(launched)),
            Ok(report) => Ok(Sent::Back(Box::new(report))),
            Err(_) => Err(Trouble::Failed("The agent broke down. Try another way.".into())),
        }
    }
}

/// An agent at work takes a message up next.
fn waits(agent_id: String, call: &Call) -> Sent {
    let output_file = call.tasks.output_file(&agent_id).unwrap_or_default();
    Sent::Away(Launched { agent_id, output_file })
}

/// An agent has the rights of whoever sent it, so nobody else sends it on.
fn foreign(id: &str) -> Trouble {
    Trouble::Refused(format!(
        "The agent {id} was sent by somebody else, and only they can go on with it. Start one of your own."
    ))
}

fn unknown(name: &str, known: &[String]) -> Trouble {
    let known = if known.is_empty() { "nobody".to_owned() } else { known.join(", ") };
    Trouble::Refused(format!("No agent {name} can be reached. There is: {known}."))
}
