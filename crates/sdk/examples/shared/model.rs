//! Lets the examples run anywhere: with a real model if a key is set, otherwise with a scripted one.

use serde_json::Value;
use whimbrel::{Agent, Scripted};

/// Returns the agent unchanged if a key is set, otherwise with these scripted replies.
pub(crate) fn real_or_scripted(agent: Agent, replies: Value) -> anyhow::Result<Agent> {
    let has_key =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"].iter().any(|name| std::env::var_os(name).is_some());
    Ok(if has_key { agent } else { agent.script(Scripted::replies(replies)?) })
}
