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
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::Frame;
use whimbrel_wire::message::User;

/// A call of the Agent tool with this prompt; `more` overrides fields of the input.
fn call_agent(prompt: &str, more: Value) -> Reply {
    Reply::tool("Agent", agent_input(prompt, more))
}

/// The input of such a call.
fn agent_input(prompt: &str, more: Value) -> Value {
    let mut input = json!({"description": "look", "prompt": prompt, "subagent_type": "general-purpose"});
    if let (Value::Object(input), Value::Object(more)) = (&mut input, more) {
        input.extend(more);
    }
    input
}

/// The `tool_use_result` of the `nth` call of the main agent.
fn nth_tool_use_result(host: &Host, nth: usize) -> Value {
    let results = host.frames().filter_map(|frame| match frame {
        Frame::User(user) if user.parent_tool_use_id.is_none() => user.tool_use_result.clone(),
        _ => None,
    });
    results.into_iter().nth(nth).unwrap_or_default()
}

/// All system frames of this subtype so far.
fn system_frames(host: &Host, subtype: &str) -> Vec<Value> {
    let heard = host.received().iter().map(|heard| &heard.json);
    heard.filter(|json| json["type"] == "system" && json["subtype"] == subtype).cloned().collect()
}

/// The user frames of subagents.
fn subagent_messages(host: &Host) -> Vec<&User> {
    let frames = host.frames().filter_map(|frame| match frame {
        Frame::User(user) if user.parent_tool_use_id.is_some() => Some(user.as_ref()),
        _ => None,
    });
    frames.collect()
}
