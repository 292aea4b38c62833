//! Who of a session's agents can be reached, by id or by name: those at work have a mailbox, those that have ended are kept
//! for a while, so that they can be asked again with everything they know.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::Definition;
use super::context::TreePosition;
use crate::agent::Agent;
use crate::worktree::Worktree;

/// How many agents that have ended are kept.
const MAX_FINISHED: usize = 50;

/// The agents that can be reached.
#[derive(Default)]
pub struct AgentRegistry {
    state: Mutex<RegistryState>,
    /// Held while an agent of an earlier run is brought back, so that nobody comes back twice.
    pub(super) restore_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RegistryState {
    slots: BTreeMap<String, AgentSlot>,
    /// Names to ids; the latest of a name counts.
    names: BTreeMap<String, String>,
    /// Those that have ended, the oldest first.
    finished_order: VecDeque<String>,
}

enum AgentSlot {
    /// At work: its mailbox, and who sent it.
    Running(mpsc::UnboundedSender<String>, Option<String>),
    Finished(Box<FinishedAgent>),
}

impl AgentSlot {
    /// Whether an agent may have it go on: the main one, which is none, or the one that sent it. It has the rights of
    /// whoever sent it, which need not be those of another.
    fn is_reachable_by(&self, asker: Option<&str>) -> bool {
        let parent = match self {
            Self::Running(_, parent) => parent,
            Self::Finished(rested) => &rested.parent,
        };
        asker.is_none() || parent.as_deref() == asker
    }
}

/// An agent that can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableAgent {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its kind.
    pub agent_type: String,
    /// What it was sent for, in a few words.
    pub description: String,
    /// Whether it is at work.
    pub is_running: bool,
}

/// An agent that has ended and can go on.
pub struct FinishedAgent {
    /// The agent. It holds nobody who could hold it.
    pub agent: Agent,
    /// Where it stands in the tree, if it may start others.
    pub(super) position: Option<Arc<TreePosition>>,
    /// Its kind.
    pub definition: Definition,
    /// What it was sent for, in a few words.
    pub description: String,
    /// The agent that sent it; none if the main one did.
    pub(super) parent: Option<String>,
    /// The work tree of its own that it worked in, which may be gone.
    pub(super) worktree: Option<Worktree>,
}

impl RegistryState {
    /// The name of an agent, if it has one.
    fn name_of(&self, id: &str) -> Option<String> {
        self.names.iter().find(|(_, of)| *of == id).map(|(name, _)| name.clone())
    }

    /// The names and ids of those whom an agent can reach.
    fn reachable_names(&self, asker: Option<&str>) -> Vec<String> {
        let reached = |id: &String| self.slots.get(id).is_some_and(|seat| seat.is_reachable_by(asker));
        let names = self.names.iter().filter(|(_, id)| reached(id)).map(|(name, _)| name);
        names.chain(self.slots.keys().filter(|id| reached(id))).cloned().collect()
    }
}

/// What became of a message.
pub enum Delivery {
    /// The agent is at work and takes it up next.
    Queued(String),
    /// The agent has ended: here it is.
    Finished(String, Box<FinishedAgent>),
    /// Somebody else has sent it.
    NotOwner(String),
    /// Nobody is known by that name; these can be reached.
    Unknown(Vec<String>),
}

impl AgentRegistry {
    /// An agent that `parent` has sent begins to work: this is its mailbox.
    pub fn register(
        &self,
        id: &str,
        name: Option<&str>,
        parent: Option<&str>,
    ) -> mpsc::UnboundedReceiver<String> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let mut book = self.lock();
        book.slots.insert(id.to_owned(), AgentSlot::Running(sender, parent.map(Into::into)));
        if let Some(name) = name {
            book.names.insert(name.to_owned(), id.to_owned());
        }
        mailbox
    }

    /// An agent wants to end: its next letter, if one waits; otherwise it cannot be written to from now on.
    pub fn take_next_or_close(&self, id: &str, mailbox: &mut mpsc::UnboundedReceiver<String>) -> Option<String> {
        let mut book = self.lock();
        let next = mailbox.try_recv().ok();
        if next.is_none() {
            book.slots.remove(id);
        }
        next
    }

    /// Keeps an agent that has ended.
    pub fn store_finished(&self, id: &str, rested: FinishedAgent) {
        let mut book = self.lock();
        book.slots.insert(id.to_owned(), AgentSlot::Finished(Box::new(rested)));
        book.finished_order.push_back(id.to_owned());
        while book.finished_order.len() > MAX_FINISHED {
            let Some(oldest) = book.finished_order.pop_front() else { break };
            book.slots.remove(&oldest);
            book.names.retain(|_, id| *id != oldest);
        }
    }

    /// Everybody whom an agent can reach, with the kind and the errand of those at work as `facts` tells them. No asker
    /// is the main agent.
    pub fn reachable(&self, asker: Option<&str>, facts: impl Fn(&str) -> Option<(String, String)>) -> Vec<ReachableAgent> {
        let book = self.lock();
        let rows = book.slots.iter().filter(|(_, seat)| seat.is_reachable_by(asker)).map(|(id, seat)| {
            let (works, about) = match seat {
                AgentSlot::Running(..) => (true, facts(id).unwrap_or_default()),
                AgentSlot::Finished(rested) => (false, (rested.definition.name.clone(), rested.description.clone())),
            };
            ReachableAgent { id: id.clone(), name: book.name_of(id), agent_type: about.0, description: about.1, is_running: works }
        });
        rows.collect()
    }

    /// The name of an agent, if it has one.
    pub fn name_of(&self, id: &str) -> Option<String> {
        self.lock().name_of(id)
    }

    /// Delivers a message of an agent to another one. No asker is the main agent.
    pub fn deliver(&self, asker: Option<&str>, to: &str, message: &str) -> Delivery {
        let mut book = self.lock();
        let id = if book.slots.contains_key(to) {
            to.to_owned()
        } else {
            book.names.get(to).cloned().unwrap_or_default()
        };
        match book.slots.get(&id) {
            Some(seat) if !seat.is_reachable_by(asker) => return Delivery::NotOwner(id),
            Some(AgentSlot::Running(mailbox, _)) if mailbox.send(message.to_owned()).is_ok() => {
                return Delivery::Queued(id);
            }
            _ => {}
        }
        match book.slots.remove(&id) {
            Some(AgentSlot::Finished(rested)) => {
                book.finished_order.retain(|ended| *ended != id);
                Delivery::Finished(id, rested)
            }
            _ => Delivery::Unknown(book.reachable_names(asker)),
        }
    }

    /// A whole entry is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_reaches_whoever_works_by_id_or_name_and_none_is_lost() {
        let desk = AgentRegistry::default();
        let mut mailbox = desk.register("a1", Some("scout"), None);
        for to in ["a1", "scout"] {
            assert!(matches!(desk.deliver(None, to, to), Delivery::Queued(id) if id == "a1"), "{to}");
        }
        assert_eq!(desk.take_next_or_close("a1", &mut mailbox).as_deref(), Some("a1"));
        assert_eq!(desk.take_next_or_close("a1", &mut mailbox).as_deref(), Some("scout"));
        assert_eq!(desk.take_next_or_close("a1", &mut mailbox), None);
        assert!(matches!(desk.deliver(None, "scout", "late"), Delivery::Unknown(_)), "it has ended");
    }

    #[test]
    fn who_is_not_known_is_told_who_is() {
        let desk = AgentRegistry::default();
        let _mailbox = desk.register("a1", Some("scout"), None);
        let Delivery::Unknown(known) = desk.deliver(None, "nobody", "x") else { panic!("nobody is known") };
        assert_eq!(known, ["scout", "a1"]);
    }

    #[test]
    fn an_agent_reaches_those_only_that_it_has_sent() {
        let desk = AgentRegistry::default();
        let mut mailboxes = [("a1", None), ("a2", Some("a1")), ("a3", Some("a2"))]
            .map(|(id, parent)| desk.register(id, None, parent));
        let rows = [
            (None, vec!["a1", "a2", "a3"]),
            (Some("a1"), vec!["a2"]),
            (Some("a2"), vec!["a3"]),
            (Some("a3"), vec![]),
        ];
        for (asker, expected) in rows {
            let known: Vec<String> = desk.reachable(asker, |_| None).into_iter().map(|known| known.id).collect();
            assert_eq!(known, expected, "{asker:?}");
            let Delivery::Unknown(told) = desk.deliver(asker, "nobody", "x") else { panic!("{asker:?}") };
            assert_eq!(told, expected, "{asker:?}");
            for to in ["a1", "a2", "a3"] {
                let delivered = match desk.deliver(asker, to, "x") {
                    Delivery::Queued(_) => true,
                    Delivery::NotOwner(_) => false,
                    Delivery::Finished(..) | Delivery::Unknown(_) => panic!("{to} is at work"),
                };
                assert_eq!(delivered, expected.contains(&to), "{asker:?} to {to}");
            }
        }
        let heard =
            mailboxes.each_mut().map(|mailbox| std::iter::from_fn(|| mailbox.try_recv().ok()).count());
        assert_eq!(heard, [1, 2, 2], "whom a message does not reach has not heard it");
    }
}
