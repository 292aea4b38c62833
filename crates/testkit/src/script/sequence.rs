//! Which reply a request gets: the next of a list, or what a closure says.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::asked::Asked;
use super::fault::Fault;
use super::reply::Reply;

/// What the model says, request by request.
pub struct Script {
    source: Source,
}

enum Source {
    List { replies: Vec<Reply>, at: Mutex<Place> },
    Closure(Box<dyn Fn(&Asked) -> Reply + Send + Sync>),
}

/// How far a list has been played.
#[derive(Default)]
struct Place {
    /// The reply that is due.
    reply: usize,
    /// How many requests it has had.
    attempts: u32,
}

/// What is due for one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    /// The number of the reply, from 1. Ids are made from it.
    pub(crate) number: usize,
    pub(crate) reply: Reply,
    /// What goes wrong with it this time.
    pub(crate) fault: Option<Fault>,
}

impl Script {
    /// Asks a closure for each reply. It is asked anew when a request is repeated, so a fault in its reply happens
    /// every time; [`Asked::number`] helps it to count.
    pub fn by(choose: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self { source: Source::Closure(Box::new(choose)) }
    }

    /// Reads a list of replies from JSON.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<Vec<Reply>>(text).map(Self::from)
    }

    /// Whether every reply of a list has been given. A closure never ends.
    pub fn is_over(&self) -> bool {
        match &self.source {
            Source::List { replies, at } => {
                at.lock().unwrap_or_else(PoisonError::into_inner).reply >= replies.len()
            }
            Source::Closure(_) => false,
        }
    }

    /// The replies, if they are a list.
    pub(crate) fn replies(&self) -> Option<&[Reply]> {
        match &self.source {
            Source::List { replies, .. } => Some(replies),
            Source::Closure(_) => None,
        }
    }

    /// What is due for a request. Past the end of a list it is an error that says so and is not worth repeating.
    pub(crate) fn choose(&self, asked: &Asked) -> Chosen {
        match &self.source {
            Source::List { replies, at } => {
                let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
                next_of(replies, &mut at)
            }
            Source::Closure(choose) => {
                let reply = choose(asked);
                Chosen { number: asked.number + 1, fault: reply.fault_at(0).cloned(), reply }
            }
        }
    }
}

fn next_of(replies: &[Reply], at: &mut Place) -> Chosen {
    let number = at.reply + 1;
    let Some(reply) = replies.get(at.reply) else {
        let text = format!("The script has only {} replies, and all have been given.", replies.len());
        let reply = Reply::nothing().status(400).error("invalid_request_error", text);
        return Chosen { number, fault: reply.fault_at(0).cloned(), reply };
    };
    let fault = reply.fault_at(at.attempts).cloned();
    at.attempts += 1;
    if reply.is_over_after(at.attempts) {
        *at = Place { reply: at.reply + 1, attempts: 0 };
    }
    Chosen { number, reply: reply.clone(), fault }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self { source: Source::List { replies, at: Mutex::default() } }
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        Self::from(Vec::from(replies))
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::from(vec![reply])
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::List { replies, .. } => f.debug_tuple("Script").field(replies).finish(),
            Source::Closure(_) => f.write_str("Script(closure)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Dialect;
    use super::*;

    fn asked() -> Asked {
        Asked { number: 0, dialect: Dialect::Messages, body: json!({}) }
    }

    /// Which reply each of the next requests gets, and the status it fails with.
    fn played(script: &Script, requests: usize) -> Vec<(usize, Option<u16>)> {
        let status = |fault: &Fault| match fault {
            Fault::Status { status, .. } => *status,
            _ => 0,
        };
        let chosen = (0..requests).map(|_| script.choose(&asked()));
        chosen.map(|chosen| (chosen.number, chosen.fault.as_ref().map(status))).collect()
    }

    #[test]
    fn a_list_is_played_in_order_and_a_fault_does_not_use_a_reply_up() {
        let script =
            Script::from([Reply::text("a"), Reply::text("b").status(529).times(2).cut_after(1), "c".into()]);
        let expected = [(1, None), (2, Some(529)), (2, Some(529)), (2, Some(0)), (2, None), (3, None)];
        assert_eq!(played(&script, 6), expected);
        assert!(script.is_over());
    }

    #[test]
    fn a_reply_that_says_nothing_is_only_its_faults() {
        let script = Script::from([
            Reply::nothing().status(400),
            Reply::text("a").cut_after(2).then_next(),
            "b".into(),
        ]);
        assert_eq!(played(&script, 3), [(1, Some(400)), (2, Some(0)), (3, None)]);
        assert!(script.is_over());
    }

    #[test]
    fn a_fault_that_always_happens_never_lets_the_script_go_on() {
        let script = Script::from([Reply::nothing().status(529).always(), "never".into()]);
        assert_eq!(played(&script, 3), [(1, Some(529)); 3]);
        assert!(!script.is_over());
    }

    #[test]
    fn a_script_that_is_over_says_so() {
        let script = Script::from(Reply::nothing());
        assert_eq!(played(&script, 2), [(1, None), (2, Some(400))]);
    }

    #[test]
    fn a_closure_sees_the_request() {
        let script = Script::by(|asked| Reply::text(asked.last_text()));
        let body = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "echo"}]}]});
        let chosen = script.choose(&Asked { number: 4, dialect: Dialect::Messages, body });
        assert_eq!((chosen.number, chosen.reply), (5, Reply::text("echo")));
    }
}
