//! Selects the reply of each request: the next of a list, or the result of a closure.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::fault::Fault;
use super::model_request::ModelRequest;
use super::reply::Reply;

/// The replies of the model, request by request.
pub struct Script {
    source: Source,
}

enum Source {
    List { replies: Vec<Reply>, position: Mutex<ListPosition> },
    Closure(Box<dyn Fn(&ModelRequest) -> Reply + Send + Sync>),
}

/// Position in a list of replies.
#[derive(Default)]
struct ListPosition {
    /// Index of the current reply.
    reply_index: usize,
    /// Requests made for the current reply so far.
    attempts: u32,
}

/// The reply selected for one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectedReply {
    /// The number of the reply, counted from 1; ids are derived from it.
    pub(crate) number: usize,
    pub(crate) reply: Reply,
    /// The fault to inject this time.
    pub(crate) fault: Option<Fault>,
}

impl Script {
    /// Builds a script from a closure. The closure also runs for retries, so a fault in its reply happens every time;
    /// [`ModelRequest::number`] lets it count.
    pub fn from_fn(choose: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { source: Source::Closure(Box::new(choose)) }
    }

    /// Parses a list of replies from JSON.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<Vec<Reply>>(text).map(Self::from)
    }

    /// Returns whether every reply of a list has been used. A closure is never exhausted.
    pub fn is_exhausted(&self) -> bool {
        match &self.source {
            Source::List { replies, position } => {
                position.lock().unwrap_or_else(PoisonError::into_inner).reply_index >= replies.len()
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

    /// Selects the reply of a request. Past the end of a list it is a 400 error that must not be retried.
    pub(crate) fn select_reply(&self, request: &ModelRequest) -> SelectedReply {
        match &self.source {
            Source::List { replies, position } => {
                let mut position = position.lock().unwrap_or_else(PoisonError::into_inner);
                next_in_list(replies, &mut position)
            }
            Source::Closure(choose) => {
                let reply = choose(request);
                SelectedReply {
                    number: request.number + 1,
                    fault: reply.fault_for_attempt(0).cloned(),
                    reply,
                }
            }
        }
    }
}

fn next_in_list(replies: &[Reply], position: &mut ListPosition) -> SelectedReply {
    let number = position.reply_index + 1;
    let Some(reply) = replies.get(position.reply_index) else {
        let text = format!("The script has only {} replies, and all are used.", replies.len());
        let reply = Reply::empty().status(400).error("invalid_request_error", text);
        return SelectedReply { number, fault: reply.fault_for_attempt(0).cloned(), reply };
    };
    let fault = reply.fault_for_attempt(position.attempts).cloned();
    position.attempts += 1;
    if reply.is_done_after(position.attempts) {
        *position = ListPosition { reply_index: position.reply_index + 1, attempts: 0 };
    }
    SelectedReply { number, reply: reply.clone(), fault }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self { source: Source::List { replies, position: Mutex::default() } }
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

    use super::super::ApiFormat;
    use super::*;

    fn empty_request() -> ModelRequest {
        ModelRequest { number: 0, api_format: ApiFormat::Messages, body: json!({}) }
    }

    /// Returns the number and the fault status of the next replies.
    fn play_requests(script: &Script, requests: usize) -> Vec<(usize, Option<u16>)> {
        let status = |fault: &Fault| match fault {
            Fault::Status { status, .. } => *status,
            _ => 0,
        };
        let selected = (0..requests).map(|_| script.select_reply(&empty_request()));
        selected.map(|selected| (selected.number, selected.fault.as_ref().map(status))).collect()
    }

    #[test]
    fn faults_do_not_consume_the_reply() {
        let script =
            Script::from([Reply::text("a"), Reply::text("b").status(529).times(2).cut_after(1), "c".into()]);
        let expected = [(1, None), (2, Some(529)), (2, Some(529)), (2, Some(0)), (2, None), (3, None)];
        assert_eq!(play_requests(&script, 6), expected);
        assert!(script.is_exhausted());
    }

    #[test]
    fn empty_reply_ends_after_its_faults() {
        let script = Script::from([
            Reply::empty().status(400),
            Reply::text("a").cut_after(2).skip_after_faults(),
            "b".into(),
        ]);
        assert_eq!(play_requests(&script, 3), [(1, Some(400)), (2, Some(0)), (3, None)]);
        assert!(script.is_exhausted());
    }

    #[test]
    fn permanent_fault_blocks_the_script() {
        let script = Script::from([Reply::empty().status(529).always(), "never".into()]);
        assert_eq!(play_requests(&script, 3), [(1, Some(529)); 3]);
        assert!(!script.is_exhausted());
    }

    #[test]
    fn exhausted_script_fails_with_400() {
        let script = Script::from(Reply::empty());
        assert_eq!(play_requests(&script, 2), [(1, None), (2, Some(400))]);
    }

    #[test]
    fn closure_receives_the_request() {
        let script = Script::from_fn(|request| Reply::text(request.last_text()));
        let body = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "echo"}]}]});
        let selected =
            script.select_reply(&ModelRequest { number: 4, api_format: ApiFormat::Messages, body });
        assert_eq!((selected.number, selected.reply), (5, Reply::text("echo")));
    }
}
