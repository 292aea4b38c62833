//! Lets the examples run anywhere: with a real model if a key is set, with a scripted one otherwise.

use serde_json::Value;
use whimbrel::{Agent, Scripted};

/// The agent as it is if a real model can be asked; else with these replies.
pub(crate) fn real_or_scripted(agent: Agent, replies: Value) -> anyhow::Result<Agent> {
    let has_key =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"].iter().any(|name| std::env::var_os(name).is_some());
    Ok(if has_key { agent } else { agent.script(Scripted::replies(replies)?) })
}
