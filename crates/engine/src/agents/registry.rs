//! Registry of a session's agents, by id or name. Running agents have a mailbox; finished ones are kept for a while,
//! so that they can be continued with their whole conversation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use whimbrel_tools::workspace::worktree::Worktree;

use super::ResolvedDefinition;
use super::context::TreePosition;
use crate::agent::Agent;

const MAX_FINISHED: usize = 50;

#[derive(Default)]
pub struct AgentRegistry {
    state: Mutex<RegistryState>,
    /// Held while an agent of an earlier run is restored, so that it is not restored twice.
    pub(super) restore_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RegistryState {
    slots: BTreeMap<String, AgentSlot>,
    /// Names to ids; the latest agent with a name wins.
    names: BTreeMap<String, String>,
    /// Ids of finished agents, oldest first.
    finished_order: VecDeque<String>,
}

enum AgentSlot {
    /// Running: its mailbox, and its parent's id (`None` for the main agent).
    Running(mpsc::UnboundedSender<String>, Option<String>),
    Finished(Box<FinishedAgent>),
}

impl AgentSlot {
    /// Returns whether an agent may message or continue it: only the main agent (`None`) or its parent, because it has
    /// the permissions of its parent.
    fn is_reachable_by(&self, requester: Option<&str>) -> bool {
        let parent = match self {
            Self::Running(_, parent) => parent,
            Self::Finished(finished) => &finished.parent,
        };
        requester.is_none() || parent.as_deref() == requester
    }
}

/// An agent that can be messaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableAgent {
    pub id: String,
    pub name: Option<String>,
    pub agent_type: String,
    /// Short description of its task.
    pub description: String,
    pub is_running: bool,
}

/// A finished agent that can be continued.
pub struct FinishedAgent {
    /// Without its spawner, which would form a reference cycle with the registry.
    pub agent: Agent,
    /// Its position in the agent tree, if it may start others.
    pub(super) position: Option<Arc<TreePosition>>,
    pub definition: ResolvedDefinition,
    /// Short description of its task.
    pub description: String,
    /// The parent's id; `None` for the main agent.
    pub(super) parent: Option<String>,
    /// Its isolated worktree, which may have been removed.
    pub(super) worktree: Option<Worktree>,
}

impl RegistryState {
    fn name_of(&self, id: &str) -> Option<String> {
        self.names.iter().find(|(_, agent_id)| *agent_id == id).map(|(name, _)| name.clone())
    }

    /// Names and ids of the agents that an agent can message.
    fn reachable_names(&self, requester: Option<&str>) -> Vec<String> {
        let is_reachable =
            |id: &String| self.slots.get(id).is_some_and(|slot| slot.is_reachable_by(requester));
        let names = self.names.iter().filter(|(_, id)| is_reachable(id)).map(|(name, _)| name);
        names.chain(self.slots.keys().filter(|id| is_reachable(id))).cloned().collect()
    }
}

/// Outcome of sending a message.
pub enum SendOutcome {
    /// The agent is running and gets it after its current turn.
    Queued(String),
    /// The agent had finished; it is taken out of the registry.
    Finished(String, Box<FinishedAgent>),
    /// The agent belongs to another parent.
    NotOwner(String),
    /// Unknown name; lists the agents that can be messaged.
    Unknown(Vec<String>),
}

impl AgentRegistry {
    /// Registers a running agent and returns its mailbox.
    pub fn register(
        &self,
        id: &str,
        name: Option<&str>,
        parent: Option<&str>,
    ) -> mpsc::UnboundedReceiver<String> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let mut state = self.lock();
        state.slots.insert(id.to_owned(), AgentSlot::Running(sender, parent.map(Into::into)));
        if let Some(name) = name {
            state.names.insert(name.to_owned(), id.to_owned());
        }
        mailbox
    }

    /// Called when an agent is about to end: returns its next message, or removes it from the registry so that no
    /// message is lost.
    pub fn take_next_or_close(
        &self,
        id: &str,
        mailbox: &mut mpsc::UnboundedReceiver<String>,
    ) -> Option<String> {
        let mut state = self.lock();
        let next = mailbox.try_recv().ok();
        if next.is_none() {
            state.slots.remove(id);
        }
        next
    }

    /// Stores a finished agent; the oldest are dropped beyond `MAX_FINISHED`.
    pub fn store_finished(&self, id: &str, finished: FinishedAgent) {
        let mut state = self.lock();
        state.slots.insert(id.to_owned(), AgentSlot::Finished(Box::new(finished)));
        state.finished_order.push_back(id.to_owned());
        while state.finished_order.len() > MAX_FINISHED {
            let Some(oldest) = state.finished_order.pop_front() else { break };
            state.slots.remove(&oldest);
            state.names.retain(|_, id| *id != oldest);
        }
    }

    /// Agents that `requester` can message (`None` for the main agent); `describe_running` gives type and description
    /// of running ones.
    pub fn reachable(
        &self,
        requester: Option<&str>,
        describe_running: impl Fn(&str) -> Option<(String, String)>,
    ) -> Vec<ReachableAgent> {
        let state = self.lock();
        let rows =
            state.slots.iter().filter(|(_, slot)| slot.is_reachable_by(requester)).map(|(id, slot)| {
                let (is_running, about) = match slot {
                    AgentSlot::Running(..) => (true, describe_running(id).unwrap_or_default()),
                    AgentSlot::Finished(finished) => {
                        (false, (finished.definition.name.clone(), finished.description.clone()))
                    }
                };
                ReachableAgent {
                    id: id.clone(),
                    name: state.name_of(id),
                    agent_type: about.0,
                    description: about.1,
                    is_running,
                }
            });
        rows.collect()
    }

    pub fn name_of(&self, id: &str) -> Option<String> {
        self.lock().name_of(id)
    }

    /// Delivers a message between agents. `requester` is `None` for the main agent.
    pub fn deliver(&self, requester: Option<&str>, to: &str, message: &str) -> SendOutcome {
        let mut state = self.lock();
        let id = if state.slots.contains_key(to) {
            to.to_owned()
        } else {
            state.names.get(to).cloned().unwrap_or_default()
        };
        match state.slots.get(&id) {
            Some(slot) if !slot.is_reachable_by(requester) => return SendOutcome::NotOwner(id),
            Some(AgentSlot::Running(mailbox, _)) if mailbox.send(message.to_owned()).is_ok() => {
                return SendOutcome::Queued(id);
            }
            _ => {}
        }
        match state.slots.remove(&id) {
            Some(AgentSlot::Finished(finished)) => {
                state.finished_order.retain(|ended| *ended != id);
                SendOutcome::Finished(id, finished)
            }
            _ => SendOutcome::Unknown(state.reachable_names(requester)),
        }
    }

    /// Every change is atomic under the lock, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_running_agents_by_id_or_name() {
        let registry = AgentRegistry::default();
        let mut mailbox = registry.register("a1", Some("scout"), None);
        for to in ["a1", "scout"] {
            assert!(matches!(registry.deliver(None, to, to), SendOutcome::Queued(id) if id == "a1"), "{to}");
        }
        assert_eq!(registry.take_next_or_close("a1", &mut mailbox).as_deref(), Some("a1"));
        assert_eq!(registry.take_next_or_close("a1", &mut mailbox).as_deref(), Some("scout"));
        assert_eq!(registry.take_next_or_close("a1", &mut mailbox), None);
        assert!(matches!(registry.deliver(None, "scout", "late"), SendOutcome::Unknown(_)), "it has ended");
    }

    #[test]
    fn unknown_recipient_lists_known_agents() {
        let registry = AgentRegistry::default();
        let _mailbox = registry.register("a1", Some("scout"), None);
        let SendOutcome::Unknown(known) = registry.deliver(None, "missing", "x") else {
            panic!("unexpected delivery")
        };
        assert_eq!(known, ["scout", "a1"]);
    }

    #[test]
    fn agent_reaches_only_its_own_subagents() {
        let registry = AgentRegistry::default();
        let mut mailboxes = [("a1", None), ("a2", Some("a1")), ("a3", Some("a2"))]
            .map(|(id, parent)| registry.register(id, None, parent));
        let rows = [
            (None, vec!["a1", "a2", "a3"]),
            (Some("a1"), vec!["a2"]),
            (Some("a2"), vec!["a3"]),
            (Some("a3"), vec![]),
        ];
        for (requester, expected) in rows {
            let known: Vec<String> =
                registry.reachable(requester, |_| None).into_iter().map(|known| known.id).collect();
            assert_eq!(known, expected, "{requester:?}");
            let SendOutcome::Unknown(names) = registry.deliver(requester, "missing", "x") else {
                panic!("{requester:?}")
            };
            assert_eq!(names, expected, "{requester:?}");
            for to in ["a1", "a2", "a3"] {
                let delivered = match registry.deliver(requester, to, "x") {
                    SendOutcome::Queued(_) => true,
                    SendOutcome::NotOwner(_) => false,
                    SendOutcome::Finished(..) | SendOutcome::Unknown(_) => panic!("{to} is running"),
                };
                assert_eq!(delivered, expected.contains(&to), "{requester:?} to {to}");
            }
        }
        let received =
            mailboxes.each_mut().map(|mailbox| std::iter::from_fn(|| mailbox.try_recv().ok()).count());
        assert_eq!(received, [1, 2, 2], "an undelivered message is not queued");
    }
}
