//! Plans the response to a request as a list of actions, without IO; a connection runs them.

use serde_json::{Value, json};

use super::action::{Action, EVENTS, JSON, head_action, plan_body};
use super::inject_fault::{faulty_response, inject_fault, inject_into_body};
use crate::api_format::{self, ResolvedReply, chat, messages};
use crate::script::{ApiFormat, Fault, ModelRequest, Reply, SelectedReply};

/// Plans the response to a request for a model reply.
pub(super) fn plan_reply(request: &ModelRequest, selected: &SelectedReply) -> Vec<Action> {
    let mut actions = plan_waits(&selected.reply);
    let resolved = ResolvedReply::new(selected.number, &selected.reply, request.model());
    let is_stream = request.body["stream"] == true;
    let fault = selected.fault.as_ref();
    actions.extend(match fault.and_then(faulty_response) {
        Some(response) => response,
        None if is_stream => plan_stream(request, &resolved, &selected.reply, fault),
        None => plan_single_response(request.api_format, &resolved, fault),
    });
    add_request_id(&mut actions, request.number);
    actions
}

/// Adds the `request-id` header, as providers do.
fn add_request_id(actions: &mut [Action], number: usize) {
    for action in actions {
        if let Action::Head { headers, .. } = action {
            headers.push(("request-id".to_owned(), format!("req_{}", number + 1)));
        }
    }
}

/// Plans the response to any other request.
pub(super) fn plan_other(method: &str, path: &str, body: &[u8]) -> Vec<Action> {
    match (method, path) {
        ("POST", path) if path.ends_with("/count_tokens") => {
            plan_body(200, JSON, json!({"input_tokens": body.len() / 4}).to_string())
        }
        ("GET", path) if path.ends_with("/models") => {
            plan_body(200, JSON, json!({"data": [], "has_more": false}).to_string())
        }
        _ => plan_body(
            404,
            JSON,
            api_format::error_body("not_found_error", &format!("{method} {path}")).to_string(),
        ),
    }
}

fn plan_waits(reply: &Reply) -> Vec<Action> {
    let wait = (!reply.after.is_zero()).then_some(Action::Wait(reply.after));
    wait.into_iter().chain(reply.hold.clone().map(Action::Hold)).collect()
}

fn plan_stream(
    request: &ModelRequest,
    resolved: &ResolvedReply,
    reply: &Reply,
    fault: Option<&Fault>,
) -> Vec<Action> {
    let mut events = match request.api_format {
        ApiFormat::Messages => messages::stream_events(resolved),
        ApiFormat::ChatCompletions => chat::stream_events(resolved, requested_usage_chunk(request)),
    };
    let last = inject_fault(&mut events, request.api_format, fault);
    let mut actions = vec![head_action(200, EVENTS)];
    for event in events {
        if !reply.pace.is_zero() {
            actions.push(Action::Wait(reply.pace));
        }
        actions.push(Action::Send(event.to_bytes()));
    }
    actions.extend(last);
    actions
}

fn plan_single_response(format: ApiFormat, resolved: &ResolvedReply, fault: Option<&Fault>) -> Vec<Action> {
    let body = match format {
        ApiFormat::Messages => messages::response_body(resolved),
        ApiFormat::ChatCompletions => chat::response_body(resolved),
    };
    inject_into_body(&body.to_string(), fault)
}

fn requested_usage_chunk(request: &ModelRequest) -> chat::UsageChunk {
    match &request.body["stream_options"]["include_usage"] {
        Value::Bool(true) => chat::UsageChunk::Send,
        _ => chat::UsageChunk::Omit,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn model_request(format: ApiFormat) -> ModelRequest {
        ModelRequest { number: 0, api_format: format, body: json!({"model": "m", "stream": true}) }
    }

    fn plan_first_attempt(format: ApiFormat, reply: Reply) -> Vec<Action> {
        let fault = reply.fault_for_attempt(0).cloned();
        plan_reply(&model_request(format), &SelectedReply { number: 1, reply, fault })
    }

    /// Status, number of sent chunks, last action.
    fn summarize_actions(actions: &[Action]) -> (Option<u16>, usize, Option<&Action>) {
        let status = actions.iter().find_map(|action| match action {
            Action::Head { status, .. } => Some(*status),
            _ => None,
        });
        let sent = actions.iter().filter(|action| matches!(action, Action::Send(_))).count();
        (
            status,
            sent,
            actions.last().filter(|action| !matches!(action, Action::Send(_) | Action::Head { .. })),
        )
    }

    #[test]
    fn every_fault_changes_the_actions() {
        let reply = || Reply::text("hello");
        let table = [
            ("whole", reply(), (Some(200), 6, None)),
            ("status", reply().status(529), (Some(529), 1, None)),
            ("cut", reply().cut_after(2), (Some(200), 2, Some(Action::HangUp))),
            ("stall", reply().stall_after(3), (Some(200), 3, Some(Action::Stall))),
            (
                "pings",
                reply().pings_after(2, Duration::from_millis(5)),
                (
                    Some(200),
                    2,
                    Some(Action::Repeat {
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
                    Some(Action::Drip {
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
            ("hang up", reply().hang_up(), (None, 0, Some(Action::HangUp))),
        ];
        for (name, reply, expected) in table {
            let actions = plan_first_attempt(ApiFormat::Messages, reply);
            let (status, sent, last) = summarize_actions(&actions);
            assert_eq!((status, sent, last.cloned()), expected, "{name}");
        }
    }

    #[test]
    fn status_fault_sends_its_headers() {
        let actions = plan_first_attempt(ApiFormat::Messages, Reply::empty().status(429).retry_after("3"));
        let Action::Head { headers, .. } = &actions[0] else { panic!("{actions:?}") };
        assert!(headers.contains(&("retry-after".into(), "3".into())));
    }

    #[test]
    fn every_response_has_a_request_id() {
        for reply in [Reply::text("x"), Reply::empty().status(500), Reply::text("x").html()] {
            let actions = plan_first_attempt(ApiFormat::Messages, reply);
            let Action::Head { headers, .. } = &actions[0] else { panic!("{actions:?}") };
            assert!(headers.contains(&("request-id".into(), "req_1".into())), "{headers:?}");
        }
    }

    #[test]
    fn waits_come_before_the_head() {
        let actions = plan_first_attempt(
            ApiFormat::ChatCompletions,
            Reply::text("x").delay(Duration::from_millis(5)).hold_until("go"),
        );
        assert_eq!(actions[..2], [Action::Wait(Duration::from_millis(5)), Action::Hold("go".into())]);
    }
}
