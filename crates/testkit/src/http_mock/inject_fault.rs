//! Applies the fault of a reply to its response: replaces it, or changes its stream or body. Pure.

use serde_json::json;

use super::action::{Action, EVENTS, JSON, head_action, plan_body};
use crate::api_format::{self, SseEvent, messages};
use crate::script::{ApiFormat, Fault};

/// Returns the response of a fault that replaces the whole reply; `None` for other faults.
pub(super) fn faulty_response(fault: &Fault) -> Option<Vec<Action>> {
    match fault {
        Fault::HangUp => Some(vec![Action::HangUp]),
        Fault::Status { status, error, message, headers } => {
            let kind = error.as_deref().unwrap_or_else(|| Fault::default_error_type(*status));
            let body = api_format::error_body(kind, message.as_deref().unwrap_or("scripted failure"));
            let mut actions = plan_body(*status, JSON, body.to_string());
            if let Some(Action::Head { headers: sent, .. }) = actions.first_mut() {
                sent.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            Some(actions)
        }
        Fault::Html => Some(plan_body(200, "text/html", "<html><body>Welcome!</body></html>")),
        Fault::EmptyBody => Some(vec![head_action(200, EVENTS)]),
        Fault::RawBody { body } => Some(plan_body(200, EVENTS, body.clone())),
        _ => None,
    }
}

/// Applies a fault to the events of a stream; returns the action that follows them.
pub(super) fn inject_fault(
    events: &mut Vec<SseEvent>,
    format: ApiFormat,
    fault: Option<&Fault>,
) -> Option<Action> {
    match fault {
        Some(Fault::Cut { after }) => {
            events.truncate(*after);
            Some(Action::HangUp)
        }
        Some(Fault::Stall { after }) => {
            events.truncate(*after);
            Some(Action::Stall)
        }
        Some(Fault::Pings { after, every }) => {
            events.truncate(*after);
            Some(Action::Repeat { bytes: ping_bytes(format), every: *every })
        }
        Some(Fault::Drip { after, every }) => {
            let rest = events.split_off((*after).min(events.len()));
            Some(Action::Drip { bytes: rest.iter().flat_map(SseEvent::to_bytes).collect(), every: *every })
        }
        Some(Fault::ErrorEvent { after, error, message }) => {
            events.truncate(*after);
            let name = (format == ApiFormat::Messages).then(|| "error".to_owned());
            events.push(SseEvent { name, data: api_format::error_body(error, message).to_string() });
            None
        }
        Some(Fault::ExtraEvent { after, name, data }) => {
            let name = (format == ApiFormat::Messages).then(|| name.clone());
            events.insert((*after).min(events.len()), SseEvent { name, data: data.clone() });
            None
        }
        _ => None,
    }
}

/// Plans a single response with this body, changed by a fault.
pub(super) fn inject_into_body(body: &str, fault: Option<&Fault>) -> Vec<Action> {
    let actions = plan_body(200, JSON, body);
    let truncated = |last| actions.iter().take(1).cloned().chain([last]).collect();
    match fault {
        Some(Fault::Cut { .. }) => truncated(Action::HangUp),
        Some(Fault::Stall { .. } | Fault::Pings { .. }) => truncated(Action::Stall),
        Some(Fault::Drip { every, .. }) => {
            truncated(Action::Drip { bytes: body.as_bytes().to_vec(), every: *every })
        }
        Some(Fault::ErrorEvent { error, message, .. }) => {
            plan_body(500, JSON, api_format::error_body(error, message).to_string())
        }
        _ => actions,
    }
}

/// A ping event in the Messages API, an SSE comment in Chat Completions.
fn ping_bytes(format: ApiFormat) -> Vec<u8> {
    match format {
        ApiFormat::Messages => messages::typed_event(&json!({"type": "ping"})).to_bytes(),
        ApiFormat::ChatCompletions => b": still here\n\n".to_vec(),
    }
}
