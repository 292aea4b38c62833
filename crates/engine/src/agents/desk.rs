//! Who of a session's agents can be reached, by id or by name: those at work have a mailbox, those that have ended are kept
//! for a while, so that they can be asked again with everything they know.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::Definition;
use super::home::Position;
use crate::agent::Agent;
use crate::worktree::Worktree;

/// How many agents that have ended are kept.
const MOST_KEPT: usize = 50;

/// The agents that can be reached.
#[derive(Default)]
pub struct Desk {
    book: Mutex<Book>,
    /// Held while an agent of an earlier run is brought back, so that nobody comes back twice.
    pub(super) return_door: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Book {
    seats: BTreeMap<String, Seat>,
    /// Names to ids; the latest of a name counts.
    names: BTreeMap<String, String>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<String>,
}

enum Seat {
    /// At work: its mailbox, and who sent it.
    Working(mpsc::UnboundedSender<String>, Option<String>),
    Ended(Box<Rested>),
}

impl Seat {
    /// Whether an agent may have it go on: the main one, which is none, or the one that sent it. It has the rights of
    /// whoever sent it, which need not be those of another.
    fn is_reached_by(&self, asker: Option<&str>) -> bool {
        let parent = match self {
            Self::Working(_, parent) => parent,
            Self::Ended(rested) => &rested.parent,
        };
        asker.is_none() || parent.as_deref() == asker
    }
}

/// An agent that can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its kind.
    pub kind: String,
    /// What it was sent for, in a few words.
    pub description: String,
    /// Whether it is at work.
    pub works: bool,
}

/// An agent that has ended and can go on.
pub struct Rested {
    /// The agent. It holds nobody who could hold it.
    pub agent: Agent,
    /// Where it stands in the tree, if it may start others.
    pub(super) position: Option<Arc<Position>>,
    /// Its kind.
    pub definition: Definition,
    /// What it was sent for, in a few words.
    pub description: String,
    /// The agent that sent it; none if the main one did.
    pub(super) parent: Option<String>,
    /// The work tree of its own that it worked in, which may be gone.
    pub(super) tree: Option<Worktree>,
}

impl Book {
    /// The name of an agent, if it has one.
    fn name_of(&self, id: &str) -> Option<String> {
        self.names.iter().find(|(_, of)| *of == id).map(|(name, _)| name.clone())
    }

    /// The names and ids of those whom an agent can reach.
    fn reached_by(&self, asker: Option<&str>) -> Vec<String> {
        let reached = |id: &String| self.seats.get(id).is_some_and(|seat| seat.is_reached_by(asker));
        let names = self.names.iter().filter(|(_, id)| reached(id)).map(|(name, _)| name);
        names.chain(self.seats.keys().filter(|id| reached(id))).cloned().collect()
    }
}

/// What became of a message.
pub enum Delivery {
    /// The agent is at work and takes it up next.
    Waits(String),
    /// The agent has ended: here it is.
    Rested(String, Box<Rested>),
    /// Somebody else has sent it.
    Foreign(String),
    /// Nobody is known by that name; these can be reached.
    Unknown(Vec<String>),
}

impl Desk {
    /// An agent that `parent` has sent begins to work: this is its mailbox.
    pub fn open(
        &self,
        id: &str,
        name: Option<&str>,
        parent: Option<&str>,
    ) -> mpsc::UnboundedReceiver<String> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let mut book = self.book();
        book.seats.insert(id.to_owned(), Seat::Working(sender, parent.map(Into::into)));
        if let Some(name) = name {
            book.names.insert(name.to_owned(), id.to_owned());
        }
        mailbox
    }

    /// An agent wants to end: its next letter, if one waits; otherwise it cannot be written to from now on.
    pub fn next_or_close(&self, id: &str, mailbox: &mut mpsc::UnboundedReceiver<String>) -> Option<String> {
        let mut book = self.book();
        let next = mailbox.try_recv().ok();
        if next.is_none() {
            book.seats.remove(id);
        }
        next
    }

    /// Keeps an agent that has ended.
    pub fn keep(&self, id: &str, rested: Rested) {
        let mut book = self.book();
        book.seats.insert(id.to_owned(), Seat::Ended(Box::new(rested)));
        book.ended.push_back(id.to_owned());
        while book.ended.len() > MOST_KEPT {
            let Some(oldest) = book.ended.pop_front() else { break };
            book.seats.remove(&oldest);
            book.names.retain(|_, id| *id != oldest);
        }
    }

    /// Everybody whom an agent can reach, with the kind and the errand of those at work as `facts` tells them. No asker
    /// is the main agent.
    pub fn known(&self, asker: Option<&str>, facts: impl Fn(&str) -> Option<(String, String)>) -> Vec<Known> {
        let book = self.book();
        let rows = book.seats.iter().filter(|(_, seat)| seat.is_reached_by(asker)).map(|(id, seat)| {
            let (works, about) = match seat {
                Seat::Working(..) => (true, facts(id).unwrap_or_default()),
                Seat::Ended(rested) => (false, (rested.definition.name.clone(), rested.description.clone())),
            };
            Known { id: id.clone(), name: book.name_of(id), kind: about.0, description: about.1, works }
        });
        rows.collect()
    }

    /// The name of an agent, if it has one.
    pub fn name_of(&self, id: &str) -> Option<String> {
        self.book().name_of(id)
    }

    /// Delivers a message of an agent to another one. No asker is the main agent.
    pub fn deliver(&self, asker: Option<&str>, to: &str, message: &str) -> Delivery {
        let mut book = self.book();
        let id = if book.seats.contains_key(to) {
            to.to_owned()
        } else {
            book.names.get(to).cloned().unwrap_or_default()
        };
        match book.seats.get(&id) {
            Some(seat) if !seat.is_reached_by(asker) => return Delivery::Foreign(id),
            Some(Seat::Working(mailbox, _)) if mailbox.send(message.to_owned()).is_ok() => {
                return Delivery::Waits(id);
            }
            _ => {}
        }
        match book.seats.remove(&id) {
            Some(Seat::Ended(rested)) => {
                book.ended.retain(|ended| *ended != id);
                Delivery::Rested(id, rested)
            }
            _ => Delivery::Unknown(book.reached_by(asker)),
        }
    }

    /// A whole entry is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_reaches_whoever_works_by_id_or_name_and_none_is_lost() {
        let desk = Desk::default();
        let mut mailbox = desk.open("a1", Some("scout"), None);
        for to in ["a1", "scout"] {
            assert!(matches!(desk.deliver(None, to, to), Delivery::Waits(id) if id == "a1"), "{to}");
        }
        assert_eq!(desk.next_or_close("a1", &mut mailbox).as_deref(), Some("a1"));
        assert_eq!(desk.next_or_close("a1", &mut mailbox).as_deref(), Some("scout"));
        assert_eq!(desk.next_or_close("a1", &mut mailbox), None);
        assert!(matches!(desk.deliver(None, "scout", "late"), Delivery::Unknown(_)), "it has ended");
    }

    #[test]
    fn who_is_not_known_is_told_who_is() {
        let desk = Desk::default();
        let _mailbox = desk.open("a1", Some("scout"), None);
        let Delivery::Unknown(known) = desk.deliver(None, "nobody", "x") else { panic!("nobody is known") };
        assert_eq!(known, ["scout", "a1"]);
    }

    #[test]
    fn an_agent_reaches_those_only_that_it_has_sent() {
        let desk = Desk::default();
        let mut mailboxes = [("a1", None), ("a2", Some("a1")), ("a3", Some("a2"))]
            .map(|(id, parent)| desk.open(id, None, parent));
        let rows = [
            (None, vec!["a1", "a2", "a3"]),
            (Some("a1"), vec!["a2"]),
            (Some("a2"), vec!["a3"]),
            (Some("a3"), vec![]),
        ];
        for (asker, expected) in rows {
            let known: Vec<String> = desk.known(asker, |_| None).into_iter().map(|known| known.id).collect();
            assert_eq!(known, expected, "{asker:?}");
            let Delivery::Unknown(told) = desk.deliver(asker, "nobody", "x") else { panic!("{asker:?}") };
            assert_eq!(told, expected, "{asker:?}");
            for to in ["a1", "a2", "a3"] {
                let delivered = match desk.deliver(asker, to, "x") {
                    Delivery::Waits(_) => true,
                    Delivery::Foreign(_) => false,
                    Delivery::Rested(..) | Delivery::Unknown(_) => panic!("{to} is at work"),
                };
                assert_eq!(delivered, expected.contains(&to), "{asker:?} to {to}");
            }
        }
        let heard =
            mailboxes.each_mut().map(|mailbox| std::iter::from_fn(|| mailbox.try_recv().ok()).count());
        assert_eq!(heard, [1, 2, 2], "whom a message does not reach has not heard it");
    }
}
