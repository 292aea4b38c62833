//! Hooks of the client: what it subscribes to, and an event of the engine in the words of this wire. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use fancy_regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel::wire::hook::{HookEvent, HookEventInput, HookInput};
use whimbrel::wire::system::CompactTrigger;

use crate::tools;

/// The events that a client can subscribe to, and the engine's events that they are made of. `SessionStart` and
/// `SessionEnd` never reach a client of this wire.
const EVENTS: &[(&str, &[HookEvent])] = &[
    // A tool that fails has been used as well.
    ("PreToolUse", &[HookEvent::PreToolUse]),
    ("PostToolUse", &[HookEvent::PostToolUse, HookEvent::PostToolUseFailure]),
    ("UserPromptSubmit", &[HookEvent::UserPromptSubmit]),
    ("Stop", &[HookEvent::Stop]),
    ("StopFailure", &[HookEvent::StopFailure]),
    ("SubagentStart", &[HookEvent::SubagentStart]),
    ("SubagentStop", &[HookEvent::SubagentStop]),
    ("PreCompact", &[HookEvent::PreCompact]),
    ("PostCompact", &[HookEvent::PostCompact]),
    ("Notification", &[HookEvent::Notification]),
];

/// Seconds that an answer may take, unless the client says otherwise.
const DEFAULT_TIMEOUT_SECONDS: f64 = 30.0;
/// Longest time that an answer may take.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A subscription of the client.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) timeout: Duration,
    event: &'static str,
    /// Searched for in the target; `None` matches everything.
    matcher: Option<Regex>,
}

/// All subscriptions of the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(Vec<Subscription>);

/// An event for the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookCall {
    pub(crate) event: &'static str,
    /// What matchers are compared with.
    pub(crate) target: String,
    pub(crate) input_data: Value,
    /// Whether the engine waits for the answers.
    pub(crate) is_waited_for: bool,
}

#[derive(Deserialize)]
struct SubscriptionRequest {
    id: String,
    event: String,
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
}

impl Subscriptions {
    /// Reads the subscriptions of `initialize`. Those to unknown events are left out.
    pub(crate) fn parse(list: &Value) -> Result<Self, String> {
        let requests: Vec<SubscriptionRequest> =
            serde_json::from_value(list.clone()).map_err(|error| format!("`hooks`: {error}."))?;
        let known = |name: &str| EVENTS.iter().map(|(known, _)| *known).find(|known| *known == name);
        let mut subscriptions = Vec::new();
        for request in requests {
            let Some(event) = known(&request.event) else { continue };
            let matcher = request.matcher.filter(|matcher| !matcher.is_empty());
            let matcher = matcher.map(|text| {
                Regex::new(&text)
                    .map_err(|error| format!("`hooks`: the matcher {text:?} is invalid: {error}."))
            });
            let seconds = request.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
            let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT);
            subscriptions.push(Subscription {
                id: request.id,
                timeout,
                event,
                matcher: matcher.transpose()?,
            });
        }
        Ok(Self(subscriptions))
    }

    /// Names of all events that can be subscribed to.
    pub(crate) fn supported_events() -> Vec<&'static str> {
        EVENTS.iter().map(|(name, _)| *name).collect()
    }

    /// How many subscriptions each event has.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for subscription in &self.0 {
            *counts.entry(subscription.event).or_default() += 1;
        }
        counts
    }

    /// The engine's events that are needed.
    pub(crate) fn engine_events(&self) -> Vec<HookEvent> {
        let subscribed = |name: &str| self.0.iter().any(|subscription| subscription.event == name);
        EVENTS
            .iter()
            .filter(|(name, _)| subscribed(name))
            .flat_map(|(_, events)| events.iter().copied())
            .collect()
    }

    pub(crate) fn has(&self, event: &str) -> bool {
        self.0.iter().any(|subscription| subscription.event == event)
    }

    /// The longest time that an answer may take.
    pub(crate) fn longest_timeout(&self) -> Duration {
        self.0.iter().map(|subscription| subscription.timeout).max().unwrap_or_default()
    }

    /// The subscriptions that match an event.
    pub(crate) fn matching(&self, call: &HookCall) -> Vec<Subscription> {
        let matches = |subscription: &&Subscription| {
            let matcher = subscription.matcher.as_ref();
            // A matcher that takes too many steps does not match.
            subscription.event == call.event
                && matcher.is_none_or(|matcher| matcher.is_match(&call.target).unwrap_or(false))
        };
        self.0.iter().filter(matches).cloned().collect()
    }
}

/// An event of the engine for the client; `None` if this wire has no such event.
pub(crate) fn to_hook_call(session: &str, input: &HookInput) -> Option<HookCall> {
    let waited = |event, target: &str, fields| (event, target.to_owned(), fields, true);
    let told = |event, target: &str, fields| (event, target.to_owned(), fields, false);
    let (event, target, fields, is_waited_for) = match &input.event {
        HookEventInput::PreToolUse(call) => {
            let (name, tool_input) = tools::hook_tool_input(&call.tool_name, &call.tool_input);
            let fields =
                json!({"tool_name": name, "tool_input": tool_input, "tool_call_id": call.tool_use_id});
            waited("PreToolUse", name, fields)
        }
        HookEventInput::PostToolUse(call) => {
            let (name, tool_input) = tools::hook_tool_input(&call.tool_name, &call.tool_input);
            let output = tools::tool_output_text(&call.tool_response);
            told("PostToolUse", name, tool_result_fields(name, &tool_input, &call.tool_use_id, &output))
        }
        HookEventInput::PostToolUseFailure(call) => {
            let (name, tool_input) = tools::hook_tool_input(&call.tool_name, &call.tool_input);
            let output = tools::tool_output_text(&call.error.clone().into());
            told("PostToolUse", name, tool_result_fields(name, &tool_input, &call.tool_use_id, &output))
        }
        HookEventInput::UserPromptSubmit(prompt) => {
            waited("UserPromptSubmit", &prompt.prompt, json!({"prompt": prompt.prompt}))
        }
        HookEventInput::Stop(stop) => waited("Stop", "", json!({"stop_hook_active": stop.stop_hook_active})),
        HookEventInput::StopFailure(failure) => {
            let kind = serde_json::to_value(&failure.error).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("unknown");
            let message = failure.error_details.as_deref().unwrap_or_default();
            told("StopFailure", kind, json!({"error_type": kind, "error_message": message}))
        }
        HookEventInput::SubagentStart(agent) => {
            let fields = json!({"agent_name": agent.agent_type, "prompt": ""});
            waited("SubagentStart", &agent.agent_type, fields)
        }
        HookEventInput::SubagentStop(agent) => {
            let response = agent.last_assistant_message.as_deref().unwrap_or_default();
            let fields = json!({"agent_name": agent.agent_type, "response": response});
            told("SubagentStop", &agent.agent_type, fields)
        }
        HookEventInput::PreCompact(compact) => {
            let trigger = trigger_name(compact.trigger);
            waited("PreCompact", trigger, json!({"trigger": trigger, "token_count": null}))
        }
        HookEventInput::PostCompact(compact) => {
            let trigger = trigger_name(compact.trigger);
            told("PostCompact", trigger, json!({"trigger": trigger, "estimated_token_count": null}))
        }
        HookEventInput::Notification(notification) => {
            let kind = &notification.notification_type;
            let fields = json!({
                "sink": "wire",
                "notification_type": kind,
                "title": notification.title.as_deref().unwrap_or_default(),
                "body": notification.message,
                "severity": "info",
            });
            told("Notification", kind, fields)
        }
        _ => return None,
    };
    let mut input_data: Map<String, Value> = Map::new();
    input_data.insert("hook_event_name".into(), event.into());
    input_data.insert("session_id".into(), session.into());
    input_data.insert("cwd".into(), input.base.cwd.clone().into());
    if let Value::Object(fields) = fields {
        input_data.extend(fields);
    }
    Some(HookCall { event, target, input_data: input_data.into(), is_waited_for })
}

fn tool_result_fields(name: &str, input: &Value, call: &str, output: &str) -> Value {
    json!({"tool_name": name, "tool_input": input, "tool_call_id": call, "tool_output": output})
}

fn trigger_name(trigger: CompactTrigger) -> &'static str {
    match trigger {
        CompactTrigger::Manual => "manual",
        CompactTrigger::Auto => "auto",
    }
}

#[cfg(test)]
mod tests {
    use whimbrel::wire::hook::{HookBase, PreToolUse};

    use super::*;

    fn call(target: &str) -> HookCall {
        HookCall { event: "PreToolUse", target: target.into(), input_data: Value::Null, is_waited_for: true }
    }

    #[test]
    fn matchers_are_searched_in_the_target() {
        let list = json!([
            {"id": "all", "event": "PreToolUse"},
            {"id": "files", "event": "PreToolUse", "matcher": "Write|Replace", "timeout": 5},
            {"id": "stop", "event": "Stop"},
            {"id": "unknown", "event": "NoSuchEvent"},
        ]);
        let subscriptions = Subscriptions::parse(&list).unwrap();
        let ids = |target: &str| {
            let found = subscriptions.matching(&call(target));
            found.into_iter().map(|subscription| subscription.id).collect::<Vec<_>>()
        };
        assert_eq!(ids("Shell"), ["all"]);
        assert_eq!(ids("StrReplaceFile"), ["all", "files"]);
        assert_eq!(subscriptions.counts(), BTreeMap::from([("PreToolUse", 2), ("Stop", 1)]));
        assert_eq!(subscriptions.engine_events(), [HookEvent::PreToolUse, HookEvent::Stop]);
        assert!(Subscriptions::parse(&json!([{"id": "x", "event": "Stop", "matcher": "("}])).is_err());
    }

    #[test]
    fn events_are_in_kimis_words() {
        let event = HookEventInput::PreToolUse(PreToolUse {
            tool_name: "Read".into(),
            tool_input: json!({"file_path": "a"}),
            tool_use_id: "c1".into(),
            ..PreToolUse::default()
        });
        let base = HookBase { cwd: "/w".into(), ..HookBase::default() };
        let found = to_hook_call("s", &HookInput { base, event }).unwrap();
        assert_eq!(
            (found.event, found.target.as_str(), found.is_waited_for),
            ("PreToolUse", "ReadFile", true)
        );
        let expected = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "tool_name": "ReadFile",
            "tool_input": {"path": "a"}, "tool_call_id": "c1",
        });
        assert_eq!(found.input_data, expected);
    }
}
