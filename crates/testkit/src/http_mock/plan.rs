//! What is sent for a request, pure: a list of acts that a connection then performs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::dialect::{self, Event, Spoken, chat, messages};
use crate::script::{Asked, Chosen, Dialect, Fault, Reply};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// One thing that a connection does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Sends a head; what follows is one body in chunks.
    Head { status: u16, headers: Vec<(String, String)> },
    /// Sends a piece of the body.
    Send(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Waits until a name is released.
    Hold(String),
    /// Sends the same piece of the body again and again, until the caller goes away.
    Repeat { bytes: Vec<u8>, every: Duration },
    /// Sends a piece of the body byte by byte.
    Drip { bytes: Vec<u8>, every: Duration },
    /// Sends nothing more, and waits for the caller to go away.
    Stall,
    /// Closes the connection. A body that was begun stays without its end.
    HangUp,
}

/// What is done for a request for a reply.
pub(super) fn of_reply(asked: &Asked, chosen: &Chosen) -> Vec<Act> {
    let mut acts = before(&chosen.reply);
    let spoken = Spoken::new(chosen.number, &chosen.reply, asked.model());
    let streams = asked.body["stream"] == true;
    match &chosen.fault {
        Some(Fault::HangUp) => acts.push(Act::HangUp),
        Some(Fault::Status { status, error, message, headers }) => {
            let kind = error.as_deref().unwrap_or_else(|| Fault::usual_error(*status));
            let body = dialect::error(kind, message.as_deref().unwrap_or("scripted failure"));
            acts.extend(whole(*status, JSON, body.to_string()));
            if let Some(Act::Head { headers: sent, .. }) =
                acts.iter_mut().find(|act| matches!(act, Act::Head { .. }))
            {
                sent.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        Some(Fault::Html) => acts.extend(whole(200, "text/html", "<html><body>Welcome!</body></html>")),
        Some(Fault::EmptyBody) => acts.push(head(200, EVENTS)),
        Some(Fault::RawBody { body }) => acts.extend(whole(200, EVENTS, body.clone())),
        fault if streams => acts.extend(stream(asked, &spoken, &chosen.reply, fault.as_ref())),
        fault => acts.extend(in_one_piece(asked.dialect, &spoken, fault.as_ref())),
    }
    name_request(&mut acts, asked.number);
    acts
}

/// Gives the answer the request's id, as providers do.
fn name_request(acts: &mut [Act], number: usize) {
    for act in acts {
        if let Act::Head { headers, .. } = act {
            headers.push(("request-id".to_owned(), format!("req_{}", number + 1)));
        }
    }
}

/// What is done for any other request.
pub(super) fn of_other(method: &str, path: &str, body: &[u8]) -> Vec<Act> {
    match (method, path) {
        ("POST", path) if path.ends_with("/count_tokens") => {
            whole(200, JSON, json!({"input_tokens": body.len() / 4}).to_string())
        }
        ("GET", path) if path.ends_with("/models") => {
            whole(200, JSON, json!({"data": [], "has_more": false}).to_string())
        }
        _ => whole(404, JSON, dialect::error("not_found_error", &format!("{method} {path}")).to_string()),
    }
}

fn before(reply: &Reply) -> Vec<Act> {
    let wait = (!reply.after.is_zero()).then_some(Act::Wait(reply.after));
    wait.into_iter().chain(reply.hold.clone().map(Act::Hold)).collect()
}

fn stream(asked: &Asked, spoken: &Spoken, reply: &Reply, fault: Option<&Fault>) -> Vec<Act> {
    let mut events = match asked.dialect {
        Dialect::Messages => messages::events(spoken),
        Dialect::ChatCompletions => chat::events(spoken, figures(asked)),
    };
    let last = disturb(&mut events, asked.dialect, fault);
    let mut acts = vec![head(200, EVENTS)];
    for event in events {
        if !reply.pace.is_zero() {
            acts.push(Act::Wait(reply.pace));
        }
        acts.push(Act::Send(event.bytes()));
    }
    acts.extend(last);
    acts
}

/// Lets a fault have its way with the events; gives what comes after them.
fn disturb(events: &mut Vec<Event>, dialect: Dialect, fault: Option<&Fault>) -> Option<Act> {
    match fault {
        Some(Fault::Cut { after }) => {
            events.truncate(*after);
            Some(Act::HangUp)
        }
        Some(Fault::Stall { after }) => {
            events.truncate(*after);
            Some(Act::Stall)
        }
        Some(Fault::Pings { after, every }) => {
            events.truncate(*after);
            Some(Act::Repeat { bytes: ping(dialect), every: *every })
        }
        Some(Fault::Drip { after, every }) => {
            let rest = events.split_off((*after).min(events.len()));
            Some(Act::Drip { bytes: rest.iter().flat_map(Event::bytes).collect(), every: *every })
        }
        Some(Fault::ErrorEvent { after, error, message }) => {
            events.truncate(*after);
            let name = (dialect == Dialect::Messages).then(|| "error".to_owned());
            events.push(Event { name, data: dialect::error(error, message).to_string() });
            None
        }
        Some(Fault::ExtraEvent { after, name, data }) => {
            let name = (dialect == Dialect::Messages).then(|| name.clone());
            events.insert((*after).min(events.len()), Event { name, data: data.clone() });
            None
        }
        _ => None,
    }
}

fn in_one_piece(dialect: Dialect, spoken: &Spoken, fault: Option<&Fault>) -> Vec<Act> {
    let body = match dialect {
        Dialect::Messages => messages::whole(spoken),
        Dialect::ChatCompletions => chat::whole(spoken),
    };
    let acts = whole(200, JSON, body.to_string());
    let broken = |last| acts.iter().take(1).cloned().chain([last]).collect();
    match fault {
        Some(Fault::Cut { .. }) => broken(Act::HangUp),
        Some(Fault::Stall { .. } | Fault::Pings { .. }) => broken(Act::Stall),
        Some(Fault::Drip { every, .. }) => {
            broken(Act::Drip { bytes: body.to_string().into_bytes(), every: *every })
        }
        Some(Fault::ErrorEvent { error, message, .. }) => {
            whole(500, JSON, dialect::error(error, message).to_string())
        }
        _ => acts,
    }
}

/// A sign of life: an event of its own in the Messages API, a comment elsewhere.
fn ping(dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Messages => messages::event(&json!({"type": "ping"})).bytes(),
        Dialect::ChatCompletions => b": still here\n\n".to_vec(),
    }
}

fn figures(asked: &Asked) -> chat::Figures {
    match &asked.body["stream_options"]["include_usage"] {
        Value::Bool(true) => chat::Figures::Wanted,
        _ => chat::Figures::Unwanted,
    }
}

fn whole(status: u16, media: &str, body: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![head(status, media), Act::Send(body.into())]
}

fn head(status: u16, media: &str) -> Act {
    Act::Head { status, headers: vec![("content-type".to_owned(), media.to_owned())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(dialect: Dialect) -> Asked {
        Asked { number: 0, dialect, body: json!({"model": "m", "stream": true}) }
    }

    fn plan(dialect: Dialect, reply: Reply) -> Vec<Act> {
        let fault = reply.fault_at(0).cloned();
        of_reply(&asked(dialect), &Chosen { number: 1, reply, fault })
    }

    /// The acts in short: status, number of events, last act.
    fn brief(acts: &[Act]) -> (Option<u16>, usize, Option<&Act>) {
        let status = acts.iter().find_map(|act| match act {
            Act::Head { status, .. } => Some(*status),
            _ => None,
        });
        let sent = acts.iter().filter(|act| matches!(act, Act::Send(_))).count();
        (status, sent, acts.last().filter(|act| !matches!(act, Act::Send(_) | Act::Head { .. })))
    }

    #[test]
    fn every_fault_has_its_way() {
        let reply = || Reply::text("hello");
        let table = [
            ("whole", reply(), (Some(200), 6, None)),
            ("status", reply().status(529), (Some(529), 1, None)),
            ("cut", reply().cut_after(2), (Some(200), 2, Some(Act::HangUp))),
            ("stall", reply().stall_after(3), (Some(200), 3, Some(Act::Stall))),
            (
                "pings",
                reply().pings_after(2, Duration::from_millis(5)),
                (
                    Some(200),
                    2,
                    Some(Act::Repeat {
                        bytes: b"event: ping\ndata: {\"type\":\"ping\"}\n\n".to_vec(),
                        every: Duration::from_millis(5),
                    }),
                ),
            ),
            (
                "drip",
                reply().drip_after(5, Duration::from_millis(5)),
                (
                    Some(200),
                    5,
                    Some(Act::Drip {
                        bytes: b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_vec(),
                        every: Duration::from_millis(5),
                    }),
                ),
            ),
            ("error event", reply().error_event(1, "overloaded_error", "full"), (Some(200), 2, None)),
            ("garbage", reply().garbage_event(), (Some(200), 7, None)),
            ("html", reply().html(), (Some(200), 1, None)),
            ("empty", reply().empty_body(), (Some(200), 0, None)),
            ("raw", reply().raw_body("data: {"), (Some(200), 1, None)),
            ("hang up", reply().hang_up(), (None, 0, Some(Act::HangUp))),
        ];
        for (name, reply, expected) in table {
            let acts = plan(Dialect::Messages, reply);
            let (status, sent, last) = brief(&acts);
            assert_eq!((status, sent, last.cloned()), expected, "{name}");
        }
    }

    #[test]
    fn an_error_status_carries_its_headers() {
        let acts = plan(Dialect::Messages, Reply::nothing().status(429).retry_after("3"));
        let Act::Head { headers, .. } = &acts[0] else { panic!("{acts:?}") };
        assert!(headers.contains(&("retry-after".into(), "3".into())));
    }

    #[test]
    fn every_answer_names_its_request() {
        for reply in [Reply::text("x"), Reply::nothing().status(500), Reply::text("x").html()] {
            let acts = plan(Dialect::Messages, reply);
            let Act::Head { headers, .. } = &acts[0] else { panic!("{acts:?}") };
            assert!(headers.contains(&("request-id".into(), "req_1".into())), "{headers:?}");
        }
    }

    #[test]
    fn waits_come_before_everything_else() {
        let acts =
            plan(Dialect::ChatCompletions, Reply::text("x").after(Duration::from_millis(5)).hold("go"));
        assert_eq!(acts[..2], [Act::Wait(Duration::from_millis(5)), Act::Hold("go".into())]);
    }
}
