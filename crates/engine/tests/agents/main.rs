//! Agents of a session: definitions, foreground and background work, teams, and the end of the session.

mod background;
mod concurrency;
mod definitions;
mod foreground;
mod forked_skills;
mod hooks;
mod isolation;
mod resume;
mod session_lifetime;
mod team_messages;
mod teammates;
mod teams;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::message::User;

/// A call of the Agent tool with this prompt; `overrides` replaces fields of the input.
fn call_agent(prompt: &str, overrides: Value) -> Reply {
    Reply::tool("Agent", agent_input(prompt, overrides))
}

/// The input of such a call.
fn agent_input(prompt: &str, overrides: Value) -> Value {
    let mut input = json!({"description": "look", "prompt": prompt, "subagent_type": "general-purpose"});
    if let (Value::Object(input), Value::Object(overrides)) = (&mut input, overrides) {
        input.extend(overrides);
    }
    input
}

/// A background agent whose reply is held until released.
fn background_script() -> Script {
    Script::from_fn(|request| match request.last_text() {
        text if text.contains("Look.") => Reply::text("Late news.").hold_until("agent"),
        text if text.contains("<task-notification>") => Reply::text("Noticed."),
        text if text.contains("in the background") => Reply::text("Launched."),
        _ => call_agent("Look.", json!({"run_in_background": true})),
    })
}

/// The `tool_use_result` of the `nth` call of the main agent.
fn nth_tool_use_result(host: &Host, nth: usize) -> Value {
    let results = host.frames().filter_map(|frame| match frame {
        Frame::User(user) if user.parent_tool_use_id.is_none() => user.tool_use_result.clone(),
        _ => None,
    });
    results.into_iter().nth(nth).unwrap_or_default()
}

/// The first agent id in the text of a tool result.
fn find_agent_id(text: &str) -> Option<String> {
    text.split("agentId: ").nth(1).map(|rest| rest.chars().take(9).collect())
}

/// The user frames of subagents.
fn subagent_messages(host: &Host) -> Vec<&User> {
    let frames = host.frames().filter_map(|frame| match frame {
        Frame::User(user) if user.parent_tool_use_id.is_some() => Some(user.as_ref()),
        _ => None,
    });
    frames.collect()
}
