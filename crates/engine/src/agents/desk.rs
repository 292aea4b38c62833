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
    Working(mpsc::UnboundedSender<String>),
    Ended(Box<Rested>),
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

/// What became of a message.
pub enum Delivery {
    /// The agent is at work and takes it up next.
    Waits(String),
    /// The agent has ended: here it is.
    Rested(String, Box<Rested>),
    /// Nobody is known by that name; these are.
    Unknown(Vec<String>),
}

impl Desk {
    /// An agent begins to work: this is its mailbox.
    pub fn open(&self, id: &str, name: Option<&str>) -> mpsc::UnboundedReceiver<String> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let mut book = self.book();
        book.seats.insert(id.to_owned(), Seat::Working(sender));
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

    /// Everybody who can be reached, with the kind and the errand of those at work as `facts` tells them.
    pub fn known(&self, facts: impl Fn(&str) -> Option<(String, String)>) -> Vec<Known> {
        let book = self.book();
        let name = |id: &str| book.names.iter().find(|(_, of)| *of == id).map(|(name, _)| name.clone());
        let rows = book.seats.iter().map(|(id, seat)| {
            let (works, about) = match seat {
                Seat::Working(_) => (true, facts(id).unwrap_or_default()),
                Seat::Ended(rested) => (false, (rested.definition.name.clone(), rested.description.clone())),
            };
            Known { id: id.clone(), name: name(id), kind: about.0, description: about.1, works }
        });
        rows.collect()
    }

    /// Delivers a message to an agent.
    pub fn deliver(&self, to: &str, message: &str) -> Delivery {
        let mut book = self.book();
        let id = if book.seats.contains_key(to) {
            to.to_owned()
        } else {
            book.names.get(to).cloned().unwrap_or_default()
        };
        if let Some(Seat::Working(mailbox)) = book.seats.get(&id)
            && mailbox.send(message.to_owned()).is_ok()
        {
            return Delivery::Waits(id);
        }
        match book.seats.remove(&id) {
            Some(Seat::Ended(rested)) => {
                book.ended.retain(|ended| *ended != id);
                Delivery::Rested(id, rested)
            }
            _ => Delivery::Unknown(book.names.keys().chain(book.seats.keys()).cloned().collect()),
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
        let mut mailbox = desk.open("a1", Some("scout"));
        for to in ["a1", "scout"] {
            assert!(matches!(desk.deliver(to, to), Delivery::Waits(id) if id == "a1"), "{to}");
        }
        assert_eq!(desk.next_or_close("a1", &mut mailbox).as_deref(), Some("a1"));
        assert_eq!(desk.next_or_close("a1", &mut mailbox).as_deref(), Some("scout"));
        assert_eq!(desk.next_or_close("a1", &mut mailbox), None);
        assert!(matches!(desk.deliver("scout", "late"), Delivery::Unknown(_)), "it has ended");
    }

    #[test]
    fn who_is_not_known_is_told_who_is() {
        let desk = Desk::default();
        let _mailbox = desk.open("a1", Some("scout"));
        let Delivery::Unknown(known) = desk.deliver("nobody", "x") else { panic!("nobody is known") };
        assert_eq!(known, ["scout", "a1"]);
    }
}
